"""Rules that put elements into arrays, or leave some out, at positions that are constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.trace.dispatch import function
from buropt.trace.errors import TraceError, location
from buropt.trace.functions._arguments import with_axis
from buropt.trace.functions.joining import concatenate
from buropt.trace.functions.picking import take
from buropt.trace.functions.shapes import broadcast_to, moveaxis
from buropt.trace.ufuncs import cast

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.delete, "arr obj axis")
def delete(trace: Trace, arr: Any, obj: Any, axis: Any = None) -> Tracer:
    """All elements along an axis but some."""
    array, k = with_axis(trace, arr, axis)
    _check_constant(trace, "np.delete", obj, array)
    return take(trace, array, np.delete(np.arange(array.shape[k]), obj), k)


@function(np.insert, "arr obj values axis")
def insert(trace: Trace, arr: Any, obj: Any, values: Any, axis: Any = None) -> Tracer:
    """Put values before some elements along an axis."""
    array, k = with_axis(trace, arr, axis)
    _check_constant(trace, "np.insert", obj, array)
    extent = array.shape[k]
    new = cast(trace, trace.lift(values), array.kind)
    new = new.reshape((1,) * (array.ndim - new.ndim) + new.shape)
    positions = np.arange(extent)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if positions.dtype == bool:
        positions = np.flatnonzero(positions)
    if positions.ndim == 0:  # one position for all of the values along the axis
        new = moveaxis(trace, new, 0, k)
    if positions.size == 1:
        n_new = new.shape[k]
        at = np.full(n_new, _position(trace, positions.item(), extent))
    else:
        at = positions.astype(int) if positions.size == 0 else positions
        n_new = len(at)
    wanted = (*array.shape[:k], n_new, *array.shape[k + 1 :])
    # NumPy says where everything goes: new elements are those numbered from `extent` on.
    numbers = extent + np.arange(n_new)
    order: NDArray[Any] = np.insert(np.arange(extent), at, numbers)
    both = concatenate(trace, [array, broadcast_to(trace, new, wanted)], k)
    return take(trace, both, order, k)


def _position(trace: Trace, position: int, extent: int) -> int:
    if not -extent <= position <= extent:
        raise IndexError(
            f"np.insert: position {position} is out of bounds for an axis of extent {extent}. "
            f"{location(trace.name)} Instead: a position from -extent to extent."
        )
    return position % extent if position < 0 else position


def _check_constant(trace: Trace, name: str, obj: Any, array: Tracer) -> None:
    if isinstance(obj, type(array)):
        raise TraceError(
            f"{name}: traced positions would change the shape of the result. "
            f"{location(trace.name)} Instead: positions that do not depend on traced values."
        )
