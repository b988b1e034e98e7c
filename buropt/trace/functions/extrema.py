"""Rules for the largest and the smallest element over axes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.functions._arguments import axes_of

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.max, "a axis out keepdims initial where")
@function(np.amax, "a axis out keepdims initial where")
def max_(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The largest element over some axes; equal ones share the cotangent."""
    return _extremum(trace, "max", a, axis, keepdims)


@function(np.min, "a axis out keepdims initial where")
@function(np.amin, "a axis out keepdims initial where")
def min_(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The smallest element over some axes; equal ones share the cotangent."""
    return _extremum(trace, "min", a, axis, keepdims)


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


def _extremum(trace: Trace, op: str, a: Any, axis: Any, keepdims: bool) -> Tracer:
    array = trace.lift(a)
    attributes = {"axes": axes_of(trace, axis, array.ndim), "keepdims": int(keepdims)}
    return trace.emit(op, (array,), attributes, kind=array.kind)


def _place(trace: Trace, op: str, a: Any, axis: Any, keepdims: bool) -> Tracer:
    array = trace.lift(a)
    axes = axes_of(trace, None if axis is None else operator.index(axis), array.ndim)
    return trace.emit(op, (array,), {"axes": axes, "keepdims": int(keepdims)}, kind="i")
