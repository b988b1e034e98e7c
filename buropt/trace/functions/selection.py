"""Rules that select between values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function, unsupported
from buropt.trace.kinds import highest
from buropt.trace.ufuncs import as_mask

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.where, "condition x y")
def where(trace: Trace, condition: Any, x: Any = None, y: Any = None) -> Tracer:
    """`x` where the condition holds, `y` elsewhere; the branch not taken contributes nothing."""
    if x is None or y is None:
        raise unsupported(trace, "np.where with a condition only")
    mask = as_mask(trace, trace.lift(condition))
    yes, no = trace.lift(x), trace.lift(y)
    return trace.emit("where", (mask, yes, no), kind=highest((yes.kind, no.kind)))


@function(np.clip, "a a_min a_max out min max")
def clip(
    trace: Trace, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None
) -> Tracer:
    """Limit to [a_min, a_max]; on the border itself the derivative is 1."""
    array = trace.lift(a)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    # A NaN stays, be it in the array (not equal to itself) or in a bound (compares false).
    if low is not None:
        array = where(trace, (array >= low) | (array != array), array, low)
    if high is not None:
        array = where(trace, (array <= high) | (array != array), array, high)
    return trace.fresh(array)
