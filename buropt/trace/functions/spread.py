"""Rules for variances, standard deviations and weighted means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of
from buropt.trace.functions.shapes import broadcast_to

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.var, "a axis dtype out ddof keepdims where mean correction")
def var(
    trace: Trace,
    a: Any,
    axis: Any = None,
    ddof: Any = None,
    keepdims: bool = False,
    correction: Any = None,
) -> Tracer:
    """The mean of the squared distances from the mean; divides by the count minus `ddof`."""
    array = trace.number(trace.lift(a))
    axes = tuple(axes_of(trace, axis, array.ndim))
    count = math.prod(array.shape[k] for k in axes)
    centered: Any = array - np.mean(array, axis=axes, keepdims=True)
    total = np.sum(np.square(centered), axis=axes, keepdims=keepdims)
    result: Tracer = total / max(0.0, count - _freedom(trace, "np.var", ddof, correction))
    return result


@function(np.std, "a axis dtype out ddof keepdims where mean correction")
def std(
    trace: Trace,
    a: Any,
    axis: Any = None,
    ddof: Any = None,
    keepdims: bool = False,
    correction: Any = None,
) -> Tracer:
    """The square root of the variance; where that is 0, so is the derivative."""
    return trace.emit("norm_root", (var(trace, a, axis, ddof, keepdims, correction),))


def _freedom(trace: Trace, name: str, ddof: Any, correction: Any) -> float:
    """What is subtracted from the count, by its two names."""
    if ddof and correction is not None:
        raise ValueError(f"{name}: ddof and correction are one. {location(trace.name)}")
    given = ddof if correction is None else correction
    return float(given or 0)


@function(np.average, "a axis weights returned keepdims")
def average(
    trace: Trace,
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean with weights, one for each element or one for each place along the axis."""
    array = trace.lift(a)
    axes = tuple(axes_of(trace, axis, array.ndim))
    if weights is None:
        mean: Any = np.mean(array, axis=axes, keepdims=keepdims)
        count = float(math.prod(array.shape[k] for k in axes))
        return (mean, trace.lift(np.full(mean.shape, count))) if returned else mean
    weighting = _aligned(trace, trace.lift(weights), array, axis, axes)
    total: Any = np.sum(weighting, axis=axes, keepdims=keepdims)
    mean = np.sum(array * weighting, axis=axes, keepdims=keepdims) / total
    return (mean, np.broadcast_to(total, mean.shape)) if returned else mean


def _aligned(
    trace: Trace, weights: Tracer, array: Tracer, axis: Any, axes: tuple[int, ...]
) -> Tracer:
    """The weights with one axis for each axis of the array."""
    if weights.shape == array.shape:
        return weights
    if axis is None or weights.shape != tuple(array.shape[k] for k in axes):
        raise ValueError(
            f"np.average: weights of shape {weights.shape} do not fit an array of shape "
            f"{array.shape}. {location(trace.name)} Instead: as many as elements, or an axis= and "
            "one for each place along it."
        )
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    shape = [extent if k in axes else 1 for k, extent in enumerate(array.shape)]
    return broadcast_to(trace, weights.transpose(order).reshape(shape), array.shape)
