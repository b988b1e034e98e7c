"""Rules for functions that pick elements by integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function, unsupported_keyword
from buropt.trace.errors import TraceError, location
from buropt.trace.functions._arguments import axes_of

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.take, "a indices axis out mode")
def take(trace: Trace, a: Any, indices: Any, axis: Any = None, mode: Any = "raise") -> Tracer:
    """Elements along an axis, or of the flattened array; repeats add in the gradient.

    Traced indices out of range read NaN.
    """
    array = trace.lift(a)
    if axis is None:
        array, axis = array.ravel(), 0
    (k,) = axes_of(trace, axis, array.ndim)
    picks = _indices(trace, "np.take", indices, k, array, mode)
    return trace.emit("take", (array, picks), {"axis": k}, kind=array.kind)


@function(np.take_along_axis, "arr indices axis")
def take_along_axis(trace: Trace, arr: Any, indices: Any, axis: Any = -1) -> Tracer:
    """Along an axis, one element for each index; the other axes go together.

    Traced indices out of range read NaN.
    """
    array, picks = trace.lift(arr), trace.lift(indices)
    if axis is None:
        array, axis = array.ravel(), 0
    (k,) = axes_of(trace, axis, array.ndim)
    if picks.ndim != array.ndim:
        raise ValueError(
            f"buropt.take_along_axis: the array has {array.ndim} axes and the indices have "
            f"{picks.ndim}. {location(trace.name)} Instead: as many axes, 1 where all go together."
        )
    picks = _indices(trace, "np.take_along_axis", picks, k, array, "raise")
    try:
        together = list(np.broadcast_shapes(_without(array.shape, k), _without(picks.shape, k)))
    except ValueError:
        raise ValueError(
            f"buropt.take_along_axis: indices of shape {picks.shape} do not fit an array of shape "
            f"{array.shape} along axis {k}: the other axes must be equal, or 1. "
            f"{location(trace.name)}"
        ) from None
    return trace.emit(
        "take_along_axis",
        (
            _spread(trace, array, [*together[:k], array.shape[k], *together[k:]]),
            _spread(trace, picks, [*together[:k], picks.shape[k], *together[k:]]),
        ),
        {"axis": k},
        kind=array.kind,
    )


def _indices(trace: Trace, name: str, indices: Any, axis: int, array: Tracer, mode: Any) -> Tracer:
    """Integers as an operand; constant ones are checked here, as NumPy checks them."""
    picks = trace.lift(indices)
    if picks.kind == "f":
        raise TraceError(
            f"{name}: the indices are floats. {location(trace.name)} Instead: integers, such as "
            "an integer array among the arguments or data."
        )
    extent = array.shape[axis]
    if extent == 0 and picks.size > 0:
        raise IndexError(
            f"{name}: there is nothing to take along an axis of extent 0. {location(trace.name)}"
        )
    constant = trace.builder.constant_value(picks.node)
    if mode != "raise":
        if constant is None or mode not in ("wrap", "clip"):
            raise unsupported_keyword(trace, name, "mode")
        values = np.asarray(constant)
        values = np.remainder(values, extent) if mode == "wrap" else np.clip(values, 0, extent - 1)
        return trace.constant(values, "i")
    if constant is not None:
        values = np.asarray(constant)
        outside = (values < -extent) | (values >= extent)
        if outside.any():
            raise IndexError(
                f"{name}: index {int(values[outside][0])} is out of bounds for axis {axis} of a "
                f"traced array of shape {array.shape}. {location(trace.name)}"
            )
    return picks


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _spread(trace: Trace, array: Tracer, shape: list[int]) -> Tracer:
    return trace.emit("broadcast_to", (array,), {"shape": shape}, kind=array.kind)
