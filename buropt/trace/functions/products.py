"""Rules for products of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.ufuncs import matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.dot, "a b out")
def dot(trace: Trace, a: Any, b: Any) -> Tracer:
    """Vectors and matrices as `a @ b`; a scalar operand multiplies."""
    left, right = trace.lift(a), trace.lift(b)
    if left.ndim == 0 or right.ndim == 0:
        product: Tracer = left * right
        return product
    return matmul(trace, left, right)


@function(np.inner, "a b")
def inner(trace: Trace, a: Any, b: Any) -> Tracer:
    """The sum of products over the last axes."""
    left, right = trace.lift(a), trace.lift(b)
    return dot(trace, left, right.T if right.ndim == 2 else right)


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
