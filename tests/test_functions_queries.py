"""Questions about dtypes and complex parts."""

from __future__ import annotations

import numpy as np
import pytest
from tracing import assert_like_numpy, evaluate

import buropt as bo

VALUES = {
    "np.can_cast": lambda a, v, p: v * np.can_cast(v, np.float32),
    "np.common_type": lambda a, v, p: v * (np.common_type(a, v) is np.float64),
    "np.iscomplex": lambda a, v, p: np.iscomplex(a),
    "np.iscomplexobj": lambda a, v, p: v * np.iscomplexobj(a),
    "np.isreal": lambda a, v, p: np.isreal(a),
    "np.isrealobj": lambda a, v, p: v * np.isrealobj(a),
    "np.real_if_close": lambda a, v, p: np.real_if_close(a),
    "np.result_type": lambda a, v, p: v * (np.result_type(a, np.float32) == np.float64),
}
if hasattr(np, "astype"):
    VALUES["np.astype"] = lambda a, v, p: np.astype(a > 0, float) + np.astype(v, np.float64)


def test_dtypes_are_those_of_the_arrays():
    def function(x, t, m):
        assert np.result_type(t, m) == np.int64
        assert np.result_type(x, t, np.float32, 3) == np.float64
        assert np.common_type(t, x) is np.float64
        assert np.can_cast(t, float)
        assert not np.can_cast(x, int)
        assert np.can_cast(x, int, casting="unsafe")
        return x

    assert_like_numpy(function, np.ones(2), np.array([1, 2]), np.array([True, False]))


def test_casts():
    t = np.array([-1, 0, 2])
    if hasattr(np, "astype"):
        assert_like_numpy(lambda t: np.astype(t, bool), t)
        assert_like_numpy(lambda t: np.astype(t, t.dtype, copy=False), t)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.allclose(x, 1.0),
        lambda x: np.array_equal(x, x),
        lambda x: np.array_equiv(x, x),
        lambda x: np.trim_zeros(x),
        lambda x: np.unique(x),
        lambda x: np.histogram(x),
        lambda x: np.unwrap(x),
        lambda x: np.fill_diagonal(x[None] * x, 0.0),
        lambda x: np.copyto(x, 0.0),
        lambda x: np.put(x, [0], 1.0),
        lambda x: np.place(x, x > 0, 1.0),
        lambda x: np.putmask(x, x > 0, 1.0),
        lambda x: np.put_along_axis(x, np.array([0]), 1.0, 0),
        lambda x: np.min_scalar_type(x),
        lambda x: np.shares_memory(x, x),
        lambda x: np.polymul(x, x),
        lambda x: np.roots(x),
        lambda x: np.linalg.svd(x[None]),
        lambda x: np.fft.rfft(x),
        lambda x: np.ix_(x, x),
    ],
)
def test_refused(function):
    """What needs values, or writes in place, names what to write instead."""
    with pytest.raises(bo.UnsupportedOpError, match=r"cannot be traced.*Instead: (?!compose it)"):
        evaluate(function, np.ones(3))


def test_arrays_of_traced_values():
    with pytest.raises(bo.TraceError, match=r"Instead: np.stack\(\[...\]\) or np.concatenate"):
        evaluate(lambda x: np.array([x[0], x[1]]), np.ones(3))
    with pytest.raises(bo.TraceError, match=r"np.stack"):
        evaluate(lambda x: np.asarray([x, x]), np.ones(3))
