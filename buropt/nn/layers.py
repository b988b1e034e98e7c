"""Linear maps, embeddings and normalizations."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from buropt.nn._operands import Array, as_array, trace_of, where
from buropt.trace import UnsupportedOpError


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Multiply x by the weight's transpose and add the bias.

    Parameters
    ----------
    x : array, shape (..., in)
    weight : array, shape (out, in)
    bias : array, shape (out,), optional

    Returns
    -------
    array, shape (..., out)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    x, weight = as_array(x), as_array(weight)
    if weight.ndim != 2 or len(x.shape) == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"buropt.nn.linear: x of shape {x.shape} and weight of shape {weight.shape} do not "
            f"fit.{where(x, weight)} Instead: x of shape (..., in) and weight of shape (out, in)."
        )
    shape = x.shape
    if len(shape) > 2:  # all rows are one product
        x = x.reshape(-1, shape[-1])
    y = x @ weight.T
    if bias is not None:
        y = y + bias
    return y if len(shape) <= 2 else y.reshape(*shape[:-1], weight.shape[0])


def embedding(indices: Array, weight: Array) -> Array:
    """The rows of a table: `weight[indices]`.

    Parameters
    ----------
    indices : array of integers, shape (...)
    weight : array, shape (number of rows, width)

    Returns
    -------
    array, shape (..., width)
    """
    trace = trace_of(weight, indices)
    table = weight if trace is None else trace.lift(weight)  # NumPy would not ask the indices
    return np.take(table, indices, axis=0)


def layer_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis.

    Parameters
    ----------
    x : array, shape (..., C)
    weight, bias : array, shape (C,), optional
    eps : float
        Keeps the slope of constant rows finite.
    """
    trace = trace_of(x, weight, bias)
    if trace is not None:
        x = trace.lift(x)
        columns = x.shape[-1:]
        if all(part is not None and np.shape(part) == columns for part in (weight, bias)):
            operands = (x, trace.lift(weight), trace.lift(bias))
            return trace.emit("layer_norm_affine", operands, {"eps": _bits(eps)})
        y: Array = trace.emit("layer_norm", (x,), {"eps": _bits(eps)})
    else:
        centred = x - np.mean(x, axis=-1, keepdims=True)
        y = centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + eps)
    return _affine(y, weight, bias)


def rms_norm(x: Array, weight: Array | None = None, eps: float = 1e-5) -> Array:
    """Root mean square norm: x / sqrt(mean(x^2) + eps) * weight over the last axis.

    Parameters
    ----------
    x : array, shape (..., C)
    weight : array, shape (C,), optional
    eps : float
    """
    trace = trace_of(x, weight)
    if trace is not None:
        y: Array = trace.emit("rms_norm", (trace.lift(x),), {"eps": _bits(eps)})
    else:
        x = np.asarray(x)
        y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return _affine(y, weight, None)


def dropout(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: what is drawn while a loss is traced would be replayed in every later call."""
    raise UnsupportedOpError(
        f"buropt.nn.dropout draws random numbers, and a traced loss has none.{where(*args)} "
        "Instead: draw masks of 0 and 1 outside, one a sample, pass them as data, and multiply "
        "by mask / (1 - p)."
    )


def _affine(y: Array, weight: Array | None, bias: Array | None) -> Array:
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def _bits(number: float) -> int:
    """A number as the integer that attributes of primitives can hold."""
    return int(np.float64(number).view(np.int64))
