"""Rules for products of arrays that are sums over axes of both."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of
from buropt.trace.ufuncs import matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.dot, "a b out")
def dot(trace: Trace, a: Any, b: Any) -> Tracer:
    """The sum over the last axis of a and the last but one of b; a scalar multiplies."""
    left, right = trace.lift(a), trace.lift(b)
    if left.ndim == 0 or right.ndim == 0:
        product: Tracer = left * right
        return product
    if right.ndim <= 2:
        return matmul(trace, left, right)
    return _contracted(trace, "np.dot", left, right, [left.ndim - 1], [right.ndim - 2])


@function(np.inner, "a b")
def inner(trace: Trace, a: Any, b: Any) -> Tracer:
    """The sum of products over the last axes."""
    left, right = trace.lift(a), trace.lift(b)
    if left.ndim == 0 or right.ndim < 2:
        return dot(trace, left, right)
    if right.ndim == 2:
        return dot(trace, left, right.T)
    return _contracted(trace, "np.inner", left, right, [left.ndim - 1], [right.ndim - 1])


@function(np.vdot, "a b")
def vdot(trace: Trace, a: Any, b: Any) -> Tracer:
    """The dot product of the flattened operands."""
    return dot(trace, trace.lift(a).ravel(), trace.lift(b).ravel())


@function(np.outer, "a b out")
def outer(trace: Trace, a: Any, b: Any) -> Tracer:
    """All products of two flattened operands."""
    left, right = trace.lift(a), trace.lift(b)
    product: Tracer = left.reshape(-1, 1) * right.reshape(1, -1)
    return product


@function(np.tensordot, "a b axes")
def tensordot(trace: Trace, a: Any, b: Any, axes: Any = 2) -> Tracer:
    """The sum of products over given axes of a and b, or over the last of a and the first of b."""
    left, right = trace.lift(a), trace.lift(b)
    if isinstance(axes, list | tuple | np.ndarray):
        of_left, of_right = _listed(trace, axes[0], left), _listed(trace, axes[1], right)
    else:
        count = operator.index(axes)
        of_left = axes_of(trace, list(range(-count, 0)), left.ndim)
        of_right = axes_of(trace, list(range(count)), right.ndim)
    return _contracted(trace, "np.tensordot", left, right, of_left, of_right)


def _listed(trace: Trace, axes: Any, array: Tracer) -> list[int]:
    return axes_of(trace, list(axes) if isinstance(axes, np.ndarray) else axes, array.ndim)


def _contracted(
    trace: Trace, name: str, left: Tracer, right: Tracer, of_left: list[int], of_right: list[int]
) -> Tracer:
    """The sum of products over pairs of axes; the others of the left come first in the result."""
    extents = [left.shape[k] for k in of_left]
    if extents != [right.shape[k] for k in of_right]:
        raise ValueError(
            f"{name}: axes {of_left} of an array of shape {left.shape} do not fit axes {of_right} "
            f"of one of shape {right.shape}. {location(trace.name)}"
        )
    rows = [k for k in range(left.ndim) if k not in of_left]
    columns = [k for k in range(right.ndim) if k not in of_right]
    shape = [left.shape[k] for k in rows] + [right.shape[k] for k in columns]
    n_rows = math.prod(shape[: len(rows)])
    n_columns, n = math.prod(shape[len(rows) :]), math.prod(extents)
    a = left.transpose(rows + of_left).reshape(n_rows, n)
    b = right.transpose(of_right + columns).reshape(n, n_columns)
    return trace.fresh(matmul(trace, a, b).reshape(shape))


# The same functions by the names that they have in np.linalg from NumPy 2 on.
_NUMPY_2: Any = np.linalg
if hasattr(_NUMPY_2, "tensordot"):
    function(_NUMPY_2.tensordot, "x1 x2 axes")(
        lambda trace, x1, x2, axes=2: tensordot(trace, x1, x2, axes)
    )
