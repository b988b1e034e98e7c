"""sliding_window_view and np.apply_along_axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib.stride_tricks import sliding_window_view
from tracing import assert_like_numpy, assert_slopes, evaluate, few, numbers

import buropt as bo

VALUES = {
    "np.apply_along_axis": lambda a, v, p: np.apply_along_axis(np.sum, 0, a),
    "np.lib.stride_tricks.sliding_window_view": lambda a, v, p: sliding_window_view(a, 2, 1),
}


@few
@given(shape=hnp.array_shapes(max_dims=3, max_side=4), data=st.data())
def test_sliding_windows(shape, data):
    everywhere = tuple(data.draw(st.integers(1, n)) for n in shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for function in (
        lambda x: sliding_window_view(x, everywhere),
        lambda x: sliding_window_view(x, everywhere[axis], axis),
    ):
        assert_like_numpy(function, numbers(shape))
        assert_slopes(function, numbers(shape))
        assert_like_numpy(function, numbers(shape) > 0)


@few
@given(shape=hnp.array_shapes(max_dims=3, max_side=3), data=st.data())
def test_apply_along_axis(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    functions = [np.sum, lambda v: v * v[0], lambda v: np.outer(v, v), lambda v, c: v[:1] * c]
    for function, args in zip(functions, [(), (), (), (2.0,)], strict=True):
        applied = lambda x, f=function, a=args: np.apply_along_axis(f, axis, x, *a)  # noqa: E731
        assert_like_numpy(applied, numbers(shape), rtol=1e-12)
        assert_slopes(applied, numbers(shape))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: sliding_window_view(x, 4), ValueError, "extent 4 do not fit axis 0"),
        (lambda x: sliding_window_view(x, (1, 1)), ValueError, "2 extents for 1 axes"),
        (lambda x: sliding_window_view(x, 1, writeable=True), bo.UnsupportedOpError, "writeable="),
        (lambda x: np.apply_along_axis(np.sum, 1, x), np.exceptions.AxisError, "out of bounds"),
        (lambda x: np.apply_along_axis(np.sum, 0, x[:, None][:, :0]), ValueError, "no vectors"),
    ],
)
def test_mistakes(function, error, text):
    with pytest.raises(error, match=text):
        evaluate(function, numbers(3))
