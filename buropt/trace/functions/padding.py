"""The rule for `np.pad`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.trace.dispatch import function, unsupported_keyword
from buropt.trace.errors import UnsupportedOpError, location
from buropt.trace.functions._arguments import axes_of
from buropt.trace.functions.joining import concatenate
from buropt.trace.functions.picking import take
from buropt.trace.ufuncs import cast

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

_INDEXED = ("edge", "reflect", "symmetric", "wrap")


@function(np.pad, "array pad_width mode")
def pad(
    trace: Trace,
    array: Any,
    pad_width: Any,
    mode: str | Callable[..., Any] = "constant",
    constant_values: Any = 0,
    reflect_type: str = "even",
) -> Tracer:
    """Elements added before and after along each axis: constants, or copies of elements."""
    result = trace.lift(array)
    widths = _widths(trace, pad_width, result.ndim)
    if mode == "constant":
        return trace.fresh(_with_constants(trace, result, widths, constant_values))
    if mode not in _INDEXED:
        raise UnsupportedOpError(
            f"np.pad with mode {mode!r} cannot be traced. {location(trace.name)} Instead: mode "
            "'constant', 'edge', 'reflect', 'symmetric' or 'wrap', or np.concatenate."
        )
    if reflect_type != "even":
        raise unsupported_keyword(trace, "np.pad", "reflect_type")
    for axis, (before, after) in enumerate(widths.tolist()):
        if before or after:
            # NumPy itself says which elements are copied.
            how: Any = mode
            index = np.pad(np.arange(result.shape[axis]), (before, after), how)
            result = take(trace, result, index, axis)
    return trace.fresh(result)


def _widths(trace: Trace, pad_width: Any, ndim: int) -> NDArray[Any]:
    """What is added before and after, one row an axis."""
    if isinstance(pad_width, dict):
        rows = np.zeros((ndim, 2), int)
        for axis, width in pad_width.items():
            rows[axes_of(trace, axis, ndim)[0]] = width
        return rows
    rows = np.asarray(pad_width)
    if rows.dtype.kind not in "iu":
        operator.index(rows.flat[0])  # raises
    if np.any(rows < 0):
        raise ValueError(
            f"np.pad: pad_width must not be negative. "
            f"{location(trace.name)} Instead: a slice to leave elements out."
        )
    return np.broadcast_to(rows, (ndim, 2))


def _with_constants(
    trace: Trace, result: Tracer, widths: NDArray[Any], constant_values: Any
) -> Tracer:
    values = cast(trace, trace.lift(constant_values), result.kind)
    shape = {"shape": [result.ndim, 2]}
    values = trace.emit("broadcast_to", (values,), shape, kind=result.kind)
    for axis, both in enumerate(widths.tolist()):
        sides = []
        for side, width in enumerate(both):
            shape = {"shape": [*result.shape[:axis], width, *result.shape[axis + 1 :]]}
            sides.append(trace.emit("broadcast_to", (values[axis, side],), shape, kind=result.kind))
        if any(both):
            result = concatenate(trace, [sides[0], result, sides[1]], axis)
    return result
