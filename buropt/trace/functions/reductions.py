"""Rules for reductions over axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.functions._arguments import axes_of, total_kind

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.sum, "a axis dtype out keepdims initial where")
def sum_(
    trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None
) -> Tracer:
    """The sum over some axes; a mask is counted."""
    array = trace.lift(a)
    kind = total_kind(trace, "np.sum", dtype, array)
    axes = axes_of(trace, axis, array.ndim)
    return trace.emit("sum", (array,), {"axes": axes, "keepdims": int(keepdims)}, kind=kind)


@function(np.prod, "a axis dtype out keepdims initial where")
def prod(
    trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None
) -> Tracer:
    """The product over some axes."""
    array = trace.lift(a)
    kind = total_kind(trace, "np.prod", dtype, array)
    attributes = {"axes": axes_of(trace, axis, array.ndim), "keepdims": int(keepdims)}
    return trace.emit("prod", (array,), attributes, kind=kind)


@function(np.mean, "a axis dtype out keepdims where")
def mean(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The mean over some axes."""
    array = trace.lift(a)
    count = math.prod(array.shape[k] for k in axes_of(trace, axis, array.ndim))
    total = sum_(trace, array, axis, keepdims)
    return trace.emit("divide", (total, trace.constant(float(count))))
