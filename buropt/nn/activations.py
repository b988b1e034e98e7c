"""Activations: elementwise functions, and softmax and its relatives along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from buropt.nn._operands import Array, as_array, checked_axis, trace_of


def relu(x: Array) -> Array:
    """max(x, 0); the slope at 0 is 0, as in PyTorch."""
    trace = trace_of(x)
    return np.maximum(x, 0) if trace is None else trace.emit("relu", (trace.lift(x),))


def tanh(x: Array) -> Array:
    """The hyperbolic tangent, `np.tanh`."""
    return np.tanh(x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), `scipy.special.expit`."""
    trace = trace_of(x)
    return _special("expit")(x) if trace is None else trace.emit("expit", (trace.lift(x),))


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow, `np.logaddexp(0, x)`."""
    return np.logaddexp(0, x)


def silu(x: Array) -> Array:
    """The product of x and its sigmoid; 0 at minus infinity."""
    trace = trace_of(x)
    if trace is not None:
        return trace.emit("silu", (trace.lift(x),))
    return np.maximum(x, -1000) * _special("expit")(x)


def gelu(x: Array, approximate: Literal["none", "tanh"] = "none") -> Array:
    """The product of x and the standard normal distribution function of x; 0 at minus infinity.

    Parameters
    ----------
    x : array
    approximate : "none" or "tanh"
        "tanh" is x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, as in GPT-2.

    Raises
    ------
    ValueError
        If `approximate` is neither.
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(
            f"buropt.nn.gelu: approximate must be 'none' or 'tanh', got {approximate!r}"
        )
    trace = trace_of(x)
    if trace is not None:
        return trace.emit("gelu" if approximate == "none" else "gelu_tanh", (trace.lift(x),))
    x = np.maximum(x, -1000)
    if approximate == "none":
        return x * _special("ndtr")(x)
    bounded = np.minimum(x, 1000)
    return x * _special("expit")(2 * math.sqrt(2 / math.pi) * (bounded + 0.044715 * bounded**3))


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x) / sum(exp(x)) along an axis, without overflow."""
    return _along("softmax", x, axis)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """The logarithm of `softmax`, x - log(sum(exp(x))), without overflow."""
    return _along("log_softmax", x, axis)


def logsumexp(x: Array, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over some axes, all of them by default, without overflow.

    If all are minus infinity, so is the result, and the derivative is 0.
    """
    trace = trace_of(x)
    if trace is None:
        return _special("logsumexp")(np.asarray(x), axis=axis, keepdims=keepdims)
    array = trace.lift(x)
    listed = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [checked_axis("logsumexp", k, array) for k in listed]
    kept = [k for k in range(array.ndim) if k not in axes]
    length = math.prod(array.shape[k] for k in axes)
    rows = array.transpose([*kept, *axes]).reshape([*(array.shape[k] for k in kept), length])
    result = trace.emit("logsumexp", (rows,))
    shape = [1 if k in axes else extent for k, extent in enumerate(array.shape)]
    return result.reshape(shape) if keepdims else result


def _along(name: str, x: Array, axis: int) -> Array:
    trace = trace_of(x)
    k = checked_axis(name, axis, as_array(x))
    if trace is None:
        return _special(name)(np.asarray(x), axis=k)
    array = trace.lift(x)
    if k == array.ndim - 1:
        return trace.emit(name, (array,))
    return trace.emit(name, (array.swapaxes(k, -1),)).swapaxes(k, -1)


def _special(name: str) -> Callable[..., Any]:
    import scipy.special  # takes longer than all of buropt, and traced functions do not need it

    function: Callable[..., Any] = getattr(scipy.special, name)
    return function
