"""Rules that count or ask about all elements: constants of differentiation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.functions.reductions import sum_
from buropt.trace.ufuncs import as_mask

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.all, "a axis out keepdims where")
def all_(
    trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, where: Any = True
) -> Tracer:
    """Whether all elements over some axes are true."""
    misses = trace.emit("logical_not", (as_mask(trace, trace.lift(a)),), kind="b")
    result: Tracer = sum_(trace, misses, axis, keepdims, where=where) == 0
    return result


@function(np.any, "a axis out keepdims where")
def any_(
    trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, where: Any = True
) -> Tracer:
    """Whether any element over some axes is true."""
    hits = as_mask(trace, trace.lift(a))
    result: Tracer = sum_(trace, hits, axis, keepdims, where=where) > 0
    return result


@function(np.count_nonzero, "a axis keepdims")
def count_nonzero(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """How many elements over some axes are not 0."""
    return sum_(trace, as_mask(trace, trace.lift(a)), axis, keepdims)
