"""Rules that apply something to parts of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from buropt.trace.dispatch import function, unsupported_keyword
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of, extents_of
from buropt.trace.functions.joining import stack
from buropt.trace.functions.picking import take
from buropt.trace.functions.shapes import moveaxis

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(sliding_window_view, "x window_shape axis subok writeable")
def sliding_windows(
    trace: Trace, x: Any, window_shape: Any, axis: Any = None, writeable: bool = False
) -> Tracer:
    """All windows of some extents; their axes come last."""
    if writeable:
        raise unsupported_keyword(trace, "sliding_window_view", "writeable")
    array, extents = trace.lift(x), extents_of(window_shape)
    axes = axes_of(trace, axis, array.ndim)
    if len(axes) != len(extents):
        raise ValueError(
            f"sliding_window_view: {len(extents)} extents for {len(axes)} axes. "
            f"{location(trace.name)} Instead: one extent for each axis."
        )
    for k, extent in zip(axes, extents, strict=True):
        n_windows = array.shape[k] - extent + 1
        if extent < 0 or n_windows < 1:
            raise ValueError(
                f"sliding_window_view: windows of extent {extent} do not fit axis {k} of an array "
                f"of shape {array.shape}. "
                f"{location(trace.name)} Instead: windows from 0 to the extent of the axis."
            )
        index = np.arange(n_windows)[:, None] + np.arange(extent)
        array = moveaxis(trace, take(trace, array, index, k), k + 1, -1)
    return trace.fresh(array)


@function(np.apply_along_axis, "func1d axis arr *args")
def apply_along_axis(
    trace: Trace, func1d: Callable[..., Any], axis: Any, arr: Any, args: Any = ()
) -> Tracer:
    """A function of each vector along an axis; its result's axes take that axis's place."""
    array = trace.lift(arr)
    (k,) = axes_of(trace, axis, array.ndim)
    moved = moveaxis(trace, array, k, -1)
    vectors = moved.reshape(-1, array.shape[k])
    if vectors.shape[0] == 0:
        raise ValueError(
            f"np.apply_along_axis: an array of shape {array.shape} has no vectors along axis {k}. "
            f"{location(trace.name)} Instead: an array with elements."
        )
    results = stack(trace, [func1d(vector, *args) for vector in vectors])
    shaped = results.reshape(moved.shape[:-1] + results.shape[1:])
    n_new = results.ndim - 1
    last = [shaped.ndim - n_new + i for i in range(n_new)]
    return trace.fresh(moveaxis(trace, shaped, last, [k + i for i in range(n_new)]))
