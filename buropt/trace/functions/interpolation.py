"""Rules that look up where numbers stand in a sorted list of constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.trace.dispatch import function
from buropt.trace.errors import TraceError, location
from buropt.trace.functions.picking import take
from buropt.trace.functions.selection import where

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.interp, "x xp fp left right period")
def interp(
    trace: Trace,
    x: Any,
    xp: Any,
    fp: Any,
    left: Any = None,
    right: Any = None,
    period: Any = None,
) -> Tracer:
    """Piecewise linear interpolation; at a knot the slope by x is that of the piece after it."""
    at, values = trace.number(trace.lift(x)), trace.number(trace.lift(fp))
    knots = _constant(trace, "np.interp", "xp", xp)
    if knots.ndim != 1 or knots.size == 0 or values.shape != knots.shape:
        raise ValueError(
            f"np.interp: xp of shape {knots.shape} and fp of shape {values.shape} are not vectors "
            f"of one length. {location(trace.name)} Instead: as many values as knots."
        )
    if period is not None:
        at, knots, values = _periodic(trace, at, knots, values, period)
        left = right = None
    elif np.any(np.diff(knots) < 0):
        raise ValueError(
            f"np.interp: xp must be increasing. "
            f"{location(trace.name)} Instead: order = np.argsort(xp), then xp[order] and fp[order]."
        )
    first, last = values[0], values[-1]
    result = where(trace, at >= knots[-1], last, first)
    if knots.size > 1:
        piece = _count(trace, at, knots[1:-1], "right")
        slopes = (values[1:] - values[:-1]) / np.diff(knots)
        start = take(trace, knots, piece)
        inside = take(trace, slopes, piece) * (at - start) + take(trace, values, piece)
        result = where(trace, (at >= knots[-1]) | (at < knots[0]), result, inside)
    if right is not None:
        result = where(trace, at > knots[-1], right, result)
    if left is not None:
        result = where(trace, at < knots[0], left, result)
    return where(trace, at != at, at, result)


def _periodic(
    trace: Trace, x: Tracer, xp: NDArray[Any], fp: Tracer, period: Any
) -> tuple[Any, NDArray[Any], Tracer]:
    """Knots sorted within one period, and one more on each side."""
    if period == 0:
        raise ValueError(
            f"np.interp: period must not be 0. {location(trace.name)} Instead: leave period out."
        )
    period = abs(period)
    knots = xp % period
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    knots = np.concatenate([knots[-1:] - period, knots, knots[:1] + period])
    order = np.concatenate([order[-1:], order, order[:1]])
    return np.remainder(x, period), knots, take(trace, fp, order)


@function(np.searchsorted, "a v side sorter")
def searchsorted(trace: Trace, a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Tracer:
    """The position that numbers have in a sorted vector: how many elements come before them."""
    if side not in ("left", "right"):
        raise ValueError(
            f"np.searchsorted: side must be 'left' or 'right', got {side!r}. "
            f"{location(trace.name)} Instead: side='left' or side='right'."
        )
    array = trace.lift(a)
    if array.ndim != 1:
        raise ValueError(
            f"np.searchsorted: an array of shape {array.shape} is not a vector. "
            f"{location(trace.name)} Instead: a sorted vector."
        )
    if sorter is not None:
        array = take(trace, array, sorter)
    return _count(trace, trace.lift(v), array, side)


@function(np.digitize, "x bins right")
def digitize(trace: Trace, x: Any, bins: Any, right: bool = False) -> Tracer:
    """The number of the bin that each element falls into; bins increase or decrease."""
    edges = _constant(trace, "np.digitize", "bins", bins)
    steps = np.diff(edges)
    if edges.ndim != 1 or not (np.all(steps >= 0) or np.all(steps <= 0)):
        raise ValueError(
            "np.digitize: bins must be a vector that increases or decreases. "
            f"{location(trace.name)} Instead: np.sort(bins)."
        )
    side = "left" if right else "right"
    if np.all(steps >= 0):
        return _count(trace, trace.lift(x), edges, side)
    found: Tracer = edges.size - _count(trace, trace.lift(x), edges[::-1], side)
    return found


def _count(trace: Trace, v: Tracer, a: Any, side: str) -> Tracer:
    """How many elements of the vector come before each number; NaN comes after all of them."""
    spread = v.reshape((*v.shape, 1))
    before = (spread > a) if side == "left" else (spread >= a)
    return np.sum(before | (spread != spread), axis=-1)  # type: ignore[no-any-return]


def _constant(trace: Trace, name: str, argument: str, value: Any) -> NDArray[Any]:
    constant = trace.builder.constant_value(trace.lift(value).node)
    if constant is None:
        raise TraceError(
            f"{name}: the order of a traced {argument} is not known while tracing. "
            f"{location(trace.name)} Instead: a constant array."
        )
    return np.asarray(constant)
