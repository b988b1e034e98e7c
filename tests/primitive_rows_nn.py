"""Rows of the primitives of networks, beside those in `primitive_rows.py`.

The references are analytic, so that derivatives can be compared with complex steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.special
from primitive_rows import Example, Row

EPS = 0.01
_EPS_BITS = {"eps": int(np.float64(EPS).view(np.int64))}


def labels(n: int) -> Callable[..., Any]:
    """Whole numbers 0..n-1."""
    return lambda rng, shape: rng.integers(0, n, shape)


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x.real, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def _logsumexp(x: Any) -> Any:
    largest = np.max(x.real, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), axis=-1)) + largest[..., 0]


def _log_softmax(x: Any) -> Any:
    return x - _logsumexp(x)[..., None]


def _cross_entropy(x: Any, label: Any) -> Any:
    return _logsumexp(x) - np.sum(x * _one_hot(label, x.shape[-1]), axis=-1)


def _one_hot(label: Any, n: int) -> Any:
    return np.eye(n)[label.real.astype(int)]


def _layer_norm(x: Any, eps: Any) -> Any:
    return _rms_norm(x - np.mean(x, axis=-1, keepdims=True), eps)


def _layer_norm_affine(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    return _layer_norm(x, eps) * weight + bias


def _rms_norm(x: Any, eps: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS)


def _attention(qkv: Any, n_heads: int, causal: int) -> Any:
    length = len(qkv)
    q, k, v = qkv.reshape(length, 3, n_heads, -1).transpose(1, 2, 0, 3)
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(length) > 0, scores, -1e300)
    return (_softmax(scores) @ v).swapaxes(0, 1).reshape(length, -1)


def _patches(x: Any, kernel: Any, stride: Any, padding: Any) -> Any:
    x = np.pad(x, [(0, 0), *((p, p) for p in padding)])
    rows, columns = (range(0, x.shape[i + 1] - kernel[i] + 1, stride[i]) for i in (0, 1))
    windows = [x[:, r : r + kernel[0], c : c + kernel[1]].ravel() for r in rows for c in columns]
    return np.stack(windows)


def _gelu_tanh(x: Any) -> Any:
    with np.errstate(all="ignore"):
        u = np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x * x)
        y = x * scipy.special.expit(2 * u)
    return np.where(x == -np.inf, -0.0, y)


# One row, the rows of a whole group and more, rows longer than a register.
_ROWS = tuple(Example((shape,)) for shape in ((3,), (5, 1), (2, 19, 5), (3, 40)))
_NO_AXIS = (Example(((),)), "a value of shape .* has no last axis")


def _with_eps(reference: Callable[..., Any]) -> Row:
    return Row(
        reference,
        tuple(Example(example.operands, _EPS_BITS) for example in _ROWS),
        ((Example(((),), _EPS_BITS), _NO_AXIS[1]),),
        ulp=40,
    )


NN_ROWS: dict[str, Row] = {
    "relu": Row(lambda x: np.maximum(x, 0), precise=lambda x: max(x, 0)),
    "silu": Row(
        lambda x: np.where(x == -np.inf, -0.0, x) * scipy.special.expit(x),
        special=(-40, 40),
        precise=lambda x: x / (1 + mpmath.exp(-x)),
    ),
    "gelu": Row(
        lambda x: np.where(x == -np.inf, -0.0, x) * scipy.special.ndtr(x),
        special=(-4, 4),
        ulp=40,  # SciPy's tail
        precise=lambda x: x * mpmath.ncdf(x),
        slope_ulp=40,
    ),
    "gelu_tanh": Row(
        _gelu_tanh,
        special=(-4, 4),
        cancels=True,
        precise=lambda x: (
            x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + 0.044715 * x**3))) / 2
        ),
    ),
    "softmax": Row(_softmax, _ROWS, (_NO_AXIS,), ulp=20),
    "log_softmax": Row(_log_softmax, _ROWS, (_NO_AXIS,), ulp=20),
    "logsumexp": Row(_logsumexp, _ROWS, (_NO_AXIS,), ulp=20),
    "softmax_cross_entropy": Row(
        _cross_entropy,
        (
            Example(((4,), ((), labels(4)))),
            Example(((19, 5), ((19,), labels(5)))),
            Example(((2, 3, 40), ((2, 3), labels(40)))),
        ),
        ((Example(((2, 3), (3,))), r"logits of shape \(2, 3\) need labels of shape \(2,\)"),),
        indices=(1,),
        ulp=20,
    ),
    "one_hot": Row(
        _one_hot,
        (Example((((2, 3), labels(4)),), {"n": 4}), Example((((), labels(2)),), {"n": 2})),
        indices=(0,),
        constant=True,
    ),
    "layer_norm": _with_eps(_layer_norm),
    "layer_norm_affine": Row(
        _layer_norm_affine,
        tuple(
            Example((shape, shape[-1:], shape[-1:]), _EPS_BITS)
            for shape in ((3,), (5, 1), (2, 19, 5), (3, 40), (4, 24))
        ),
        (
            (Example(((), (3,), (3,)), _EPS_BITS), _NO_AXIS[1]),
            (
                Example(((2, 3), (3,), (2,)), _EPS_BITS),
                r"rows of shape \(2, 3\) need a weight and a bias of shape \(3,\)",
            ),
        ),
        ulp=40,
    ),
    "rms_norm": _with_eps(_rms_norm),
    "attention": Row(
        _attention,
        (
            Example(((5, 18),), {"n_heads": 3, "causal": 1}),
            Example(((4, 15),), {"n_heads": 1, "causal": 0}),
            Example(((1, 3),), {"n_heads": 1, "causal": 1}),
            # More queries than one block of lanes takes.
            Example(((11, 24),), {"n_heads": 2, "causal": 1}),
            Example(((19, 36),), {"n_heads": 3, "causal": 0}),
            # Too large for lanes: products over blocks of queries.
            Example(((70, 90),), {"n_heads": 2, "causal": 1}),
            Example(((66, 48),), {"n_heads": 1, "causal": 0}),
        ),
        ((Example(((4, 10),), {"n_heads": 2, "causal": 1}), r"\(T, 3 \* C\) with C a multiple"),),
        ulp=40,
    ),
    "patches": Row(
        _patches,
        (
            Example(((2, 4, 5),), {"kernel": [2, 3], "stride": [1, 2], "padding": [0, 0]}),
            Example(((1, 3, 3),), {"kernel": [3, 3], "stride": [1, 1], "padding": [2, 1]}),
            Example(((3, 1, 7),), {"kernel": [1, 2], "stride": [1, 3], "padding": [0, 2]}),
        ),
        (
            (
                Example(((1, 2, 2),), {"kernel": [3, 1], "stride": [1, 1], "padding": [0, 0]}),
                r"patches: a kernel of shape \(3, 1\) .* does not fit",
            ),
        ),
    ),
}
