"""Rules for convolution and correlation of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions.padding import pad
from buropt.trace.functions.picking import take
from buropt.trace.ufuncs import cast, matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

_MODES = ("valid", "same", "full")


@function(np.convolve, "a v mode")
def convolve(trace: Trace, a: Any, v: Any, mode: Any = "full") -> Tracer:
    """The coefficients of a product of polynomials: all, the middle, or those of full overlap."""
    long, short = _vectors(trace, "np.convolve", a, v)
    if short.size > long.size:
        long, short = short, long
    return _windows_times(trace, "np.convolve", long, short[::-1], mode)


@function(np.correlate, "a v mode")
def correlate(trace: Trace, a: Any, v: Any, mode: Any = "valid") -> Tracer:
    """The inner products of a vector with all shifts of another one."""
    left, right = _vectors(trace, "np.correlate", a, v)
    if right.size > left.size:
        return trace.fresh(_windows_times(trace, "np.correlate", right, left, mode)[::-1])
    return _windows_times(trace, "np.correlate", left, right, mode)


def _vectors(trace: Trace, name: str, a: Any, v: Any) -> tuple[Tracer, Tracer]:
    pair = []
    for operand in (a, v):
        array = trace.lift(operand)
        if array.ndim > 1 or array.size == 0:
            raise ValueError(
                f"{name}: an operand of shape {array.shape} is not a vector with elements. "
                f"{location(trace.name)} Instead: vectors; np.einsum of sliding_window_view(...)."
            )
        pair.append(array.reshape(-1))
    return pair[0], pair[1]


def _windows_times(trace: Trace, name: str, long: Tracer, short: Tracer, mode: Any) -> Tracer:
    """The products of `short` with the windows of its length of `long`, which has zeros around."""
    if mode not in _MODES:
        raise ValueError(
            f"{name}: mode must be one of {', '.join(_MODES)}, got {mode!r}. "
            f"{location(trace.name)} Instead: one of these."
        )
    is_mask = long.is_bool and short.is_bool  # NumPy: "or" of "and"
    width = short.size
    before, after = {
        "valid": (0, 0),
        "same": (width // 2, (width - 1) // 2),
        "full": (width - 1, width - 1),
    }[mode]
    padded = pad(trace, cast(trace, long, "i") if is_mask else long, (before, after))
    starts = np.arange(padded.size - width + 1)
    windows = take(trace, padded, starts[:, None] + np.arange(width), 0)
    result = matmul(trace, windows, cast(trace, short, "i") if is_mask else short)
    return cast(trace, result, "b") if is_mask else result
