"""Rules that join arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function, unsupported_keyword
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of, parts_of, result_kind
from buropt.trace.functions.shapes import atleast_1d, atleast_2d, expand_dims
from buropt.trace.kinds import highest

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.concatenate, "arrays axis out dtype casting")
def concatenate(trace: Trace, arrays: Any, axis: Any = 0, dtype: Any = None) -> Tracer:
    """Join arrays along an axis that they have."""
    parts = parts_of(trace, arrays)
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    if any(part.ndim == 0 for part in parts):
        raise ValueError(
            "buropt.concatenate: a value of shape () has no axis to join along. "
            f"{location(trace.name)} Instead: np.stack([...])."
        )
    (k,) = axes_of(trace, axis, parts[0].ndim)
    natural = highest(part.kind for part in parts)
    kind = result_kind(trace, "np.concatenate", dtype, natural)
    if highest((kind, natural)) != kind:  # NumPy refuses this cast as well
        raise unsupported_keyword(trace, "np.concatenate", "dtype")
    return trace.emit("concatenate", parts, {"axis": k}, kind=kind)


@function(np.stack, "arrays axis out dtype casting")
def stack(trace: Trace, arrays: Any, axis: int = 0, dtype: Any = None) -> Tracer:
    """Join arrays of one shape along a new axis."""
    parts = parts_of(trace, arrays)
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"buropt.stack: all arrays must have the same shape, got {sorted(shapes)}. "
            f"{location(trace.name)} Instead: np.concatenate([...]), which joins along an axis."
        )
    return concatenate(trace, [expand_dims(trace, part, axis) for part in parts], axis, dtype)


@function(np.vstack, "tup dtype casting")
def vstack(trace: Trace, tup: Any, dtype: Any = None) -> Tracer:
    """Join as rows."""
    return concatenate(
        trace, [atleast_2d(trace, (part,)) for part in parts_of(trace, tup)], 0, dtype
    )


@function(np.hstack, "tup dtype casting")
def hstack(trace: Trace, tup: Any, dtype: Any = None) -> Tracer:
    """Join along the second axis, vectors along their only one."""
    parts = [atleast_1d(trace, (part,)) for part in parts_of(trace, tup)]
    return concatenate(trace, parts, 0 if parts[0].ndim == 1 else 1, dtype)


@function(np.column_stack, "tup")
def column_stack(trace: Trace, tup: Any) -> Tracer:
    """Join vectors as columns."""
    parts = [part if part.ndim > 1 else part.reshape(-1, 1) for part in parts_of(trace, tup)]
    return concatenate(trace, parts, 1)
