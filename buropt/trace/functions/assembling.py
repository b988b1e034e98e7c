"""Rules that put arrays together from parts that differ in shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import parts_of, reshaped
from buropt.trace.functions.joining import concatenate
from buropt.trace.functions.shapes import broadcast_to

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.atleast_3d, "*arys")
def atleast_3d(trace: Trace, arys: Any) -> Any:
    """Give arrays with fewer axes new ones, vectors on both sides."""
    arrays = [_with_three_axes(trace, trace.lift(array)) for array in arys]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _with_three_axes(trace: Trace, array: Tracer) -> Tracer:
    shapes = {0: (1, 1, 1), 1: (1, *array.shape, 1), 2: (*array.shape, 1)}
    return reshaped(trace, array, shapes.get(array.ndim, array.shape))


@function(np.dstack, "tup")
def dstack(trace: Trace, tup: Any) -> Tracer:
    """Join along the third axis."""
    parts = [_with_three_axes(trace, part) for part in parts_of(trace, tup)]
    return concatenate(trace, parts, 2)


@function(np.append, "arr values axis")
def append(trace: Trace, arr: Any, values: Any, axis: Any = None) -> Tracer:
    """Join two arrays; flattened if no axis is given."""
    return concatenate(trace, [arr, values], axis)


@function(np.block, "arrays")
def block(trace: Trace, arrays: Any) -> Tracer:
    """Join nested lists of blocks: the innermost along the last axis, and so outwards."""
    depth = _depth(trace, arrays)
    leaves: list[Tracer] = []

    def lifted(part: Any) -> Any:
        if isinstance(part, list):
            return [lifted(inner) for inner in part]
        leaves.append(trace.lift(part))
        return leaves[-1]

    nested = lifted(arrays)
    ndim = max(depth, *(leaf.ndim for leaf in leaves))

    def joined(part: Any, level: int) -> Tracer:
        if isinstance(part, list):
            inner = [joined(one, level + 1) for one in part]
            return concatenate(trace, inner, ndim - depth + level)
        return reshaped(trace, part, (1,) * (ndim - part.ndim) + part.shape)

    return trace.fresh(joined(nested, 0))


def _depth(trace: Trace, part: Any) -> int:
    """The depth of nested lists, which must be the same everywhere."""
    if isinstance(part, tuple):
        raise TypeError(
            f"np.block: a tuple among the blocks. {location(trace.name)} Instead: lists."
        )
    if not isinstance(part, list):
        return 0
    depths = {_depth(trace, inner) for inner in part}
    if len(depths) != 1:
        what = "lists of different depth are mixed" if depths else "a list of blocks is empty"
        raise ValueError(
            f"np.block: {what}. "
            f"{location(trace.name)} Instead: lists nested equally deep, such as [[a, b], [c, d]]."
        )
    return 1 + depths.pop()


@function(np.broadcast_arrays, "*args subok")
def broadcast_arrays(trace: Trace, args: Any) -> tuple[Tracer, ...]:
    """All arrays in their common shape."""
    arrays = [trace.lift(array) for array in args]
    shape = _common_shape(trace, "np.broadcast_arrays", arrays)
    return tuple(broadcast_to(trace, array, shape) for array in arrays)


@function(np.meshgrid, "*xi copy sparse indexing")
def meshgrid(
    trace: Trace, xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tracer, ...]:
    """The coordinates of a grid from those of its axes; by default x runs along the columns."""
    if indexing not in ("xy", "ij"):
        raise ValueError(
            f"np.meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}. "
            f"{location(trace.name)} Instead: 'ij' for axes in the order of the arguments."
        )
    arrays = [trace.lift(array) for array in xi]
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        axes[:2] = [1, 0]
    grids = [
        reshaped(trace, array, [array.size if k == axis else 1 for k in range(len(arrays))])
        for axis, array in zip(axes, arrays, strict=True)
    ]
    if not sparse:
        shape = _common_shape(trace, "np.meshgrid", grids)
        grids = [broadcast_to(trace, grid, shape) for grid in grids]
    return tuple(trace.fresh(grid) if copy else grid for grid in grids)


def _common_shape(trace: Trace, name: str, arrays: list[Tracer]) -> tuple[int, ...]:
    shapes = [array.shape for array in arrays]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"{name}: shapes {shapes} do not broadcast together. "
            f"{location(trace.name)} Instead: extents that are equal, or 1, from the last axis on."
        ) from None
