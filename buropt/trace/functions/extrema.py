"""Rules for the largest and the smallest element over axes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of
from buropt.trace.functions._elements import begun, counting, first_value
from buropt.trace.functions.shapes import broadcast_to

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.max, "a axis out keepdims initial where")
@function(np.amax, "a axis out keepdims initial where")
def max_(
    trace: Trace,
    a: Any,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    """The largest element over some axes; equal ones share the cotangent."""
    return _extremum(trace, "max", a, axis, keepdims, initial, where)


@function(np.min, "a axis out keepdims initial where")
@function(np.amin, "a axis out keepdims initial where")
def min_(
    trace: Trace,
    a: Any,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    """The smallest element over some axes; equal ones share the cotangent."""
    return _extremum(trace, "min", a, axis, keepdims, initial, where)


@function(np.ptp, "a axis out keepdims")
def ptp(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The difference between the largest and the smallest element."""
    largest = max_(trace, a, axis, keepdims)
    difference: Tracer = largest - min_(trace, a, axis, keepdims)
    return difference


@function(np.argmax, "a axis out keepdims")
def argmax(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The place of the first largest element, a constant of differentiation."""
    return _place(trace, "argmax", a, axis, keepdims)


@function(np.argmin, "a axis out keepdims")
def argmin(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The place of the first smallest element, a constant of differentiation."""
    return _place(trace, "argmin", a, axis, keepdims)


def _extremum(
    trace: Trace, op: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Tracer:
    array, name = trace.lift(a), f"np.{op}"
    attributes = {"axes": axes_of(trace, axis, array.ndim), "keepdims": int(keepdims)}
    if initial is not None:
        initial = first_value(trace, name, initial, array)
    elif where is not True:
        raise ValueError(
            f"{name}: where= may leave no element. {location(trace.name)} Instead: initial= as "
            "well, the result in that case."
        )
    array = counting(trace, name, array, where, initial)
    if initial is not None and array.size == 0:  # of no elements, what sums of them have the shape
        empty = trace.emit("sum", (array,), attributes, kind=array.kind)
        return broadcast_to(trace, initial, empty.shape)
    found = trace.emit(op, (array,), attributes, kind=array.kind)
    return begun(trace, name, np.maximum if op == "max" else np.minimum, found, initial)


def _place(trace: Trace, op: str, a: Any, axis: Any, keepdims: bool) -> Tracer:
    array = trace.lift(a)
    axes = axes_of(trace, None if axis is None else operator.index(axis), array.ndim)
    return trace.emit(op, (array,), {"axes": axes, "keepdims": int(keepdims)}, kind="i")
