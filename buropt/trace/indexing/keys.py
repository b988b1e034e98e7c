"""Reading an index: what is between the brackets becomes one part for each axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from buropt.trace.base import TracedValue
from buropt.trace.errors import UnsupportedOpError, location
from buropt.trace.sparse import SparseRow

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

Part: TypeAlias = Any
"""None for a new axis; an int, a slice, a constant array of int64 or a tracer of integers for an
axis of the array; `...` where it was written, before the full slices that it stands for."""


@dataclass(frozen=True)
class _MaskAxis:
    """Where a constant mask holds, along one of its axes, until the array's axis is known."""

    positions: NDArray[np.int64]
    extent: int


def read_key(trace: Trace, array: Tracer, key: tuple[Any, ...]) -> list[Part]:
    """One part for each axis and each new axis of `array[key]`; constant integers are in bounds."""
    parts = [part for one in key for part in _read(trace, one)]
    used = [part for part in parts if part is not None and part is not Ellipsis]
    if len(used) > array.ndim:
        raise IndexError(
            f"too many indices: the traced array has shape {array.shape}, but {len(used)} were "
            f"given. {location(trace.name)} Instead: at most {array.ndim}."
        )
    missing = [slice(None)] * (array.ndim - len(used))
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError(
            f"an index can only have a single ellipsis. {location(trace.name)} Instead: "
            "a `:` for each axis but those of one ellipsis."
        )
    at = dots[0] + 1 if dots else len(parts)
    parts[at:at] = missing
    axis = 0
    for i, part in enumerate(parts):
        if part is None or part is Ellipsis:
            continue
        parts[i] = _in_bounds(trace, array, part, axis)
        axis += 1
    return parts


def is_basic(parts: Sequence[Part]) -> bool:
    """Whether the index has no arrays, so that NumPy would give a view."""
    return not any(isinstance(part, np.ndarray) or is_traced(part) for part in parts)


def is_traced(part: Part) -> bool:
    """Whether it is a traced value, be it a sparse row."""
    return isinstance(part, TracedValue | SparseRow)


def _read(trace: Trace, part: Any) -> list[Part]:
    if part is None or part is Ellipsis or isinstance(part, slice):
        return [part]
    if isinstance(part, int | np.integer) and not isinstance(part, bool):
        return [int(part)]
    if isinstance(part, list | tuple) and _holds_tracers(part):
        part = _joined(trace, part)
    if is_traced(part):
        return [_traced(trace, part)]
    if isinstance(part, list | tuple | np.ndarray):
        given = np.asarray(part)
        if given.size == 0 and not isinstance(part, np.ndarray):
            given = given.astype(np.int64)
        if given.dtype == np.bool_ and given.ndim:
            axes = zip(given.nonzero(), given.shape, strict=True)
            return [_MaskAxis(positions, extent) for positions, extent in axes]
        if given.dtype.kind in "iu":
            return [given.astype(np.int64) if given.ndim else int(given)]
    _refuse_type(trace, part)


def _holds_tracers(part: Sequence[Any]) -> bool:
    return any(
        _holds_tracers(one) if isinstance(one, list | tuple) else is_traced(one) for one in part
    )


def _joined(trace: Trace, part: Sequence[Any]) -> Tracer:
    """A list of integers some of which are traced, as one tracer."""
    rows = [_joined(trace, one) if isinstance(one, list | tuple) else one for one in part]
    lifted: Any = [trace.lift(row) for row in rows]
    joined: Any = np.stack(lifted)
    return cast("Tracer", joined)


def _traced(trace: Trace, part: Any) -> Tracer:
    where = location(trace.name)
    if isinstance(part, SparseRow):
        _refuse_type(trace, part)
    if part.kind == "i":
        return trace.lift(part)
    if part.kind == "b":
        raise UnsupportedOpError(
            f"a traced mask of shape {part.shape} cannot be an index: how many elements it "
            f"selects is not known while tracing. {where} Instead: np.where(mask, a, b); for a "
            "sum over the selected elements, np.sum(np.where(mask, x, 0.0))."
        )
    raise UnsupportedOpError(
        f"a traced value of shape {part.shape} and dtype {part.dtype} cannot be "
        f"an index. {where} Instead: integers, such as data and arguments of integer dtype, or "
        "np.where to select by a condition."
    )


def _in_bounds(trace: Trace, array: Tracer, part: Part, axis: int) -> Part:
    extent = array.shape[axis]
    if isinstance(part, _MaskAxis):
        if part.extent != extent:
            raise IndexError(
                f"a mask with an axis of extent {part.extent} does not fit axis {axis} of a traced "
                f"array of shape {array.shape}. {location(trace.name)} Instead: a mask "
                f"of extent {extent} there."
            )
        return part.positions
    if isinstance(part, int):
        low = high = part
    elif isinstance(part, np.ndarray) and part.size:
        low, high = int(part.min()), int(part.max())
    else:
        return part
    if low < -extent or high >= extent:
        raise IndexError(
            f"index {low if low < -extent else high} is out of bounds for axis {axis} of a traced "
            f"array of shape {array.shape}. {location(trace.name)} Instead: "
            + (f"indices from {-extent} to {extent - 1}." if extent else "an empty index.")
        )
    return part % extent


def _refuse_type(trace: Trace, part: Any) -> NoReturn:
    kind = f"an index of type {type(part).__name__}"
    if isinstance(part, np.ndarray):
        kind = f"an index array of dtype {part.dtype}"
    raise UnsupportedOpError(
        f"{kind} cannot be traced. {location(trace.name)} Instead: integers, slices and "
        "arrays of integers such as x[2], x[1:4], x[..., ::-1] or x[np.array([0, 2])]; "
        "np.where(mask, a, b) to select by a mask."
    )
