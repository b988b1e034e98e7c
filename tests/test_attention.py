"""Attention and its gradient over batches, against plain sums."""

import numpy as np
import pytest

import buropt as bo
from buropt import nn

autograd = pytest.importorskip("autograd")
anp = pytest.importorskip("autograd.numpy")

# (T, heads, width): heads of one sample and of several in a register, of 4 columns and of other
# widths; weights that are kept for the gradient and others; products over blocks of queries.
SHAPES = [
    (1, 3, 4),
    (8, 6, 4),
    (5, 4, 2),
    (5, 1, 3),
    (7, 5, 4),
    (6, 17, 1),
    (30, 2, 4),
    (31, 3, 8),
    (40, 1, 2),
    (70, 2, 16),
]
SAMPLES = 9


def plain(qkv, heads, weights):
    """The loss of one sample."""
    length, columns = qkv.shape[0], qkv.shape[1] // 3
    width = columns // heads
    hidden = np.where(np.tri(length) > 0, 0.0, -np.inf)
    total = 0.0
    for h in range(heads):
        q, k, v = (
            qkv[:, part * columns + h * width : part * columns + (h + 1) * width]
            for part in range(3)
        )
        scores = anp.dot(q, k.T) / np.sqrt(width) + hidden
        p = anp.exp(scores - anp.max(scores, axis=1, keepdims=True))
        p = p / anp.sum(p, axis=1, keepdims=True)
        total = total + anp.sum(anp.dot(p, v) * weights[:, h * width : (h + 1) * width])
    return total


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_value_and_gradient_of_a_batch(shape, dtype):
    length, heads, width = shape
    columns = heads * width
    rng = np.random.default_rng(0)
    x = rng.standard_normal((SAMPLES, length, columns))
    weights = rng.standard_normal((length, columns))
    start = rng.standard_normal((3 * columns, columns)) / np.sqrt(columns)

    def loss(w, x):
        mixed = nn.causal_self_attention(x, w, n_heads=heads)
        return np.sum(mixed * weights.astype(dtype))

    def mean(w):
        return sum(plain(anp.dot(row, w.T), heads, weights) for row in x) / SAMPLES

    oracle = bo.compile(loss, start.astype(dtype), data=(x.astype(dtype),), threads=1)
    value, gradient = oracle.value_and_grad(oracle.x0)
    expected = autograd.grad(mean)(start).ravel()
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    scale = np.max(np.abs(expected))
    assert value == pytest.approx(mean(start), rel=20 * tolerance, abs=tolerance * scale)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=tolerance * scale)
    # One sample alone leaves lanes empty.
    alone = oracle.value_and_grad(oracle.x0, np.array([3]))[1]
    each = oracle.per_sample_grads(oracle.x0, np.arange(2, 6))
    np.testing.assert_allclose(alone, each[1], rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_the_gradient_takes_the_weights_of_the_value(shape):
    """To the bit, so that what the gradient's program gives is the value's."""
    length, heads, width = shape
    qkv = np.random.default_rng(1).standard_normal((SAMPLES, length, 3 * heads * width))

    def loss(w, qkv):
        return np.sum(nn.causal_self_attention(qkv * w, np.eye(qkv.shape[1]), n_heads=heads) ** 2)

    oracle = bo.compile(loss, np.ones(3 * heads * width), data=(qkv,))
    assert oracle.value(oracle.x0) == oracle.value_and_grad(oracle.x0)[0]
