"""Advanced indexing: index arrays become one `take` along one axis.

Several index arrays are merged into one that counts along their axes as if these were one axis,
by NumPy for constants and by nodes of the graph for traced indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.trace.errors import location, place
from buropt.trace.indexing.basic import take_slices
from buropt.trace.indexing.keys import Part, is_traced

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def take_by_arrays(trace: Trace, array: Tracer, parts: Sequence[Part]) -> Tracer:
    """Trace `array[key]` for a key with index arrays or traced integers.

    NumPy puts the axes of the indices where these stand if nothing is between them (an ellipsis
    is something even if it stands for no axis), and first otherwise. A constant integer counts
    among the indices there, but is applied with the slices.
    """
    at = [i for i, part in enumerate(parts) if isinstance(part, int) or _is_array(part)]
    is_together = at[-1] - at[0] + 1 == len(at)
    basic = [slice(None) if _is_array(part) else part for part in parts if part is not None]
    base = take_slices(trace, array, basic)

    axes: list[int] = []  # of base, that index arrays stand for
    indices: list[Part] = []
    others: list[int] = []  # extents of the result's axes apart from those of the index arrays
    n_before = 0  # how many of them come first
    axis = 0
    for i, part in enumerate(parts):
        if part is Ellipsis or isinstance(part, int):
            continue
        if _is_array(part):
            axes.append(axis)
            indices.append(part)
        else:
            n_before += is_together and i < at[0]
            others.append(1 if part is None else base.shape[axis])
        axis += part is not None

    extents = [base.shape[k] for k in axes]
    where = axes[0] if is_together else 0
    merged = _merged(trace, base, axes, where)
    result = take(trace, merged, _merged_indices(trace, indices, extents), where)
    shape = _common_shape(trace, indices)
    wanted = [*others[:n_before], *shape, *others[n_before:]]
    if tuple(wanted) != result.shape:
        result = trace.emit("reshape", (result,), {"shape": wanted}, kind=array.kind)
    # With integers only, of which some are traced, NumPy would give a view, or a scalar.
    is_view = others and all(index.ndim == 0 for index in indices)
    return trace.view(result, array) if is_view else trace.fresh(result)


def take(trace: Trace, array: Tracer, index: Part, axis: int) -> Tracer:
    """Take along one axis by an index array; constant indices are in bounds.

    The axes of the index replace that axis.
    """
    if not is_traced(index):
        step = _step(index)
        if step is not None:
            starts, sizes, steps = [0] * array.ndim, list(array.shape), [1] * array.ndim
            starts[axis], sizes[axis], steps[axis] = int(index[0]), len(index), step
            attributes = {"starts": starts, "sizes": sizes, "steps": steps}
            return trace.emit("slice", (array,), attributes, kind=array.kind)
        index = trace.constant(index, "i")
    else:
        trace.indices.require(index.node, array.shape[axis], place(trace.name))
    return trace.emit("take", (array, index), {"axis": axis}, kind=array.kind)


def _step(index: NDArray[Any]) -> int | None:
    """The step, if the indices are those of a slice."""
    if index.ndim != 1 or index.size == 0:
        return None
    steps = np.diff(index)
    step = int(steps[0]) if steps.size else 1
    return step if step != 0 and bool(np.all(steps == step)) else None


def _is_array(part: Part) -> bool:
    return isinstance(part, np.ndarray) or is_traced(part)


def _common_shape(trace: Trace, indices: Sequence[Part]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(index.shape for index in indices))
    except ValueError:
        shapes = " and ".join(str(index.shape) for index in indices)
        raise IndexError(
            f"index arrays of shapes {shapes} do not broadcast together. "
            f"{location(trace.name)} Instead: index arrays of one shape, or give them "
            "axes of extent 1, as in x[rows[:, None], columns]."
        ) from None


def _merged(trace: Trace, base: Tracer, axes: Sequence[int], where: int) -> Tracer:
    """The array with some axes as one, in C order, at position `where`."""
    if list(axes) == [where]:
        return base
    rest = [k for k in range(base.ndim) if k not in axes]
    order = [*rest[:where], *axes, *rest[where:]]
    if order != sorted(order):
        base = trace.emit("transpose", (base,), {"axes": order}, kind=base.kind)
    after = where + len(axes)
    shape = [*base.shape[:where], math.prod(base.shape[where:after]), *base.shape[after:]]
    if tuple(shape) == base.shape:
        return base
    return trace.emit("reshape", (base,), {"shape": shape}, kind=base.kind)


def _merged_indices(trace: Trace, indices: Sequence[Part], extents: Sequence[int]) -> Part:
    """One index array for the axes that `_merged` makes one."""
    if len(indices) == 1:
        return indices[0]
    _common_shape(trace, indices)
    strides = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
    weighted = list(zip(indices, strides, extents, strict=True))
    terms: list[Any] = []
    constants = [index * stride for index, stride, _ in weighted if not is_traced(index)]
    if constants:
        terms.append(sum(constants[1:], constants[0]))
    outside: Any = None
    for index, stride, extent in weighted:
        if not is_traced(index):
            continue
        if not trace.indices.require(index.node, extent, place(trace.name)):
            # What is out of range must stay so, and not count into the next row.
            wrong = (index < -extent) | (index >= extent)
            outside = wrong if outside is None else outside | wrong
        wrapped = np.where(index < 0, index + extent, index)
        terms.append(wrapped if stride == 1 else wrapped * stride)
    merged = sum(terms[1:], terms[0])
    return merged if outside is None else np.where(outside, math.prod(extents), merged)
