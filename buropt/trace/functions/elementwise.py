"""Rules for elementwise functions that are not ufuncs in NumPy."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import array_rule, function
from buropt.trace.functions.selection import where
from buropt.trace.ufuncs import number_kind

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.round, "a decimals out")
def round_(trace: Trace, a: Any, decimals: Any = 0) -> Tracer:
    """Round to a number of decimals, a half to the even digit."""
    array = trace.lift(a)
    if array.is_bool:  # NumPy makes floats of these, too
        array = trace.number(array)
    places = operator.index(decimals)
    kind = number_kind(array)
    if places == 0 or (places > 0 and kind == "i"):
        return trace.fresh(array) if kind == "i" else trace.emit("rint", (array,))
    power = trace.constant(10.0 ** abs(places))
    up, down = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    scaled = trace.emit("rint", (trace.emit(up, (array, power)),))
    return trace.emit(down, (scaled, power), kind=kind)


@array_rule("__round__")
def python_round(trace: Trace, array: Tracer, digits: int | None) -> Tracer:
    """Python's `round`, which makes an integer of a scalar, as of NumPy's, without digits."""
    rounded = round_(trace, array, digits or 0)
    return trace.integer(rounded) if digits is None and not array.shape else rounded


@function(np.around, "a decimals out")
def around(trace: Trace, a: Any, decimals: Any = 0) -> Tracer:
    """The same as `np.round`."""
    return round_(trace, a, decimals)


@function(np.fix, "x out")
def fix(trace: Trace, x: Any) -> Any:
    """Round towards zero."""
    return np.trunc(trace.lift(x))


@function(np.isposinf, "x out")
def isposinf(trace: Trace, x: Any) -> Any:
    """Whether it is +inf."""
    return trace.lift(x) == math.inf


@function(np.isneginf, "x out")
def isneginf(trace: Trace, x: Any) -> Any:
    """Whether it is -inf."""
    return trace.lift(x) == -math.inf


@function(np.nan_to_num, "x copy nan posinf neginf")
def nan_to_num(
    trace: Trace, x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tracer:
    """Finite numbers in place of NaN and infinities, which then have slope 0."""
    array = trace.lift(x)
    if array.kind != "f":
        return trace.fresh(array)
    largest = float(np.finfo(trace.dtype).max)
    result = where(trace, array == math.inf, largest if posinf is None else posinf, array)
    result = where(trace, array == -math.inf, -largest if neginf is None else neginf, result)
    return where(trace, array != array, nan, result)


@function(np.real, "val")
def real(trace: Trace, val: Any) -> Tracer:
    """The number itself: traced values are real."""
    return trace.lift(val).real


@function(np.sinc, "x")
def sinc(trace: Trace, x: Any) -> Tracer:
    """`sin(pi x) / (pi x)`, exactly 0 at whole numbers, with all its derivatives at 0."""
    return trace.emit("sinc", (trace.lift(x),))


@function(np.i0, "x")
def i0(trace: Trace, x: Any) -> Tracer:
    """The modified Bessel function of order 0."""
    return trace.emit("iv", (trace.lift(x),), {"n": 0})
