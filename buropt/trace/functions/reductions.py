"""Rules for reductions over axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.functions._arguments import axes_of, total_kind
from buropt.trace.functions._elements import begun, counting
from buropt.trace.functions.shapes import broadcast_to

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.sum, "a axis dtype out keepdims initial where")
def sum_(
    trace: Trace,
    a: Any,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    """The sum over some axes; a mask is counted."""
    array = trace.lift(a)
    kind = total_kind(trace, "np.sum", dtype, array)
    attributes = {"axes": axes_of(trace, axis, array.ndim), "keepdims": int(keepdims)}
    array = counting(trace, "np.sum", array, where, 0)
    total = trace.emit("sum", (array,), attributes, kind=kind)
    return begun(trace, "np.sum", np.add, total, initial)


@function(np.prod, "a axis dtype out keepdims initial where")
def prod(
    trace: Trace,
    a: Any,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    """The product over some axes."""
    array = trace.lift(a)
    kind = total_kind(trace, "np.prod", dtype, array)
    attributes = {"axes": axes_of(trace, axis, array.ndim), "keepdims": int(keepdims)}
    array = counting(trace, "np.prod", array, where, 1)
    product = trace.emit("prod", (array,), attributes, kind=kind)
    return begun(trace, "np.prod", np.multiply, product, initial)


@function(np.mean, "a axis dtype out keepdims where")
def mean(
    trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, where: Any = True
) -> Tracer:
    """The mean over some axes."""
    array = trace.lift(a)
    total = sum_(trace, array, axis, keepdims, where=where)
    if where is True:
        count = math.prod(array.shape[k] for k in axes_of(trace, axis, array.ndim))
        return trace.emit("divide", (total, trace.constant(float(count))))
    counted = broadcast_to(trace, where, array.shape)
    return trace.emit("divide", (total, sum_(trace, counted, axis, keepdims)))
