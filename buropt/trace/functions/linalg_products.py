"""Rules for products of matrices, and for what `np.linalg` repeats from elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of, total_kind
from buropt.trace.functions.joining import stack
from buropt.trace.functions.linalg import transposed
from buropt.trace.functions.products import outer
from buropt.trace.functions.shapes import broadcast_to, moveaxis
from buropt.trace.ufuncs import matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.linalg.multi_dot, "arrays out")
def multi_dot(trace: Trace, arrays: Any) -> Tracer:
    """The product of several matrices in the order that takes the fewest multiplications."""
    factors = [trace.lift(array) for array in arrays]
    shapes = [factor.shape for factor in factors]
    ranks = [len(shape) for shape in shapes]
    if len(factors) < 2 or not {*ranks[1:-1]} <= {2} or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ValueError(
            f"np.linalg.multi_dot: shapes {shapes} are not at least two matrices, of which the "
            f"first and the last may be vectors. {location(trace.name)}"
        )
    first, last = shapes[0], shapes[-1]
    if ranks[0] == 1:
        factors[0] = factors[0].reshape(1, -1)
    if ranks[-1] == 1:
        factors[-1] = factors[-1].reshape(-1, 1)
    product = _multiplied(factors, _best_splits([factor.shape for factor in factors]))
    rows, columns = first[:-1], last[1:]
    return trace.fresh(product.reshape(rows + columns))


def _best_splits(shapes: Sequence[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """For each run of factors [i, j) the place where its product is best split in two."""
    extents = [shape[0] for shape in shapes] + [shapes[-1][1]]
    cost = {(i, i + 1): 0 for i in range(len(shapes))}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, len(shapes) + 1):
        for i in range(len(shapes) - length + 1):
            j = i + length
            candidates = [
                (cost[i, k] + cost[k, j] + extents[i] * extents[k] * extents[j], k)
                for k in range(i + 1, j)
            ]
            cost[i, j], split[i, j] = min(candidates)
    return split


def _multiplied(factors: list[Tracer], split: dict[tuple[int, int], int]) -> Any:
    def product(i: int, j: int) -> Any:
        if j == i + 1:
            return factors[i]
        return product(i, split[i, j]) @ product(split[i, j], j)

    return product(0, len(factors))


@function(np.kron, "a b")
def kron(trace: Trace, a: Any, b: Any) -> Tracer:
    """Blocks of b, one for each element of a and scaled by it."""
    left, right = trace.lift(a), trace.lift(b)
    ndim = max(left.ndim, right.ndim)
    of_left = (1,) * (ndim - left.ndim) + left.shape
    of_right = (1,) * (ndim - right.ndim) + right.shape
    spread = itertools.chain.from_iterable((extent, 1) for extent in of_left)
    blocks = itertools.chain.from_iterable((1, extent) for extent in of_right)
    product: Tracer = left.reshape(tuple(spread)) * right.reshape(tuple(blocks))
    return product.reshape([m * n for m, n in zip(of_left, of_right, strict=True)])


@function(np.trace, "a offset axis1 axis2 dtype out")
def trace_(
    trace: Trace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Tracer:
    """The sum of a diagonal of the matrices in two of the axes."""
    array = trace.lift(a)
    kind = total_kind(trace, "np.trace", dtype, array)
    diagonal = _diagonal(trace, array, offset, axis1, axis2)
    attributes = {"axes": [diagonal.ndim - 1], "keepdims": 0}
    return trace.emit("sum", (diagonal,), attributes, kind=kind)


def _diagonal(trace: Trace, array: Tracer, offset: int, axis1: int, axis2: int) -> Tracer:
    """The diagonals of the matrices in two axes, as a new last axis."""
    axes = axes_of(trace, (axis1, axis2), array.ndim)
    moved = moveaxis(trace, array, axes, (-2, -1))
    rows, columns = moved.shape[-2:]
    start = offset if offset >= 0 else -offset * columns
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    flat = moved.reshape((*moved.shape[:-2], rows * columns))
    return flat[..., start : start + length * (columns + 1) : columns + 1]


@function(np.cross, "a b axisa axisb axisc axis")
def cross(
    trace: Trace,
    a: Any,
    b: Any,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tracer:
    """The cross product of vectors of length 3; of length 2, whose third component counts as 0."""
    if axis is not None:
        axisa = axisb = axisc = axis
    left = moveaxis(trace, a, axisa, -1)
    right = moveaxis(trace, b, axisb, -1)
    lengths = (left.shape[-1], right.shape[-1])
    if not set(lengths) <= {2, 3}:
        raise ValueError(
            f"np.cross: vectors of lengths {lengths[0]} and {lengths[1]} have no cross product; "
            f"it is for length 3 (or 2). {location(trace.name)}"
        )
    (a0, a1, *a2), (b0, b1, *b2) = (_components(array) for array in (left, right))
    third: Tracer = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return third
    zero = trace.constant(0.0)
    first, second = (a2 or [zero])[0], (b2 or [zero])[0]
    parts = (a1 * second - first * b1, first * b0 - a0 * second, third)
    return stack(trace, [broadcast_to(trace, part, third.shape) for part in parts], axisc)


def _components(array: Any) -> list[Any]:
    return [array[..., k] for k in range(array.shape[-1])]


# The functions that NumPy 2 has under a second name in np.linalg.
_NUMPY_2: Any = np.linalg
if hasattr(_NUMPY_2, "vecdot"):

    @function(_NUMPY_2.matmul, "x1 x2")
    def linalg_matmul(trace: Trace, x1: Any, x2: Any) -> Tracer:
        """`x1 @ x2`."""
        return matmul(trace, trace.lift(x1), trace.lift(x2))

    @function(_NUMPY_2.vecdot, "x1 x2 axis")
    def vecdot(trace: Trace, x1: Any, x2: Any, axis: int = -1) -> Tracer:
        """The dot products along an axis."""
        left = moveaxis(trace, x1, axis, -1)
        right = moveaxis(trace, x2, axis, -1)
        if left.shape[-1] != right.shape[-1]:
            raise ValueError(
                f"np.linalg.vecdot: axis {axis} has extents {left.shape[-1]} and "
                f"{right.shape[-1]}. {location(trace.name)}"
            )
        product: Tracer = np.sum(left * right, axis=-1)
        return product

    @function(_NUMPY_2.outer, "x1 x2")
    def linalg_outer(trace: Trace, x1: Any, x2: Any) -> Tracer:
        """All products of the elements of two vectors."""
        left, right = trace.lift(x1), trace.lift(x2)
        if (left.ndim, right.ndim) != (1, 1):
            raise ValueError(
                f"np.linalg.outer: arrays of shapes {left.shape} and {right.shape} are not "
                f"vectors. {location(trace.name)} Instead: np.outer, which flattens."
            )
        return outer(trace, left, right)

    @function(_NUMPY_2.cross, "x1 x2 axis")
    def linalg_cross(trace: Trace, x1: Any, x2: Any, axis: int = -1) -> Tracer:
        """The cross product of vectors of length 3."""
        left, right = trace.lift(x1), trace.lift(x2)
        if not left.shape[axis] == right.shape[axis] == 3:
            raise ValueError(
                f"np.linalg.cross: axis {axis} of shapes {left.shape} and {right.shape} does not "
                f"have length 3. {location(trace.name)}"
            )
        return cross(trace, left, right, axis=axis)

    @function(_NUMPY_2.trace, "x offset dtype")
    def linalg_trace(trace: Trace, x: Any, offset: int = 0, dtype: Any = None) -> Tracer:
        """The sums of a diagonal of the matrices in the last two axes."""
        return trace_(trace, x, offset, -2, -1, dtype)

    @function(_NUMPY_2.diagonal, "x offset")
    def linalg_diagonal(trace: Trace, x: Any, offset: int = 0) -> Tracer:
        """The diagonals of the matrices in the last two axes."""
        return _diagonal(trace, trace.lift(x), offset, -2, -1)

    def matrix_transpose(trace: Trace, x: Any) -> Tracer:
        """The matrices in the last two axes, transposed."""
        array = trace.lift(x)
        if array.ndim < 2:
            raise ValueError(
                f"np.matrix_transpose: an array of shape {array.shape} is not a matrix. "
                f"{location(trace.name)}"
            )
        return transposed(trace, array)

    for numpy_function in (_NUMPY_2.matrix_transpose, np.matrix_transpose):
        function(numpy_function, "x")(matrix_transpose)
