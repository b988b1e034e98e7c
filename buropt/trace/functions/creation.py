"""Rules for copies, constants like an array, and its shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import array_rule, function, graph_kind
from buropt.trace.functions._arguments import (
    axes_of,
    extents_of,
    result_kind,
)
from buropt.trace.ufuncs import cast

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.copy, "a order subok")
def copy(trace: Trace, a: Any) -> Tracer:
    """The same values in memory of their own."""
    return trace.fresh(trace.lift(a))


@array_rule("astype")
def astype(trace: Trace, array: Tracer, dtype: Any) -> Tracer:
    """A copy as the graph's float dtype, as integers, or as booleans."""
    kind = graph_kind(trace, dtype)
    if kind is None:
        array.refuse(
            f"a traced value cannot be converted to dtype {np.dtype(dtype)}",
            f"leave it as {array.dtype}; a graph computes in one float dtype, {trace.dtype}, and "
            "has integers as int64",
        )
    return trace.fresh(cast(trace, array, kind))


@function(np.zeros_like, "a dtype order subok shape device")
def zeros_like(trace: Trace, a: Any, dtype: Any = None, shape: Any = None) -> Tracer:
    """Zeros of the same shape; of a mask, a mask."""
    return full_like(trace, a, 0.0, dtype, shape)


@function(np.ones_like, "a dtype order subok shape device")
def ones_like(trace: Trace, a: Any, dtype: Any = None, shape: Any = None) -> Tracer:
    """Ones of the same shape; of a mask, a mask."""
    return full_like(trace, a, 1.0, dtype, shape)


@function(np.full_like, "a fill_value dtype order subok shape device")
def full_like(
    trace: Trace, a: Any, fill_value: Any, dtype: Any = None, shape: Any = None
) -> Tracer:
    """One value everywhere, cast to the dtype of `a`; it may be traced."""
    array, fill = trace.lift(a), trace.lift(fill_value)
    kind = result_kind(trace, "np.full_like", dtype, array.kind)
    extents = list(array.shape) if shape is None else extents_of(shape)
    value = cast(trace, fill, kind)
    return trace.emit("broadcast_to", (value,), {"shape": extents}, kind=kind)


@function(np.shape, "a")
def shape_(trace: Trace, a: Any) -> tuple[int, ...]:
    """The shape, a plain tuple."""
    return trace.lift(a).shape


@function(np.ndim, "a")
def ndim(trace: Trace, a: Any) -> int:
    """The number of axes, a plain int."""
    return trace.lift(a).ndim


@function(np.size, "a axis")
def size(trace: Trace, a: Any, axis: Any = None) -> int:
    """The number of elements, a plain int."""
    array = trace.lift(a)
    return math.prod(array.shape[k] for k in axes_of(trace, axis, array.ndim))
