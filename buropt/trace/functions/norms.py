"""Rules for norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import UnsupportedOpError, location
from buropt.trace.functions._arguments import axes_of
from buropt.trace.functions.linalg import eigvalsh, inv, square, transposed
from buropt.trace.functions.selection import where
from buropt.trace.functions.shapes import expand_dims, moveaxis
from buropt.trace.ufuncs import matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

_NUMPY_2: Any = np.linalg  # type checkers look at the oldest NumPy
_INF = float("inf")


@function(np.linalg.norm, "x ord axis keepdims")
def norm(trace: Trace, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The norm of vectors (one axis) or matrices (two); without `ord`, of all elements."""
    array = trace.number(trace.lift(x))
    axes = axes_of(trace, axis, array.ndim)
    if ord is None and (axis is None or len(axes) <= 2):
        return _euclidean(trace, array, axes, keepdims)
    if len(axes) == 1:
        return _vector_norm(trace, "np.linalg.norm", array, axes, ord, keepdims)
    if len(axes) == 2:
        return _matrix_norm(trace, "np.linalg.norm", array, axes, ord, keepdims)
    raise ValueError(
        f"np.linalg.norm: ord={ord!r} is for one axis (vectors) or two (matrices), not "
        f"{len(axes)}. {location(trace.name)} Instead: choose them by axis=."
    )


if hasattr(_NUMPY_2, "vector_norm"):

    @function(_NUMPY_2.vector_norm, "x axis keepdims ord")
    def vector_norm(
        trace: Trace, x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2
    ) -> Tracer:
        """The norm of all elements along some axes, taken as one vector."""
        array = trace.number(trace.lift(x))
        axes = axes_of(trace, axis, array.ndim)
        return _vector_norm(trace, "np.linalg.vector_norm", array, axes, ord, keepdims)

    @function(_NUMPY_2.matrix_norm, "x keepdims ord")
    def matrix_norm(trace: Trace, x: Any, keepdims: bool = False, ord: Any = "fro") -> Tracer:
        """The norm of the matrices in the last two axes."""
        array = trace.number(trace.lift(x))
        axes = axes_of(trace, (-2, -1), array.ndim)
        return _matrix_norm(trace, "np.linalg.matrix_norm", array, axes, ord, keepdims)


@function(np.linalg.cond, "x p")
def cond(trace: Trace, x: Any, p: Any = None) -> Tracer:
    """The condition number, the norm of the matrix times that of its inverse."""
    matrix = square(trace, "np.linalg.cond", x)
    axes = axes_of(trace, (-2, -1), matrix.ndim)
    norms = [
        _matrix_norm(trace, "np.linalg.cond", one, axes, 2 if p is None else p, False)
        for one in (matrix, inv(trace, matrix))
    ]
    return trace.emit("multiply", norms)


def _vector_norm(
    trace: Trace, name: str, array: Tracer, axes: list[int], ord: Any, keepdims: bool
) -> Tracer:
    if isinstance(ord, str):
        raise ValueError(
            f"{name}: ord={ord!r} is a norm of matrices, not of vectors. {location(trace.name)} "
            "Instead: a number, or np.inf."
        )
    if ord == 2:
        return _euclidean(trace, array, axes, keepdims)
    return _power_norm(trace, array, tuple(axes), float(ord), keepdims)


def _power_norm(
    trace: Trace, array: Any, axes: tuple[int, ...], p: float, keepdims: bool
) -> Tracer:
    """The p-norm by its formula; where it is 0 so is its derivative."""
    size = abs(array)
    if math.isinf(p):
        largest: Tracer = (size.max if p > 0 else size.min)(axis=axes, keepdims=keepdims)
        return largest
    terms = 1.0 * (array != 0) if p == 0 else size**p
    total: Tracer = terms.sum(axis=axes, keepdims=keepdims)
    if p in (0, 1):
        return total
    is_zero = total == 0
    return where(trace, is_zero, 0.0, where(trace, is_zero, 1.0, total) ** (1 / p))


def _euclidean(trace: Trace, array: Tracer, axes: list[int], keepdims: bool) -> Tracer:
    """The root of the sum of squares, with derivative 0 at 0."""
    square_ = trace.emit("square", (array,))
    total = trace.emit("sum", (square_,), {"axes": axes, "keepdims": int(bool(keepdims))})
    return trace.emit("norm_root", (total,))


def _matrix_norm(
    trace: Trace, name: str, array: Any, axes: list[int], ord: Any, keepdims: bool
) -> Tracer:
    row, column = axes
    if ord in ("fro", "f"):
        return _euclidean(trace, array, axes, keepdims)
    if ord == 2:
        return _spectral(trace, array, axes, keepdims)
    if ord in (-2, "nuc"):
        raise UnsupportedOpError(
            f"{name}: ord={ord!r} needs all singular values, which cannot be traced. "
            f"{location(trace.name)} Instead: ord='fro', 1, 2 or np.inf."
        )
    if ord not in (1, -1, _INF, -_INF):
        raise ValueError(
            f"{name}: there is no norm of matrices with ord={ord!r}. {location(trace.name)} "
            "Instead: 'fro', 1, -1, 2, np.inf or -np.inf."
        )
    added, other = axes if abs(ord) == 1 else (column, row)
    sums = abs(array).sum(axis=added, keepdims=True)
    result: Tracer = (sums.max if ord > 0 else sums.min)(axis=other, keepdims=True)
    return result if keepdims else result.squeeze(axis=(row, column))


def _spectral(trace: Trace, array: Tracer, axes: list[int], keepdims: bool) -> Tracer:
    """The largest singular value, as the root of an eigenvalue."""
    matrix = moveaxis(trace, array, axes, (-2, -1))
    other = transposed(trace, matrix)
    pair = (matrix, other) if matrix.shape[-2] <= matrix.shape[-1] else (other, matrix)
    largest = eigvalsh(trace, matmul(trace, *pair))[..., -1]
    result = trace.emit("norm_root", (largest,))
    return expand_dims(trace, result, tuple(axes)) if keepdims else result
