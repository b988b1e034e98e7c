"""Rules for reductions that leave NaN out: what is left out contributes nothing.

Where nothing is left NumPy warns and gives NaN; here there is NaN without a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.functions.selection import where

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def _filled(trace: Trace, a: Any, fill: float) -> Tracer:
    """The array with another value in place of NaN; integers and masks have none."""
    array = trace.lift(a)
    return array if array.kind != "f" else where(trace, np.isnan(array), fill, array)


def _count(trace: Trace, array: Tracer, axis: Any, keepdims: bool) -> Any:
    return np.sum(array == array, axis=axis, keepdims=keepdims)


@function(np.nansum, "a axis dtype out keepdims initial where")
def nansum(
    trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None
) -> Any:
    """The sum of what is not NaN."""
    return np.sum(_filled(trace, a, 0.0), axis=axis, keepdims=keepdims, dtype=dtype)


@function(np.nanprod, "a axis dtype out keepdims initial where")
def nanprod(
    trace: Trace, a: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None
) -> Any:
    """The product of what is not NaN."""
    return np.prod(_filled(trace, a, 1.0), axis=axis, keepdims=keepdims, dtype=dtype)


@function(np.nancumsum, "a axis dtype out")
def nancumsum(trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Partial sums of what is not NaN."""
    return np.cumsum(_filled(trace, a, 0.0), axis=axis, dtype=dtype)


@function(np.nancumprod, "a axis dtype out")
def nancumprod(trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Partial products of what is not NaN."""
    return np.cumprod(_filled(trace, a, 1.0), axis=axis, dtype=dtype)


@function(np.nanmean, "a axis dtype out keepdims where")
def nanmean(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean of what is not NaN."""
    array = trace.lift(a)
    return nansum(trace, array, axis, keepdims) / _count(trace, array, axis, keepdims)


@function(np.nanvar, "a axis dtype out ddof keepdims where mean correction")
def nanvar(trace: Trace, a: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """The variance of what is not NaN."""
    array = trace.number(trace.lift(a))
    deviations = array - nanmean(trace, array, axis, True)
    degrees = _count(trace, array, axis, keepdims) - ddof
    total = nansum(trace, deviations**2, axis, keepdims)
    return np.where(degrees > 0, total / degrees, np.nan)


@function(np.nanstd, "a axis dtype out ddof keepdims where mean correction")
def nanstd(trace: Trace, a: Any, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Any:
    """The standard deviation of what is not NaN; its slope at 0 is 0."""
    variance = nanvar(trace, a, axis, ddof, keepdims)
    return np.where(variance == 0, 0.0, np.sqrt(variance))


@function(np.nanmax, "a axis out keepdims initial where")
def nanmax(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest element that is not NaN."""
    return _extremum(trace, np.max, a, -np.inf, axis, keepdims)


@function(np.nanmin, "a axis out keepdims initial where")
def nanmin(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest element that is not NaN."""
    return _extremum(trace, np.min, a, np.inf, axis, keepdims)


def _extremum(trace: Trace, function: Any, a: Any, fill: float, axis: Any, keepdims: bool) -> Any:
    array = trace.lift(a)
    result = function(_filled(trace, array, fill), axis=axis, keepdims=keepdims)
    if array.kind != "f":
        return result
    return np.where(_count(trace, array, axis, keepdims) > 0, result, np.nan)
