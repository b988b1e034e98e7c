"""Reductions that leave NaN out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import assert_like_numpy, evaluate, few

import buropt as bo


def holes(a):
    """The matrix with a NaN in its first row."""
    return np.where(a == a[0, 1], np.nan, a)


VALUES = {
    "np.nancumprod": lambda a, v, p: np.nancumprod(holes(a), axis=0),
    "np.nancumsum": lambda a, v, p: np.nancumsum(holes(a)),
    "np.nanmax": lambda a, v, p: np.nanmax(holes(a), axis=0) + np.nanmax(v),
    "np.nanmean": lambda a, v, p: np.nanmean(holes(a), axis=1) + np.nanmean(holes(a)),
    "np.nanmin": lambda a, v, p: np.nanmin(holes(a), axis=1) + np.nanmin(v),
    "np.nanprod": lambda a, v, p: np.nanprod(holes(a), axis=1),
    "np.nanstd": lambda a, v, p: np.nanstd(holes(a), axis=1) + np.nanstd(v, ddof=1),
    "np.nansum": lambda a, v, p: np.nansum(holes(a), axis=1, keepdims=True),
    "np.nanvar": lambda a, v, p: np.nanvar(holes(a)) + np.nanvar(v, ddof=1),
}
REDUCTIONS = [np.nansum, np.nanprod, np.nanmean, np.nanmax, np.nanmin, np.nanvar, np.nanstd]
ARRAYS = hnp.arrays(
    float,
    hnp.array_shapes(max_dims=3, max_side=3),
    elements=st.sampled_from([np.nan, 0.5, -2.0, 1.25]),
)


@few
@given(x=ARRAYS, data=st.data())
def test_reductions(x, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    keepdims = data.draw(st.booleans())
    for reduction in REDUCTIONS:

        def function(x, f=reduction):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # NumPy: all is NaN
                return f(x, axis=axis, keepdims=keepdims)

        assert_like_numpy(function, x, rtol=1e-12, atol=1e-14)
        assert_like_numpy(function, np.nan_to_num(x).astype(int), rtol=1e-12, atol=1e-14)
    for scan in (np.nancumsum, np.nancumprod):
        assert_like_numpy(lambda x, f=scan: f(x, axis=axis), x, rtol=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_what_is_left_out_contributes_nothing(reduction):
    x = np.array([1.0, np.nan, 3.0, 0.5])
    there = ~np.isnan(x)
    gradient = bo.grad(reduction)(x)
    np.testing.assert_array_equal(gradient[~there], [0.0])
    complete = getattr(np, reduction.__name__.removeprefix("nan"))
    step = 1e-6
    differences = [
        (complete(x[there] + step * e) - complete(x[there] - step * e)) / (2 * step)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(gradient[there], differences, rtol=1e-7, atol=1e-9)


def test_no_deviation():
    value, gradient = bo.value_and_grad(np.nanstd)(np.array([2.0, np.nan, 2.0]))
    assert value == 0
    np.testing.assert_array_equal(gradient, [0.0, 0.0, 0.0])


def test_refused():
    with pytest.raises(bo.UnsupportedOpError, match="initial="):
        evaluate(lambda x: np.nansum(x, initial=1.0), np.ones(3))
    with pytest.raises(bo.UnsupportedOpError, match="where="):
        evaluate(lambda x: np.nanmean(x, where=[True, False, True]), np.ones(3))
