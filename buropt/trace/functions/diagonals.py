"""Rules for diagonals and triangles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of
from buropt.trace.functions.joining import concatenate
from buropt.trace.functions.selection import where
from buropt.trace.functions.shapes import moveaxis

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.diagonal, "a offset axis1 axis2")
def diagonal(trace: Trace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    """The diagonals of the matrices in two of the axes, as a new last axis."""
    array = trace.lift(a)
    if array.ndim < 2:
        raise ValueError(
            f"np.diagonal: an array of shape {array.shape} has no diagonal. {location(trace.name)} "
            "Instead: np.diag(x) for the matrix with diagonal x."
        )
    moved = moveaxis(trace, array, axes_of(trace, (axis1, axis2), array.ndim), (-2, -1))
    rows, columns = moved.shape[-2:]
    start = offset if offset >= 0 else -offset * columns
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    flat = moved.reshape((*moved.shape[:-2], rows * columns))
    if length == 0:
        return flat[..., :0]
    return flat[..., start : start + (length - 1) * (columns + 1) + 1 : columns + 1]


@function(np.diag, "v k")
def diag(trace: Trace, v: Any, k: int = 0) -> Tracer:
    """The matrix with this diagonal, or the diagonal of a matrix."""
    array = trace.lift(v)
    if array.ndim == 2:
        return diagonal(trace, array, k)
    if array.ndim != 1:
        raise ValueError(
            f"np.diag: an array of shape {array.shape} is neither a vector nor a matrix. "
            f"{location(trace.name)} Instead: np.diagonal(x, axis1=..., axis2=...)."
        )
    n = array.size + abs(k)
    # Element (i, i + k) is number i of a diagonal above the main one, and i + k of one below.
    padding = trace.constant(np.zeros(abs(k)), "b")
    parts = (padding, array) if k > 0 else (array, padding)
    row = concatenate(trace, parts, 0) if k else array
    return where(trace, np.eye(n, k=k, dtype=bool), row, False)


@function(np.diagflat, "v k")
def diagflat(trace: Trace, v: Any, k: int = 0) -> Tracer:
    """The matrix with the flattened array as diagonal."""
    return diag(trace, trace.lift(v).ravel(), k)


@function(np.tril, "m k")
def tril(trace: Trace, m: Any, k: int = 0) -> Tracer:
    """The lower triangle, with zeros above diagonal k."""
    return where(trace, _lower(trace, m, k), m, False)


@function(np.triu, "m k")
def triu(trace: Trace, m: Any, k: int = 0) -> Tracer:
    """The upper triangle, with zeros below diagonal k."""
    return where(trace, _lower(trace, m, k - 1), False, m)


def _lower(trace: Trace, m: Any, k: int) -> np.ndarray[Any, Any]:
    shape = trace.lift(m).shape[-2:]
    return np.tri(shape[0], shape[-1], k).astype(bool)


@function(np.tril_indices_from, "arr k")
def tril_indices_from(trace: Trace, arr: Any, k: int = 0) -> Any:
    """The indices of the lower triangle: they depend on the shape alone."""
    return np.tril_indices_from(np.broadcast_to(0.0, trace.lift(arr).shape), k)


@function(np.triu_indices_from, "arr k")
def triu_indices_from(trace: Trace, arr: Any, k: int = 0) -> Any:
    """The indices of the upper triangle: they depend on the shape alone."""
    return np.triu_indices_from(np.broadcast_to(0.0, trace.lift(arr).shape), k)


@function(np.diag_indices_from, "arr")
def diag_indices_from(trace: Trace, arr: Any) -> Any:
    """The indices of the main diagonal: they depend on the shape alone."""
    return np.diag_indices_from(np.broadcast_to(0.0, trace.lift(arr).shape))
