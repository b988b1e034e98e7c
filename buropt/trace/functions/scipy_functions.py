"""Rules for the functions of scipy.special that are no ufuncs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import scipy_function, unsupported_keyword
from buropt.trace.functions._arguments import axes_of
from buropt.trace.functions.shapes import broadcast_to, expand_dims

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@scipy_function("logsumexp", "a axis b keepdims return_sign")
def logsumexp(
    trace: Trace,
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Tracer:
    """`log(sum(b * exp(a)))` without overflow; of -inf alone it is -inf, with gradient 0."""
    if return_sign:
        raise unsupported_keyword(trace, "scipy.special.logsumexp", "return_sign")
    array = trace.lift(a)
    weights = None if b is None else trace.lift(b)
    if weights is not None:
        shape = np.broadcast_shapes(array.shape, weights.shape)
        array, weights = broadcast_to(trace, array, shape), broadcast_to(trace, weights, shape)
    axes = axes_of(trace, axis, array.ndim)
    if weights is None:
        result = trace.emit("logsumexp", (_axes_last(array, axes),))
    else:
        result = _weighted(_axes_last(array, axes), _axes_last(weights, axes))
    return expand_dims(trace, result, axes) if keepdims else trace.fresh(result)


def _weighted(a: Any, b: Any) -> Any:
    """`log(sum(b * exp(a)))` over the last axis."""
    is_out = b == 0
    largest = np.max(np.where(is_out, -np.inf, a), axis=-1, keepdims=True)
    # Any number near the largest will do; a rounded one is a constant of differentiation.
    shift = np.rint(np.where(np.abs(largest) < np.inf, largest, 0.0))
    shifted = a - shift
    # An element of weight 0 does not count, whatever it is, but its weight has a derivative.
    cap = 80.0
    shifted = np.where(is_out & ~(shifted < cap), cap, shifted)
    total = np.sum(b * np.exp(shifted), axis=-1)
    nothing = total == 0
    log = np.log(np.where(nothing, 1.0, total))
    return np.where(nothing, -np.inf, log + shift[..., 0])


@scipy_function("softmax", "x axis")
def softmax(trace: Trace, x: Any, axis: Any = None) -> Tracer:
    """`exp(x) / sum(exp(x))` over some axes, without overflow."""
    return _of_rows(trace, "softmax", x, axis)


@scipy_function("log_softmax", "x axis")
def log_softmax(trace: Trace, x: Any, axis: Any = None) -> Tracer:
    """`x - logsumexp(x)` over some axes."""
    return _of_rows(trace, "log_softmax", x, axis)


def _of_rows(trace: Trace, op: str, x: Any, axis: Any) -> Tracer:
    array = trace.lift(x)
    axes = axes_of(trace, axis, array.ndim)
    others = [k for k in range(array.ndim) if k not in axes]
    rows = trace.emit(op, (_axes_last(array, axes),))
    order = others + axes
    moved = rows.reshape([array.shape[k] for k in order])
    return trace.fresh(moved.transpose([order.index(k) for k in range(array.ndim)]))


def _axes_last(array: Tracer, axes: list[int]) -> Tracer:
    """The array with some axes as its last one."""
    others = [k for k in range(array.ndim) if k not in axes]
    moved = array.transpose(others + axes)
    extent = math.prod(array.shape[k] for k in axes)
    return moved.reshape([*(array.shape[k] for k in others), extent])
