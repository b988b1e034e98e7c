"""Functions that move or repeat elements, cut arrays and put them together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import check, evaluate, few, numbers

import buropt as bo

VALUES = {
    "np.append": lambda a, v, p: np.append(a, v) + np.append(v, a),
    "np.array_split": lambda a, v, p: np.array_split(v, 2)[0] * np.array_split(v, [1])[0],
    "np.atleast_3d": lambda a, v, p: np.atleast_3d(a) + np.atleast_3d(v[0], a)[0],
    "np.block": lambda a, v, p: np.block([[a, a], [v, 2 * v]]),
    "np.broadcast_arrays": lambda a, v, p: np.broadcast_arrays(v, a)[0] * a,
    "np.dsplit": lambda a, v, p: np.dsplit(a[None], [1])[1],
    "np.dstack": lambda a, v, p: np.dstack([a, -a]),
    "np.fft.fftshift": lambda a, v, p: np.fft.fftshift(a),
    "np.fft.ifftshift": lambda a, v, p: np.fft.ifftshift(a) + np.fft.ifftshift(v, 0),
    "np.fliplr": lambda a, v, p: np.fliplr(a),
    "np.flipud": lambda a, v, p: np.flipud(a) + np.flipud(v),
    "np.hsplit": lambda a, v, p: np.hsplit(a, 3)[1] * np.hsplit(v, [1])[0],
    "np.meshgrid": lambda a, v, p: np.meshgrid(v, p[:2])[0] - np.meshgrid(v, p[:2])[1],
    "np.repeat": lambda a, v, p: np.repeat(a, 2) + np.repeat(v, [3, 0, 9]),
    "np.resize": lambda a, v, p: np.resize(a, (2, 2)) + np.resize(v, (2, 2)),
    "np.roll": lambda a, v, p: np.roll(a, 1, axis=1) + np.roll(v, -1),
    "np.rollaxis": lambda a, v, p: np.rollaxis(a, 1),
    "np.rot90": lambda a, v, p: np.rot90(a) + np.rot90(a, -1),
    "np.split": lambda a, v, p: np.split(v, 3)[1] * np.split(a, [1])[1],
    "np.tile": lambda a, v, p: np.tile(v, (2, 1)) + np.tile(a, 1),
    "np.vsplit": lambda a, v, p: np.vsplit(a, 2)[1],
}
if hasattr(np, "matrix_transpose"):
    VALUES["np.matrix_transpose"] = lambda a, v, p: np.matrix_transpose(a)
if hasattr(np, "unstack"):
    VALUES["np.unstack"] = lambda a, v, p: np.unstack(a)[1] + np.unstack(v)[0]

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)
FULL_SHAPES = hnp.array_shapes(min_dims=2, max_dims=4, max_side=3)


@few
@given(shape=SHAPES, data=st.data())
def test_roll(shape, data):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    shift = data.draw(st.integers(-7, 7))
    check(lambda x: np.roll(x, shift, axis), numbers(shape))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=3))
    shifts = data.draw(st.lists(st.integers(-5, 5), min_size=len(axes), max_size=len(axes)))
    check(lambda x: np.roll(x, shifts, axes) + np.roll(x, 2, axes), numbers(shape))


@few
@given(shape=FULL_SHAPES, data=st.data())
def test_turns_and_axes(shape, data):
    axes = data.draw(st.permutations(range(-len(shape), 0)))[:2]
    k = data.draw(st.integers(-5, 5))
    check(lambda x: np.rot90(x, k, axes), numbers(shape))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    start = data.draw(st.integers(-len(shape), len(shape)))
    check(lambda x: np.rollaxis(x, axis, start), numbers(shape))
    check(lambda x: np.fft.fftshift(x, axis) + np.fft.ifftshift(x), numbers(shape))


@few
@given(shape=SHAPES, reps=st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=4))
def test_tile(shape, reps):
    check(lambda x: np.tile(x, reps), numbers(shape))


@few
@given(shape=SHAPES, data=st.data())
def test_repeat(shape, data):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    counts = data.draw(
        st.integers(0, 3) | st.lists(st.integers(0, 3), min_size=extent, max_size=extent)
    )
    check(lambda x: np.repeat(x, np.array(counts, int), axis), numbers(shape))


@few
@given(shape=SHAPES, new=st.integers(0, 9) | hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
def test_resize(shape, new):
    check(lambda x: np.resize(x, new), numbers(shape))


@few
@given(shape=SHAPES, data=st.data())
def test_splits(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    parts = data.draw(st.integers(1, 5) | st.lists(st.integers(-4, 5), max_size=3))
    check(lambda x: np.array_split(x, parts, axis), numbers(shape))
    if isinstance(parts, list):
        check(lambda x: np.split(x, parts, axis), numbers(shape))
    check(lambda x: np.split(x, shape[axis] or 1, axis), numbers(shape))


def test_splits_along_named_axes():
    x = numbers((2, 4, 6))
    check(lambda x: np.hsplit(x, 2) + np.vsplit(x, [1]) + np.dsplit(x, (2, -1)), x)
    check(lambda x: np.hsplit(x, np.array([1, 3])), x[0, 0])
    if hasattr(np, "unstack"):
        check(lambda x: np.unstack(x, axis=-1), x)


@few
@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0))
def test_broadcast_arrays(shapes):
    check(lambda *x: np.broadcast_arrays(*x), *[numbers(shape) for shape in shapes.input_shapes])


@few
@given(
    sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    sparse=st.booleans(),
    copy=st.booleans(),
    indexing=st.sampled_from(["xy", "ij"]),
)
def test_meshgrid(sizes, sparse, copy, indexing):
    options = {"sparse": sparse, "copy": copy, "indexing": indexing}
    check(lambda *x: np.meshgrid(*x, **options), *[numbers(size) for size in sizes])


@pytest.mark.parametrize("shapes", [[(2, 3, 2), (2, 3, 1)], [(3,), (3,)], [(2, 3)] * 2, [(), ()]])
def test_joins(shapes):
    values = [numbers(shape, k) for k, shape in enumerate(shapes)]
    check(lambda *x: np.dstack(x), *values)
    check(lambda x, y: np.append(x, y), *values)
    check(lambda x, y: np.atleast_3d(x, y), *values)
    check(lambda x, y: np.append(x, y, axis=-1) if x.ndim else x, *values)
    check(lambda x, y: np.block([x, y]), *values)
    check(lambda x, y: np.block([[x, x], [x, x]]), *values)


def test_blocks_of_several_kinds():
    a, v = numbers((2, 3)), numbers(3)
    check(lambda a, v: np.block([[a, a[:, :1]], [v, v[0]]]), a, v)
    check(lambda a, v: np.block([[np.zeros((2, 2)), a], [np.eye(2), 2 * a]]), a, v)
    check(lambda a, v: np.block(a) + np.block([v]) + np.block([[v]]), a, v)
    check(lambda a, v: np.block([[[v], [v]], [[v], [v]]]), a, v)
    check(lambda a, v: np.block([a > 0, v[:2, None] > 1]), a, v)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.repeat(x, x), bo.TraceError, "traced number of repeats"),
        (lambda x: np.repeat(x, [1, 2]), ValueError, "broadcast"),
        (lambda x: np.repeat(x, -1), ValueError, "negative"),
        (lambda x: np.split(x, 2), ValueError, r"axis 0 .* into 2 equal parts.*np.array_split"),
        (lambda x: np.array_split(x, 0), ValueError, "0 parts are asked for"),
        (lambda x: np.vsplit(x, 1), ValueError, r"of shape \(3,\) has less than 2 axes"),
        (lambda x: np.dsplit(x[None], 1), ValueError, "has less than 3 axes"),
        (lambda x: np.roll(x, 1, axis=1), np.exceptions.AxisError, "axis 1 is out of bounds"),
        (lambda x: np.rollaxis(x, 0, 5), np.exceptions.AxisError, "axis 5 is out of bounds"),
        (lambda x: np.rot90(x), np.exceptions.AxisError, "axis 1 is out of bounds"),
        (lambda x: np.resize(x, (-1, 2)), ValueError, "must not be negative"),
        (lambda x: np.block([[x], x]), ValueError, "lists of different depth are mixed"),
        (lambda x: np.block([[x], []]), ValueError, "empty"),
        (lambda x: np.block([(x, x), x]), TypeError, "Instead: lists"),
        (lambda x: np.meshgrid(x, x, indexing="yx"), ValueError, "must be 'xy' or 'ij'"),
        (lambda x: np.broadcast_arrays(x, np.ones(2)), ValueError, "do not broadcast together"),
        (lambda x: np.append(x, [[1.0]], axis=0), ValueError, "concatenate"),
    ],
)
def test_mistakes(function, error, text):
    with pytest.raises(error, match=text):
        evaluate(function, numbers(3))
