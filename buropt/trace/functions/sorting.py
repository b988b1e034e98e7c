"""Rules for values in order: sorted arrays, medians and quantiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function, unsupported_keyword
from buropt.trace.errors import TraceError, location
from buropt.trace.functions._arguments import axes_of, with_axis
from buropt.trace.functions.picking import take
from buropt.trace.functions.shapes import moveaxis

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.argsort, "a axis kind order stable")
def argsort(trace: Trace, a: Any, axis: Any = -1, kind: Any = None, stable: Any = None) -> Tracer:
    """The places of the elements in ascending order, constants of differentiation.

    Equal elements always keep their order, whatever `kind` is.
    """
    array, k = with_axis(trace, a, axis)
    return trace.emit("argsort", (array,), {"axis": k}, kind="i")


@function(np.sort, "a axis kind order stable")
def sort(trace: Trace, a: Any, axis: Any = -1, kind: Any = None, stable: Any = None) -> Tracer:
    """The elements in ascending order, NaN last; cotangents go back to where they came from."""
    array, k = with_axis(trace, a, axis)
    places = argsort(trace, array, k)
    return trace.emit("take_along_axis", (array, places), {"axis": k}, kind=array.kind)


@function(np.median, "a axis out overwrite_input keepdims")
def median(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The middle of the elements in order, of an even number the mean of the two; NaN if any is."""
    array = trace.lift(a)
    ordered, shape = _in_order(trace, "np.median", array, axis, keepdims)
    n = ordered.shape[-1]
    middle = ordered[..., (n - 1) // 2 : n // 2 + 1].mean(axis=-1)
    return _or_nan(ordered[..., -1], middle).reshape(shape)


@function(np.quantile, "a q axis out overwrite_input method keepdims weights")
def quantile(
    trace: Trace,
    a: Any,
    q: Any,
    axis: Any = None,
    method: Any = "linear",
    keepdims: bool = False,
) -> Tracer:
    """The value below which a share q of the elements is; q is constant."""
    return _quantile(trace, "np.quantile", a, q, 1.0, axis, method, keepdims)


@function(np.percentile, "a q axis out overwrite_input method keepdims weights")
def percentile(
    trace: Trace,
    a: Any,
    q: Any,
    axis: Any = None,
    method: Any = "linear",
    keepdims: bool = False,
) -> Tracer:
    """The value below which q percent of the elements are; q is constant."""
    return _quantile(trace, "np.percentile", a, q, 100.0, axis, method, keepdims)


# Of a place between two elements: how far from the first one to the second, by method.
_SHARES: dict[str, Any] = {
    "linear": lambda between: between,
    "lower": lambda between: np.zeros_like(between),
    "higher": np.ceil,
    "midpoint": lambda between: np.where(between > 0, 0.5, 0.0),
}


def _quantile(
    trace: Trace, name: str, a: Any, q: Any, whole: float, axis: Any, method: Any, keepdims: bool
) -> Tracer:
    constant = trace.builder.constant_value(trace.lift(q).node)
    if constant is None:
        raise TraceError(
            f"{name}: a traced q cannot be traced. {location(trace.name)} Instead: a number, or "
            "an array of them, that does not depend on the traced arguments."
        )
    if method not in _SHARES:
        raise unsupported_keyword(trace, name, "method")
    shares = np.asarray(q, float) / whole
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"{name}: q must be between 0 and {whole:g}. {location(trace.name)}")
    array = trace.lift(a)
    ordered, shape = _in_order(trace, name, array, axis, keepdims)
    places = shares.ravel() * (ordered.shape[-1] - 1)
    lower = np.floor(places)
    between = _SHARES[method](places - lower)
    upper = lower + (between > 0)
    first: Any = take(trace, ordered, lower.astype(int), -1)
    second = take(trace, ordered, upper.astype(int), -1)
    value = _or_nan(ordered[..., -1:], first + (second - first) * between)
    return moveaxis(trace, value, -1, 0).reshape((*shares.shape, *shape))


def _in_order(
    trace: Trace, name: str, array: Tracer, axis: Any, keepdims: bool
) -> tuple[Tracer, list[int]]:
    """The elements over some axes in order, as a new last axis, and the shape of the result."""
    axes = axes_of(trace, axis, array.ndim)
    others = [k for k in range(array.ndim) if k not in axes]
    kept = [array.shape[k] for k in others]
    n = math.prod(array.shape[k] for k in axes)
    if n == 0:
        raise ValueError(
            f"{name}: there are no elements along axes {axes} of an array of shape {array.shape}. "
            f"{location(trace.name)}"
        )
    flat = trace.number(array).transpose([*others, *axes]).reshape([*kept, n])
    shape = [1 if k in axes else array.shape[k] for k in range(array.ndim)] if keepdims else kept
    return sort(trace, flat), shape


def _or_nan(last: Any, value: Any) -> Tracer:
    """What was found in the middle, or NaN if that is the last of the elements in order."""
    result: Tracer = np.where(last == last, value, last)
    return result
