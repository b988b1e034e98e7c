"""Functions of `buropt.nn`: as NumPy and SciPy on arrays, the same when traced, and derivatives.

Each function has a plain composition of NumPy functions. A fused primitive must have its value, and
the gradient and Hessian-vector products that buropt derives for the composition.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from tracing import evaluate

import buropt as bo
from buropt import nn

RNG = np.random.default_rng(0)


def normal(*shape, scale=1.0):
    return scale * RNG.standard_normal(shape)


def plain_softmax(x):
    e = np.exp(x - np.max(np.asarray(NUMBERS), initial=5))
    return e / np.sum(e, axis=-1, keepdims=True)


NUMBERS = normal(5, 7, scale=2.0)
LABELS = RNG.integers(0, 7, 5)


def plain_layer_norm(x, weight, bias, eps):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred**2, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * weight + bias


def plain_attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    masked = np.where(np.tri(len(q), len(k)) > 0, scores, -1e300)
    return plain_softmax(masked) @ v


def heads_of(qkv, n_heads):
    columns = qkv.shape[1] // 3
    width = columns // n_heads
    starts = [head * width for head in range(n_heads)]
    parts = [
        [qkv[:, part * columns + s : part * columns + s + width] for part in range(3)]
        for s in starts
    ]
    return np.concatenate([plain_attention(*head) for head in parts], axis=1)


def plain_conv1d(x, weight, bias, stride, padding):
    ends = np.zeros((x.shape[0], padding))
    x = np.concatenate([ends, x, ends], axis=1)
    last = x.shape[1] - weight.shape[2]
    windows = [x[:, s : s + weight.shape[2]].reshape(-1) for s in range(0, last + 1, stride)]
    rows = np.stack(windows) @ weight.reshape(weight.shape[0], -1).T + bias
    return rows.T


def plain_conv2d(x, weight, bias, stride, padding):
    for axis in (1, 2):
        shape = [x.shape[0], x.shape[1], x.shape[2]]
        shape[axis] = padding
        x = np.concatenate([np.zeros(shape), x, np.zeros(shape)], axis=axis)
    kh, kw = weight.shape[2:]
    rows = [
        [
            np.sum(weight * x[:, r : r + kh, c : c + kw], axis=(1, 2, 3)) + bias
            for c in range(0, x.shape[2] - kw + 1, stride)
        ]
        for r in range(0, x.shape[1] - kh + 1, stride)
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=1)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


# Function of buropt.nn, its plain composition, operands.
CASES = {
    "linear": (nn.linear, lambda x, w, b: x @ w.T + b, (normal(5, 3), normal(4, 3), normal(4))),
    "linear, vector": (nn.linear, lambda x, w: w @ x, (normal(3), normal(4, 3))),
    "linear, three axes": (
        nn.linear,
        lambda x, w, b: (x.reshape(10, 3) @ w.T + b).reshape(2, 5, 4),
        (normal(2, 5, 3), normal(4, 3), normal(4)),
    ),
    "embedding": (
        lambda table: nn.embedding(np.array([[2, 0], [2, 3]]), table),
        lambda table: np.stack([np.stack([table[2], table[0]]), np.stack([table[2], table[3]])]),
        (normal(4, 3),),
    ),
    "relu": (nn.relu, lambda x: np.where(x > 0, x, 0.0), (normal(4, 5),)),
    "tanh": (nn.tanh, lambda x: 1 - 2 / (np.exp(2 * x) + 1), (normal(4),)),
    "sigmoid": (nn.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (normal(4),)),
    "softplus": (nn.softplus, lambda x: np.log1p(np.exp(x)), (normal(4),)),
    "silu": (nn.silu, lambda x: x / (1 + np.exp(-x)), (normal(4, 3),)),
    "gelu": (nn.gelu, lambda x: x * (1 + scipy.special.erf(x / np.sqrt(2))) / 2, (normal(4, 3),)),
    "gelu, tanh": (lambda x: nn.gelu(x, approximate="tanh"), gelu_tanh, (normal(4, 3),)),
    "softmax": (nn.softmax, plain_softmax, (NUMBERS,)),
    "softmax, first axis": (
        lambda x: nn.softmax(x, axis=0),
        lambda x: np.exp(x) / np.sum(np.exp(x), axis=0),
        (normal(3, 2, 4),),
    ),
    "log_softmax": (nn.log_softmax, lambda x: np.log(plain_softmax(x)), (NUMBERS,)),
    "log_softmax, middle axis": (
        lambda x: nn.log_softmax(x, axis=1),
        lambda x: x - np.log(np.sum(np.exp(x), axis=1, keepdims=True)),
        (normal(3, 2, 4),),
    ),
    "logsumexp": (nn.logsumexp, lambda x: np.log(np.sum(np.exp(x))), (normal(3, 4),)),
    "logsumexp, axes": (
        lambda x: nn.logsumexp(x, axis=(2, 0), keepdims=True),
        lambda x: np.log(np.sum(np.exp(x), axis=(0, 2), keepdims=True)),
        (normal(3, 4, 2),),
    ),
    "cross_entropy": (
        lambda x: nn.cross_entropy(x, LABELS),
        lambda x: -np.mean(np.sum(np.log(plain_softmax(x)) * np.eye(7)[LABELS], axis=-1)),
        (NUMBERS,),
    ),
    "cross_entropy, one label": (
        lambda x: nn.cross_entropy(x, 2, reduction="sum"),
        lambda x: np.log(np.sum(np.exp(x))) - x[2],
        (normal(4),),
    ),
    "cross_entropy, each": (
        lambda x: nn.cross_entropy(x, LABELS[:4].reshape(2, 2), reduction="none"),
        lambda x: -np.sum(np.log(plain_softmax(x)) * np.eye(7)[LABELS[:4].reshape(2, 2)], axis=-1),
        (normal(2, 2, 7),),
    ),
    "binary_cross_entropy_with_logits": (
        lambda z: nn.binary_cross_entropy_with_logits(z, np.array([0.0, 1.0, 0.3], z.dtype)),
        lambda z: np.mean(
            np.array([0.0, 1.0, 0.3]) * np.log1p(np.exp(-z))
            + np.array([1.0, 0.0, 0.7]) * np.log1p(np.exp(z))
        ),
        (normal(3),),
    ),
    "mse": (
        lambda a, b: nn.mse(a, b, reduction="sum"),
        lambda a, b: np.sum((a - b) ** 2),
        (normal(3, 2), normal(3, 2)),
    ),
    "layer_norm": (
        lambda x, w, b: nn.layer_norm(x, w, b, eps=0.01),
        lambda x, w, b: plain_layer_norm(x, w, b, 0.01),
        (normal(6, 5), normal(5), normal(5)),
    ),
    "layer_norm, plain": (
        nn.layer_norm,
        lambda x: plain_layer_norm(x, 1.0, 0.0, 1e-5),
        (normal(2, 3, 20),),
    ),
    "rms_norm": (
        nn.rms_norm,
        lambda x, w: x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5) * w,
        (normal(6, 5), normal(5)),
    ),
    "attention": (nn.attention, plain_attention, (normal(5, 3), normal(5, 3), normal(5, 3))),
    "attention to other positions": (
        lambda q, k, v: nn.attention(q, k, v, causal=False),
        lambda q, k, v: plain_softmax(q @ k.T / np.sqrt(3.0)) @ v,
        (normal(2, 3), normal(5, 3), normal(5, 4)),
    ),
    "attention, leading axes": (
        lambda q, k, v: nn.attention(q, k, v).reshape(4, 5, 2),
        lambda q, k, v: np.stack(
            [plain_attention(*(part.reshape(4, 5, 2)[i] for part in (q, k, v))) for i in range(4)]
        ),
        (normal(2, 2, 5, 2), normal(2, 2, 5, 2), normal(2, 2, 5, 2)),
    ),
    "causal_self_attention": (
        lambda x, w, b, u, c: nn.causal_self_attention(x, w, b, u, c, n_heads=3),
        lambda x, w, b, u, c: heads_of(x @ w.T + b, 3) @ u.T + c,
        (normal(5, 4), normal(18, 4), normal(18), normal(4, 6), normal(4)),
    ),
    "conv1d": (
        lambda x, w, b: nn.conv1d(x, w, b, stride=2, padding=1),
        lambda x, w, b: plain_conv1d(x, w, b, 2, 1),
        (normal(2, 7), normal(3, 2, 4), normal(3)),
    ),
    "conv2d": (
        lambda x, w, b: nn.conv2d(x, w, b, stride=2, padding=1),
        lambda x, w, b: plain_conv2d(x, w, b, 2, 1),
        (normal(2, 4, 5), normal(3, 2, 3, 2), normal(3)),
    ),
    "avg_pool2d": (
        lambda x: nn.avg_pool2d(x, 2),
        lambda x: (x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2]) / 4,
        (normal(2, 4, 6),),
    ),
}


def weighted(function, seed=3):
    """A scalar function of the operands: a weighted sum of the cubes of what `function` gives."""

    def loss(*arrays):
        y = function(*arrays)
        weights = np.random.default_rng(seed).standard_normal(np.shape(y))
        return np.sum(weights * (y + 0.1 * y**3))

    return loss


@pytest.mark.parametrize("name", CASES)
def test_plain_arrays(name):
    """Outside of tracing the functions compute with NumPy, in the arrays' dtype."""
    function, composition, arrays = CASES[name]
    expected = composition(*arrays)
    result = function(*arrays)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)
    singles = [array.astype(np.float32) for array in arrays]
    assert function(*singles).dtype == np.float32
    np.testing.assert_allclose(function(*singles), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_traced_value(name, dtype):
    function, composition, arrays = CASES[name]
    exact = dtype == np.float64
    result = evaluate(function, *arrays, dtype=dtype)
    expected = composition(*arrays)
    assert result.shape == np.shape(expected)
    tolerance = {"rtol": 1e-12, "atol": 1e-14} if exact else {"rtol": 2e-4, "atol": 2e-5}
    np.testing.assert_allclose(result, expected, **tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_gradient_equals_that_of_the_composition(name, dtype):
    function, composition, arrays = CASES[name]
    by = tuple(range(len(arrays)))
    got = bo.grad(weighted(function), argnums=by)(*(array.astype(dtype) for array in arrays))
    expected = bo.grad(weighted(composition), argnums=by)(*arrays)
    exact = dtype == np.float64
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == dtype
        scale = np.max(np.abs(b))
        np.testing.assert_allclose(
            a, b, rtol=1e-10 if exact else 1e-3, atol=(1e-13 if exact else 2e-5) * scale
        )


@pytest.mark.parametrize("name", CASES)
def test_hvp_equals_that_of_the_composition(name):
    function, composition, arrays = CASES[name]
    directions = [np.random.default_rng(5).standard_normal(array.shape) for array in arrays]

    def hvp(f):
        def along(*arrays):
            gradients = bo.grad(weighted(f), argnums=tuple(range(len(arrays))))(*arrays)
            return sum(np.sum(g * v) for g, v in zip(gradients, directions, strict=True))

        return bo.grad(along, argnums=tuple(range(len(arrays))))(*arrays)

    for a, b in zip(hvp(function), hvp(composition), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12 * max(1, np.max(np.abs(b))))


SMOOTH = [name for name in CASES if name not in ("relu", "mse", "embedding")]


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_against_differences(name):
    """Forward and reverse mode, first and second order."""
    function, _, arrays = CASES[name]
    bo.check_grads(
        weighted(function),
        arrays[0],
        args=arrays[1:],
        order=2,
        argnums=tuple(range(len(arrays))),
    )


BATCHES = {
    "conv1d": (lambda x: nn.conv1d(x, W_CONV[:, :, 0], padding=1), (2, 3, 2, 7)),
    "conv2d": (lambda x: nn.conv2d(x, W_CONV), (2, 3, 2, 4, 5)),
    "max_pool2d": (lambda x: nn.max_pool2d(x, 2), (2, 3, 2, 4, 5)),
    "causal_self_attention": (
        lambda x: nn.causal_self_attention(x, W_QKV, n_heads=2),
        (2, 3, 4, 3),
    ),
    "gpt": (
        lambda x: nn.models.gpt(GPT, (x * 0 + 2).astype(int), n_heads=1) * 1.0,
        (2, 3, 4),
    ),
    "mlp": (lambda x: nn.models.mlp(MLP, (x * 0 + 1).astype(int)) * 1.0, (2, 3, 2)),
}
W_CONV, W_QKV = normal(3, 2, 2, 3), normal(12, 3)
GPT = nn.models.gpt_init(0, vocabulary=5, context=4, width=2, n_blocks=1)
MLP = nn.models.mlp_init(0, vocabulary=5, context=2, width=2, hidden=3)


@pytest.mark.parametrize("name", BATCHES)
def test_leading_axes(name):
    """Functions of a sequence or an image take several at once, traced or not."""
    function, shape = BATCHES[name]
    x = normal(*shape)
    together = function(x)
    assert together.shape[:2] == (2, 3)
    for i in range(2):
        for j in range(3):
            np.testing.assert_allclose(together[i, j], function(x[i, j]), rtol=1e-12)
    np.testing.assert_allclose(evaluate(function, x), together, rtol=1e-12, atol=1e-14)


def test_max_pool2d():
    x = normal(2, 4, 6)
    expected = np.maximum(
        np.maximum(x[:, ::2, ::2], x[:, 1::2, ::2]),
        np.maximum(x[:, ::2, 1::2], x[:, 1::2, 1::2]),
    )
    np.testing.assert_array_equal(nn.max_pool2d(x, 2), expected)
    np.testing.assert_array_equal(evaluate(lambda x: nn.max_pool2d(x, 2), x), expected)
    weights = normal(*expected.shape)
    gradient = bo.grad(lambda x: np.sum(weights * nn.max_pool2d(x, (2, 2), stride=2)))(x)
    pooled = np.repeat(np.repeat(expected, 2, 1), 2, 2)
    spread = np.repeat(np.repeat(weights, 2, 1), 2, 2)
    np.testing.assert_array_equal(gradient, np.where(x == pooled, spread, 0))


def test_scipy_agrees():
    x = normal(6, 33, scale=30.0)
    for name in ("softmax", "log_softmax", "logsumexp"):
        expected = getattr(scipy.special, name)(x, axis=-1)
        result = evaluate(lambda x, name=name: getattr(nn, name)(x, axis=-1), x)
        np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: nn.linear(x, np.ones((4, 2))), ValueError, r"x of shape \(3,\) and weight"),
        (lambda x: nn.cross_entropy(x, 3), IndexError, r"label 3 is not in 0\.\.2"),
        (lambda x: nn.cross_entropy(x, -1), IndexError, "label -1 is not in"),
        (lambda x: nn.cross_entropy(x, 1.0), TypeError, "labels must be integers, got dtype float"),
        (lambda x: nn.cross_entropy(x, [0, 1]), ValueError, r"need labels of shape \(\), one for"),
        (lambda x: nn.cross_entropy(x, 0, reduction="avg"), ValueError, "reduction must be 'mean'"),
        (lambda x: nn.softmax(x, axis=1), ValueError, "axis 1 is out of bounds"),
        (lambda x: nn.logsumexp(x, axis=(0, 2)), ValueError, "axis 2 is out of bounds"),
        (lambda x: nn.gelu(x, approximate="erf"), ValueError, "approximate must be 'none' or"),
        (lambda x: nn.mse(x, np.ones(2)), ValueError, r"shapes \(3,\) and \(2,\)"),
        (lambda x: nn.attention(x, x, x), ValueError, r"\(\.\.\., T, width\)"),
        (lambda x: nn.conv1d(x, np.ones((1, 1, 1))), ValueError, r"\(\.\.\., C_in, L\) and"),
        (
            lambda x: nn.conv2d(x.reshape(1, 1, 3), np.ones((1, 1, 2, 2))),
            ValueError,
            r"kernel of size \(2, 2\) with stride \(1, 1\) .* does not fit",
        ),
        (
            lambda x: nn.causal_self_attention(x.reshape(3, 1), np.ones((6, 1)), n_heads=4),
            ValueError,
            "a divisor of C",
        ),
        (lambda x: nn.dropout(x, 0.5), bo.UnsupportedOpError, "pass them as data"),
    ],
)
def test_mistakes_are_explained(call, error, text):
    with pytest.raises(error, match=text) as caught:
        bo.grad(lambda x: np.sum(call(x)))(np.ones(3))
    if "reduction" not in text and "approximate" not in text:
        assert "test_nn.py" in str(caught.value)
    with pytest.raises(error):
        call(np.ones(3))


def test_operands_that_are_not_arrays():
    np.testing.assert_array_equal(nn.relu([-1.0, 2.0]), [0.0, 2.0])
    assert nn.cross_entropy([0.0, 0.0], 1) == pytest.approx(np.log(2))
    np.testing.assert_array_equal(nn.one_hot([2, 0], 3), [[0, 0, 1], [1, 0, 0]])
    with pytest.raises(IndexError, match=r"label 3 is not in 0\.\.2"):
        nn.one_hot([0, 3], 3)
