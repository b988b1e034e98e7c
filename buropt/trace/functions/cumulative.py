"""Rules for cumulative sums and products, differences, and integrals by the trapezoidal rule."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import axes_of, total_kind, with_axis
from buropt.trace.functions.joining import concatenate
from buropt.trace.functions.shapes import broadcast_to

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


# Sums and products


@function(np.cumsum, "a axis dtype out")
def cumsum(trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Tracer:
    """Sums of all elements up to each place along an axis, or of the flattened array."""
    return _scan(trace, "cumsum", {"reverse": 0}, a, axis, dtype)


@function(np.cumprod, "a axis dtype out")
def cumprod(trace: Trace, a: Any, axis: Any = None, dtype: Any = None) -> Tracer:
    """Products of all elements up to each place along an axis, or of the flattened array."""
    return _scan(trace, "cumprod", {"reverse": 0, "exclusive": 0}, a, axis, dtype)


def _scan(
    trace: Trace, op: str, attributes: dict[str, int], a: Any, axis: Any, dtype: Any
) -> Tracer:
    array, k = with_axis(trace, a, axis)
    kind = total_kind(trace, f"np.{op}", dtype, array)
    return trace.emit(op, (array,), {"axis": k} | attributes, kind=kind)


def _cumulative(
    trace: Trace, scan: Callable[..., Tracer], first: float, x: Any, axis: Any, initial: Any
) -> Tracer:
    """The array API's form: the axis may only be left out if there is one, and `first` may lead."""
    array = trace.lift(x)
    if axis is None:
        if array.ndim != 1:
            raise ValueError(
                f"an array of shape {array.shape} needs an axis. {location(trace.name)} Instead: "
                "give axis=, an integer."
            )
        axis = 0
    result = scan(trace, array, axis)
    if not initial:
        return result
    (k,) = axes_of(trace, axis, array.ndim)
    shape = [1 if i == k else extent for i, extent in enumerate(array.shape)]
    leading = broadcast_to(trace, int(first), shape)
    return concatenate(trace, [leading, result], k)


if hasattr(np, "cumulative_sum"):  # from NumPy 2.1 on

    @function(np.cumulative_sum, "x axis dtype out include_initial")
    def cumulative_sum(
        trace: Trace, x: Any, axis: Any = None, include_initial: bool = False
    ) -> Tracer:
        """`np.cumsum` along one axis, with a leading 0 if wanted."""
        return _cumulative(trace, cumsum, 0, x, axis, include_initial)

    @function(np.cumulative_prod, "x axis dtype out include_initial")
    def cumulative_prod(
        trace: Trace, x: Any, axis: Any = None, include_initial: bool = False
    ) -> Tracer:
        """`np.cumprod` along one axis, with a leading 1 if wanted."""
        return _cumulative(trace, cumprod, 1, x, axis, include_initial)


# Differences


@function(np.diff, "a n axis prepend append")
def diff(
    trace: Trace, a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None
) -> Tracer:
    """Differences of neighbours along an axis, `n` times; of masks, where they differ."""
    array = trace.lift(a)
    order = operator.index(n)
    if order < 0:
        raise ValueError(f"np.diff: n={order} is negative. {location(trace.name)}")
    if order == 0:
        return trace.fresh(array)
    (k,) = axes_of(trace, axis, array.ndim)
    parts = [array]
    if prepend is not None:
        parts.insert(0, _as_rows(trace, prepend, array, k))
    if append is not None:
        parts.append(_as_rows(trace, append, array, k))
    if len(parts) > 1:
        array = concatenate(trace, parts, k)
    for _ in range(order):
        upper, lower = _part(array, k, slice(1, None)), _part(array, k, slice(None, -1))
        array = upper != lower if array.is_bool else upper - lower
    return array


def _as_rows(trace: Trace, part: Any, array: Tracer, axis: int) -> Tracer:
    """What is put in front of or behind an array; a number is repeated along the other axes."""
    rows = trace.lift(part)
    if rows.ndim > 0:
        return rows
    shape = [1 if k == axis else extent for k, extent in enumerate(array.shape)]
    return broadcast_to(trace, rows, shape)


@function(np.ediff1d, "ary to_end to_begin")
def ediff1d(trace: Trace, ary: Any, to_end: Any = None, to_begin: Any = None) -> Tracer:
    """Differences of neighbours in the flattened array, with more elements at the ends."""
    result = diff(trace, trace.lift(ary).ravel())
    parts = [result]
    if to_begin is not None:
        parts.insert(0, trace.lift(to_begin).ravel())
    if to_end is not None:
        parts.append(trace.lift(to_end).ravel())
    return concatenate(trace, parts) if len(parts) > 1 else result


# Integrals


def trapezoid(trace: Trace, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Tracer:
    """The integral along an axis by the trapezoidal rule, at places `x` or in steps of `dx`."""
    array = trace.lift(y)
    (k,) = axes_of(trace, axis, array.ndim)
    width = trace.lift(dx)
    if x is not None:
        places = trace.lift(x)
        if places.ndim == 1:
            width = diff(trace, places).reshape([-1 if i == k else 1 for i in range(array.ndim)])
        else:
            width = diff(trace, places, axis=k)
    areas = width * (_part(array, k, slice(1, None)) + _part(array, k, slice(None, -1))) / 2.0
    total: Tracer = areas.sum(axis=k)
    return total


for _name in ("trapezoid", "trapz"):  # the newer and the older name
    if hasattr(np, _name):
        function(getattr(np, _name), "y x dx axis")(trapezoid)


def _part(array: Tracer, axis: int, part: slice) -> Tracer:
    return array[(slice(None),) * axis + (part,)]
