"""Basic indexing of traced arrays: integers, slices, `...` and `np.newaxis`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buropt.trace.indexing.keys import Part

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def take_slices(trace: Trace, array: Tracer, parts: Sequence[Part]) -> Tracer:
    """The part of an array that integers and slices pick, as one slice and one reshape."""
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    shape: list[int] = []
    for part in parts:
        if part is Ellipsis:
            continue
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
            start, size, step = part, 1, 1
        starts.append(start)
        sizes.append(size)
        steps.append(step)

    result = array
    if tuple(sizes) != array.shape or any(step != 1 for step in steps):
        attributes = {"starts": starts, "sizes": sizes, "steps": steps}
        result = trace.emit("slice", (array,), attributes, kind=array.kind)
    if tuple(shape) != result.shape:
        result = trace.emit("reshape", (result,), {"shape": shape}, kind=array.kind)
    return result
