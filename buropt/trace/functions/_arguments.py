"""What the rules share: reading the arguments of NumPy's functions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import graph_kind, unsupported_keyword
from buropt.trace.errors import TraceError, location
from buropt.trace.kinds import Kind, highest

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


AXIS_ERROR = getattr(np, "exceptions", np).AxisError  # its home moved in NumPy 1.25


def reshaped(trace: Trace, array: Tracer, shape: Sequence[int]) -> Tracer:
    """A view of the same elements with another shape."""
    if tuple(shape) == array.shape:
        return trace.view(array, array)
    result = trace.emit("reshape", (array,), {"shape": list(shape)}, kind=array.kind)
    return trace.view(result, array)


def check_order(trace: Trace, name: str, order: Any) -> None:
    """Refuse "A" and "K" too: they would depend on the memory layout that the array had."""
    if order not in ("C", None):
        raise unsupported_keyword(trace, name, "order")


def result_kind(trace: Trace, name: str, dtype: Any, default: Kind) -> Kind:
    """The kind of a result of that `dtype=`, an argument of NumPy's function `name`."""
    if dtype is None:
        return default
    kind = graph_kind(trace, dtype)
    if kind is None:
        raise unsupported_keyword(trace, name, "dtype")
    return kind


def parts_of(trace: Trace, arrays: Any) -> list[Tracer]:
    """The arrays to join, at least one."""
    parts = [trace.lift(part) for part in arrays]
    if not parts:
        raise TraceError(
            f"there are no arrays to join. {location(trace.name)} Instead: at least one."
        )
    return parts


def extents_of(shape: Any) -> list[int]:
    """A shape argument, an integer or a sequence of them, as a list."""
    if isinstance(shape, tuple | list):
        return [operator.index(extent) for extent in shape]
    return [operator.index(shape)]


def axes_of(trace: Trace, axis: Any, ndim: int) -> list[int]:
    """An axis argument, None, an integer or a sequence, as a list of distinct axes."""
    if axis is None:
        return list(range(ndim))
    axes = [operator.index(k) for k in (axis if isinstance(axis, tuple | list) else (axis,))]
    for k in axes:
        if not -ndim <= k < ndim:
            raise AXIS_ERROR(
                f"axis {k} is out of bounds for an array with {ndim} axes. "
                f"{location(trace.name)} Instead: {_valid_axes(ndim)}."
            )
    axes = [k % ndim for k in axes]
    if len(set(axes)) < len(axes):
        raise ValueError(
            f"axis {axis} names an axis twice. {location(trace.name)} Instead: each axis once."
        )
    return axes


def with_axis(trace: Trace, a: Any, axis: Any) -> tuple[Tracer, int]:
    """An array and its axis, counted from the front; flattened where there is none."""
    array = trace.lift(a)
    if axis is None:
        array, axis = array.ravel(), 0
    (k,) = axes_of(trace, operator.index(axis), array.ndim)
    return array, k


def _valid_axes(ndim: int) -> str:
    return f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis, the array is one number"


def along(axis: int, part: Any) -> tuple[Any, ...]:
    """The index that takes a part along one axis, counted from the first."""
    return (*(slice(None),) * axis, part)


def total_kind(trace: Trace, name: str, dtype: Any, array: Tracer) -> Kind:
    """The kind of a sum or product over elements: masks are counted, integers stay integers."""
    natural = highest(("i", array.kind))
    kind = result_kind(trace, name, dtype, natural)
    if highest((kind, natural)) != kind:  # a cast of the elements before they are added
        raise unsupported_keyword(trace, name, "dtype")
    return kind
