"""Rules for ranges, and for derivatives of sampled functions."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import along, axes_of
from buropt.trace.functions.joining import concatenate

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.linspace, "start stop num endpoint retstep dtype axis device")
def linspace(
    trace: Trace,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    axis: int = 0,
) -> Any:
    """Equally spaced numbers from `start` to `stop`."""
    count = operator.index(num)
    if count < 0:
        raise ValueError(
            f"np.linspace: num must not be negative, got {count}. "
            f"{location(trace.name)} Instead: 0 or more."
        )
    first, last = np.broadcast_arrays(trace.number(trace.lift(start)), trace.lift(stop))
    gaps = count - 1 if endpoint else count
    step: Any = (last - first) / gaps if gaps > 0 else np.nan
    factors = np.arange(count, dtype=float).reshape((-1,) + (1,) * first.ndim)
    numbers = factors * (step if gaps > 0 else last - first) + first
    if endpoint and count > 1:
        numbers = concatenate(trace, [numbers[:-1], last[None]], 0)
    numbers = np.moveaxis(numbers, 0, axis)
    return (trace.fresh(numbers), step) if retstep else trace.fresh(numbers)


@function(np.logspace, "start stop num endpoint base dtype axis")
def logspace(
    trace: Trace,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    axis: int = 0,
) -> Any:
    """Powers of `base` with equally spaced exponents."""
    if np.ndim(base):
        start, stop, base = np.broadcast_arrays(start, stop, base)
        base = np.expand_dims(base, axis)
    return np.power(base, linspace(trace, start, stop, num, endpoint, axis=axis))


@function(np.geomspace, "start stop num endpoint dtype axis")
def geomspace(
    trace: Trace, start: Any, stop: Any, num: Any = 50, endpoint: bool = True, axis: int = 0
) -> Tracer:
    """Numbers from `start` to `stop` with equal ratios; NaN if these differ in sign."""
    first, last = np.broadcast_arrays(trace.number(trace.lift(start)), trace.lift(stop))
    exponents = linspace(trace, np.zeros_like(first), np.log(last / first), num, endpoint)
    numbers = first * np.exp(exponents)
    if endpoint and operator.index(num) > 1:
        numbers = concatenate(trace, [numbers[:-1], last[None]], 0)
    return trace.fresh(np.moveaxis(numbers, 0, axis))


@function(np.gradient, "f *varargs axis edge_order")
def gradient(trace: Trace, f: Any, varargs: Any = (), axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives of a sampled function: second order inside, first or second at the ends."""
    values = trace.number(trace.lift(f))
    axes = axes_of(trace, axis, values.ndim)
    spacings = [1.0] * len(axes) if not varargs else list(varargs)
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"np.gradient: {len(spacings)} steps for {len(axes)} axes. "
            f"{location(trace.name)} Instead: none, one, or one for each axis."
        )
    if edge_order not in (1, 2):
        raise ValueError(
            f"np.gradient: edge_order must be 1 or 2, got {edge_order}. "
            f"{location(trace.name)} Instead: 1 or 2."
        )
    results = []
    for k, spacing in zip(axes, spacings, strict=True):
        n = values.shape[k]
        if n < edge_order + 1:
            raise ValueError(
                f"np.gradient: axis {k} of an array of shape {values.shape} has fewer than "
                f"{edge_order + 1} elements. "
                f"{location(trace.name)} Instead: axis=... for the axes that are long enough."
            )
        if np.ndim(spacing) and np.shape(spacing) != (n,):
            raise ValueError(
                f"np.gradient: coordinates of shape {np.shape(spacing)} for axis {k} of extent {n}."
                f" {location(trace.name)} Instead: a number, or as many coordinates as elements."
            )
        results.append(_derivative(trace, values, k, spacing, edge_order))
    return results[0] if len(results) == 1 else tuple(results)


def _derivative(trace: Trace, values: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    def at(start: int, stop: int | None) -> Any:
        return values[along(axis, slice(start, stop))]

    if np.ndim(spacing) == 0:
        inside = (at(2, None) - at(0, -2)) / (2.0 * spacing)
        if edge_order == 1:
            first, last = at(1, 2) - at(0, 1), at(-1, None) - at(-2, -1)
        else:
            first = -1.5 * at(0, 1) + 2.0 * at(1, 2) - 0.5 * at(2, 3)
            last = 1.5 * at(-1, None) - 2.0 * at(-2, -1) + 0.5 * at(-3, -2)
        return concatenate(trace, [first / spacing, inside, last / spacing], axis)

    places = trace.lift(spacing)
    gaps: Any = (places[1:] - places[:-1]).reshape((-1,) + (1,) * (values.ndim - 1 - axis))
    slopes = (at(1, None) - at(0, -1)) / gaps

    def piece(start: int, stop: int | None) -> Any:
        return slopes[along(axis, slice(start, stop))]

    # Between two pieces the slope of each is weighted by the other piece's length.
    before, after = gaps[:-1], gaps[1:]
    inside = (after * piece(0, -1) + before * piece(1, None)) / (before + after)
    first, last = piece(0, 1), piece(-1, None)
    if edge_order == 2:
        first = first - gaps[:1] * (piece(1, 2) - first) / (gaps[:1] + gaps[1:2])
        last = last + gaps[-1:] * (last - piece(-2, -1)) / (gaps[-1:] + gaps[-2:-1])
    return concatenate(trace, [first, inside, last], axis)
