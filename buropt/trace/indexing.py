"""Basic indexing of traced arrays: integers, slices, `...` and `np.newaxis`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.errors import UnsupportedOpError, location

if TYPE_CHECKING:
    from buropt.trace.tracer import Tracer


def index(array: Tracer, key: Any) -> Tracer:
    """Trace `array[key]`: a view, as in NumPy, or a scalar if every axis has an integer.

    Raises
    ------
    IndexError
        If there are too many indices or an integer is out of bounds.
    UnsupportedOpError
        For index arrays, lists and masks.
    """
    key = key if isinstance(key, tuple) else (key,)
    parts = _expand(array, key)
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    shape: list[int] = []
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        extent = array.shape[len(starts)]
        if isinstance(part, slice):
            start, stop, step = part.indices(extent)
            size = len(range(start, stop, step))
            shape.append(size)
            # An empty slice may start outside of the array; where it starts does not matter.
            start, step = (start, step) if size else (0, 1)
        else:
            start, size, step = _in_bounds(array, part, len(starts), extent), 1, 1
        starts.append(start)
        sizes.append(size)
        steps.append(step)

    trace = array.trace
    result = array
    if tuple(sizes) != array.shape or any(step != 1 for step in steps):
        attributes = {"starts": starts, "sizes": sizes, "steps": steps}
        result = trace.emit("slice", (array,), attributes, kind=array.kind)
    if tuple(shape) != result.shape:
        attributes = {"shape": shape}
        result = trace.emit("reshape", (result,), attributes, kind=array.kind)
    if all(isinstance(part, int) for part in parts) and not any(k is Ellipsis for k in key):
        return trace.fresh(result)  # NumPy gives a scalar here, which shares no memory
    return trace.view(result, array)


def _expand(array: Tracer, key: tuple[Any, ...]) -> list[Any]:
    """One entry an axis or new axis: ints, slices and None, with the ellipsis written out."""
    parts = [_checked(array, part) for part in key]
    n_used = sum(part is not None and part is not Ellipsis for part in parts)
    if n_used > array.ndim:
        raise IndexError(
            f"too many indices: the traced array has shape {array.shape}, but {n_used} were "
            f"given. {location(array.trace.name)}"
        )
    missing = [slice(None)] * (array.ndim - n_used)
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"an index can only have a single ellipsis. {location(array.trace.name)}")
    at = dots[0] if dots else len(parts)
    return [*parts[:at], *missing, *parts[at + 1 :]]


def _checked(array: Tracer, part: Any) -> Any:
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, bool | np.bool_) or not _is_integer(part):
        kind = (
            f"a traced value of shape {part.shape}"
            if isinstance(part, type(array))
            else (f"an index of type {type(part).__name__}")
        )
        raise UnsupportedOpError(
            f"{kind} cannot be traced as an index. {location(array.trace.name)} Instead: "
            "integers and slices such as x[2], x[1:4] or x[..., ::-1], joined by np.concatenate; "
            "np.where(mask, a, b) to select by a mask."
        )
    return operator.index(part)


def _is_integer(part: Any) -> bool:
    return isinstance(part, int | np.integer) or (
        isinstance(part, np.ndarray) and part.ndim == 0 and part.dtype.kind in "iu"
    )


def _in_bounds(array: Tracer, position: int, axis: int, extent: int) -> int:
    if not -extent <= position < extent:
        raise IndexError(
            f"index {position} is out of bounds for axis {axis} of a traced array of shape "
            f"{array.shape}. {location(array.trace.name)}"
        )
    return position % extent
