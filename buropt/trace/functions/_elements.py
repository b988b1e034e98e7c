"""What `where=` and `initial=` mean for a reduction: which elements count, and where it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.errors import TraceError, location
from buropt.trace.functions.selection import where
from buropt.trace.functions.shapes import broadcast_to
from buropt.trace.kinds import highest

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def counting(trace: Trace, name: str, array: Tracer, mask: Any, neutral: Any) -> Tracer:
    """The array with `neutral`, which changes no result, for the elements that do not count."""
    if mask is True:
        return array
    chosen = trace.lift(mask)
    if not chosen.is_bool:
        raise TraceError(
            f"{name}: where= must be a mask, got dtype {chosen.dtype}. {location(trace.name)} "
            "Instead: where=(mask != 0)."
        )
    return where(trace, broadcast_to(trace, chosen, array.shape), array, neutral)


def begun(trace: Trace, name: str, ufunc: np.ufunc, result: Tracer, initial: Any) -> Tracer:
    """The result of a reduction by `ufunc` that began with a number."""
    if initial is None:
        return result
    first = first_value(trace, name, initial, result)
    total: Tracer = ufunc(first, result)
    return total


def first_value(trace: Trace, name: str, initial: Any, like: Tracer) -> Tracer:
    """The argument `initial=` of a reduction whose result is like this."""
    first = trace.lift(initial)
    if first.shape != ():
        what, instead = f"of shape {first.shape}", "one number"
    elif highest((first.kind, like.kind)) != like.kind:
        what = f"of dtype {first.dtype} among {like.dtype}"
        instead = f"an initial value of dtype {like.dtype}"
    else:
        return trace.number(first) if like.kind == "f" else first
    raise TraceError(f"{name}: initial= {what}. {location(trace.name)} Instead: {instead}.")
