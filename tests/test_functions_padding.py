"""np.pad, np.insert and np.delete: elements are added or left out at constant positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import assert_like_numpy, assert_slopes, check, evaluate, few, numbers

import buropt as bo

VALUES = {
    "np.delete": lambda a, v, p: np.delete(a, 0) + np.delete(a, 1, axis=0)[0, 0],
    "np.insert": lambda a, v, p: np.insert(a, 1, v, axis=0) + np.insert(v[:2], 0, p[0]),
    "np.pad": lambda a, v, p: np.pad(a, 1) + np.pad(a, (1, 1), "edge"),
}

SHAPES = hnp.array_shapes(max_dims=3, max_side=4)
FILLS = st.sampled_from([0, 2, -1.5, (1, 2), True])


def widths(ndim):
    one = st.integers(0, 5)
    pair = st.tuples(one, one)
    return one | st.tuples(one) | pair | st.lists(pair, min_size=ndim, max_size=ndim)


@few
@given(shape=SHAPES, mode=st.sampled_from(["edge", "reflect", "symmetric", "wrap"]), data=st.data())
def test_copies_of_elements(shape, mode, data):
    width = data.draw(widths(len(shape)))
    check(lambda x: np.pad(x, width, mode), numbers(shape))


@few
@given(shape=SHAPES | st.just((0, 2)), fill=FILLS, data=st.data())
def test_constants(shape, fill, data):
    width = data.draw(widths(len(shape)))
    check(lambda x: np.pad(x, width, constant_values=fill), numbers(shape))
    check(lambda x: np.pad(x, width, "constant"), numbers(shape))


def test_constants_of_each_side_and_traced_ones():
    x = numbers((2, 3))
    check(lambda x: np.pad(x, 2, constant_values=[(1, 2), (3, 4)]), x)

    def traced(x):
        return np.pad(x, ((1, 0), (0, 2)), constant_values=x[0, 0] * np.ones((2, 1)))

    assert_like_numpy(traced, x)
    assert_slopes(traced, x)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="dicts since NumPy 2.2")
def test_widths_by_axis():
    check(lambda x: np.pad(x, {-1: (1, 2)}) + np.pad(x, {0: 0, 1: (2, 1)}), numbers((2, 3)))


@few
@given(shape=SHAPES, data=st.data())
def test_delete(shape, data):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    position = st.integers(-extent, extent - 1)
    mask = st.lists(st.booleans(), min_size=extent, max_size=extent).map(np.array)
    obj = data.draw(position | st.lists(position, max_size=4) | st.slices(extent) | mask)
    check(lambda x: np.delete(x, obj, axis), numbers(shape))


@few
@given(shape=SHAPES, data=st.data())
def test_insert(shape, data):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    position = st.integers(-extent, extent)
    obj = data.draw(position | st.lists(position, min_size=1, max_size=4) | st.slices(extent))
    check(lambda x: np.insert(x, obj, x[(0,) * x.ndim], axis), numbers(shape))


def test_inserted_arrays():
    x, v = numbers((3, 4)), numbers(4, 1)
    check(lambda x, v: np.insert(x, 1, v, axis=0), x, v)
    check(lambda x, v: np.insert(x, 1, v[:3], axis=1), x, v)
    check(lambda x, v: np.insert(x, [1], v[:3, None], axis=1), x, v)
    check(lambda x, v: np.insert(x, [1], x[:, :2], axis=1), x, v)
    check(lambda x, v: np.insert(x, [3, 0, -1], v[:3], axis=1), x, v)
    check(lambda x, v: np.insert(v, [2, 2, 0], v[:3]), x, v)
    check(lambda x, v: np.insert(v, 2, v[:3]), x, v)
    check(lambda x, v: np.insert(v, [], []), x, v)
    check(lambda x, v: np.insert(v, slice(1, 3), 7), x, v)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.pad(x, -1), ValueError, "pad_width must not be negative"),
        (lambda x: np.pad(x, 1.5), TypeError, "integer"),
        (lambda x: np.pad(x, 1, "linear_ramp"), bo.UnsupportedOpError, "mode 'linear_ramp'"),
        (lambda x: np.pad(x, 1, lambda *_: None), bo.UnsupportedOpError, "with mode <function"),
        (lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), TypeError, "reflect_type="),
        (lambda x: np.pad(x, 1, "edge", stat_length=2), TypeError, "stat_length="),
        (lambda x: np.delete(x, x), bo.TraceError, "traced positions.*Instead: positions that do"),
        (lambda x: np.insert(x, x, 0.0), bo.TraceError, "traced positions"),
        (lambda x: np.delete(x, 5), IndexError, "out of bounds"),
        (lambda x: np.insert(x, 5, 0.0), IndexError, "position 5 is out of bounds"),
        (lambda x: np.insert(x, 1, x[None].T, axis=0), ValueError, "broadcast"),
    ],
)
def test_mistakes(function, error, text):
    with pytest.raises(error, match=text):
        evaluate(function, numbers(3))
