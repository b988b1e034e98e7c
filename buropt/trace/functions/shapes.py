"""Rules that give the same elements another shape or order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import (
    axes_of,
    check_order,
    extents_of,
    reshaped,
)

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.reshape, "a shape order copy")
def reshape(trace: Trace, a: Any, shape: Any, order: Any = "C") -> Tracer:
    """The same elements in C order with another shape; one extent may be -1."""
    check_order(trace, "np.reshape", order)
    array = trace.lift(a)
    wanted = extents_of(shape)
    known = math.prod(extent for extent in wanted if extent != -1)
    fits = known == array.size
    if wanted.count(-1) == 1:
        fits = known > 0 and array.size % known == 0
        wanted = [array.size // known if extent == -1 else extent for extent in wanted]
    if not fits or any(extent < 0 for extent in wanted):
        raise ValueError(
            f"buropt.reshape: an array of shape {array.shape} has {array.size} elements and does "
            f"not fit into shape {tuple(extents_of(shape))}. {location(trace.name)} Instead: a "
            f"shape of {array.size} elements; one extent may be -1."
        )
    return reshaped(trace, array, wanted)


@function(np.ravel, "a order")
def ravel(trace: Trace, a: Any, order: Any = "C") -> Tracer:
    """All elements in C order."""
    check_order(trace, "np.ravel", order)
    array = trace.lift(a)
    return reshaped(trace, array, [array.size])


@function(np.expand_dims, "a axis")
def expand_dims(trace: Trace, a: Any, axis: Any) -> Tracer:
    """Insert axes of extent 1."""
    array = trace.lift(a)
    n_new = len(axis) if isinstance(axis, tuple | list) else 1
    new = axes_of(trace, axis, array.ndim + n_new)
    old = iter(array.shape)
    shape = [1 if k in new else next(old) for k in range(array.ndim + n_new)]
    return reshaped(trace, array, shape)


@function(np.squeeze, "a axis")
def squeeze(trace: Trace, a: Any, axis: Any = None) -> Tracer:
    """Remove axes of extent 1."""
    array = trace.lift(a)
    ones = [k for k, extent in enumerate(array.shape) if extent == 1]
    removed = ones if axis is None else axes_of(trace, axis, array.ndim)
    if not set(removed) <= set(ones):
        raise ValueError(
            f"buropt.squeeze: axis {axis} of an array of shape {array.shape} does not have extent "
            f"1. {location(trace.name)} Instead: x[index] along that axis, or a sum over it."
        )
    shape = [extent for k, extent in enumerate(array.shape) if k not in removed]
    return reshaped(trace, array, shape)


@function(np.atleast_1d, "*arys")
def atleast_1d(trace: Trace, arys: Sequence[Any]) -> Any:
    """Give scalars one axis."""
    arrays = [trace.lift(array) for array in arys]
    arrays = [array.reshape(1) if array.ndim == 0 else array for array in arrays]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


@function(np.atleast_2d, "*arys")
def atleast_2d(trace: Trace, arys: Sequence[Any]) -> Any:
    """Give scalars and vectors axes in front."""
    arrays = [trace.lift(array) for array in arys]
    arrays = [array.reshape(1, -1) if array.ndim < 2 else array for array in arrays]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


@function(np.transpose, "a axes")
def transpose(trace: Trace, a: Any, axes: Any = None) -> Tracer:
    """Permute the axes; reverse them if no order is given."""
    array = trace.lift(a)
    order = list(range(array.ndim))[::-1] if axes is None else axes_of(trace, axes, array.ndim)
    if len(order) != array.ndim:
        raise ValueError(
            f"buropt.transpose: axes {tuple(axes)} do not match an array of shape {array.shape}. "
            f"{location(trace.name)} Instead: each of its {array.ndim} axes once."
        )
    if order == list(range(array.ndim)):
        return trace.view(array, array)
    result = trace.emit("transpose", (array,), {"axes": order}, kind=array.kind)
    return trace.view(result, array)


@function(np.swapaxes, "a axis1 axis2")
def swapaxes(trace: Trace, a: Any, axis1: int, axis2: int) -> Tracer:
    """Exchange two axes."""
    array = trace.lift(a)
    order = list(range(array.ndim))
    (i,), (j,) = axes_of(trace, axis1, array.ndim), axes_of(trace, axis2, array.ndim)
    order[i], order[j] = j, i
    return transpose(trace, array, order)


@function(np.moveaxis, "a source destination")
def moveaxis(trace: Trace, a: Any, source: Any, destination: Any) -> Tracer:
    """Move axes to other positions; the others keep their order."""
    array = trace.lift(a)
    old, new = axes_of(trace, source, array.ndim), axes_of(trace, destination, array.ndim)
    if len(old) != len(new):
        raise ValueError(
            f"buropt.moveaxis: source {source} and destination {destination} differ in length. "
            f"{location(trace.name)} Instead: a destination for each axis."
        )
    order = [k for k in range(array.ndim) if k not in old]
    for to, axis in sorted(zip(new, old, strict=True)):
        order.insert(to, axis)
    return transpose(trace, array, order)


@function(np.flip, "m axis")
def flip(trace: Trace, m: Any, axis: Any = None) -> Tracer:
    """Reverse the order along some axes."""
    array = trace.lift(m)
    reverse = axes_of(trace, axis, array.ndim)
    return array[tuple(slice(None, None, -1 if k in reverse else 1) for k in range(array.ndim))]


@function(np.broadcast_to, "array shape subok")
def broadcast_to(trace: Trace, array: Any, shape: Any) -> Tracer:
    """Repeat along new axes and axes of extent 1."""
    base = trace.lift(array)
    attributes = {"shape": extents_of(shape)}
    result = trace.emit("broadcast_to", (base,), attributes, kind=base.kind)
    return trace.view(result, base)
