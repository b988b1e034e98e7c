"""Softmax attention, with any number of heads."""

from __future__ import annotations

import math

import numpy as np

from buropt.nn._operands import Array, as_array, trace_of, where
from buropt.nn.activations import softmax
from buropt.nn.layers import linear


def attention(q: Array, k: Array, v: Array, causal: bool = True) -> Array:
    """softmax(q k' / sqrt(width)) v, for each of the leading axes.

    Parameters
    ----------
    q : array, shape (..., T, width)
        Queries.
    k : array, shape (..., S, width)
        Keys.
    v : array, shape (..., S, width of the result)
        Values.
    causal : bool
        Whether query t only sees keys 0 to t.

    Returns
    -------
    array, shape (..., T, width of the result)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    q, k, v = as_array(q), as_array(k), as_array(v)
    fits = q.ndim == k.ndim == v.ndim >= 2 and q.shape[-1] == k.shape[-1]
    if not fits or q.shape[:-2] != k.shape[:-2] or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"buropt.nn.attention: q, k and v have shapes {q.shape}, {k.shape} and {v.shape}."
            f"{where(q, k, v)} Instead: (..., T, width), (..., S, width) and (..., S, any)."
        )
    if trace_of(q, k, v) is not None and q.shape == k.shape == v.shape:
        return _by_packed_rows(q, k, v, causal)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    return (softmax(scores) if scores.size else scores) @ v


def causal_self_attention(
    x: Array,
    in_proj_weight: Array,
    in_proj_bias: Array | None = None,
    out_proj_weight: Array | None = None,
    out_proj_bias: Array | None = None,
    *,
    n_heads: int,
    causal: bool = True,
) -> Array:
    """Multi-head self-attention, in which a position only sees itself and those before it.

    The parameters are those of `torch.nn.MultiheadAttention`: x is multiplied to queries, keys and
    values of all heads, one after another; each head attends; the result is multiplied once more.

    Parameters
    ----------
    x : array, shape (..., T, in)
        Leading axes are worked off one sequence at a time.
    in_proj_weight : array, shape (3 C, in)
    in_proj_bias : array, shape (3 C,), optional
    out_proj_weight : array, shape (out, C), optional
        Left out, the heads' results are returned side by side.
    out_proj_bias : array, shape (out,), optional
    n_heads : int
        Divides C.
    causal : bool
        False lets every position see all others.

    Returns
    -------
    array, shape (..., T, out)

    Raises
    ------
    ValueError
        If the shapes do not fit, or `n_heads` does not divide C.
    """
    x = as_array(x)
    rows = as_array(in_proj_weight).shape[0]
    if len(x.shape) < 2 or n_heads < 1 or rows % (3 * n_heads) != 0:
        raise ValueError(
            f"buropt.nn.causal_self_attention: x has shape {x.shape} and in_proj_weight "
            f"{as_array(in_proj_weight).shape} with n_heads={n_heads}.{where(x, in_proj_weight)} "
            "Instead: (..., T, in), (3 * C, in) and a divisor of C."
        )
    y = _heads(linear(x, in_proj_weight, in_proj_bias), n_heads, causal)
    return y if out_proj_weight is None else linear(y, out_proj_weight, out_proj_bias)


def _heads(qkv: Array, n_heads: int, causal: bool) -> Array:
    """The heads' results side by side, (..., T, C), of rows that hold q, k and v of all heads."""
    if qkv.ndim > 2:
        return np.stack([_heads(one, n_heads, causal) for one in qkv])
    trace = trace_of(qkv)
    if trace is not None:
        attributes = {"n_heads": n_heads, "causal": int(causal)}
        y: Array = trace.emit("attention", (qkv,), attributes)
        return y
    length, columns = qkv.shape[0], qkv.shape[1] // 3
    q, k, v = qkv.reshape(length, 3, n_heads, columns // n_heads).transpose(1, 2, 0, 3)
    return attention(q, k, v, causal).swapaxes(0, 1).reshape(length, columns)


def _by_packed_rows(q: Array, k: Array, v: Array, causal: bool) -> Array:
    """The fused primitive: leading axes become heads of rows that hold q, k and v."""
    trace = trace_of(q, k, v)
    assert trace is not None
    length, width = q.shape[-2:]
    n_heads = math.prod(q.shape[:-2])
    if n_heads * width == 0:
        return trace.lift(v)
    parts = [
        trace.lift(part)
        .reshape(n_heads, length, width)
        .swapaxes(0, 1)
        .reshape(length, n_heads * width)
        for part in (q, k, v)
    ]
    attributes = {"n_heads": n_heads, "causal": int(causal)}
    rows: Array = np.concatenate(parts, axis=1)
    y = trace.emit("attention", (rows,), attributes)
    return y.reshape(length, n_heads, width).swapaxes(0, 1).reshape(q.shape)
