"""Fused primitives where it is delicate: infinities, huge logits, masks, wrong labels, batches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from tracing import evaluate

import buropt as bo
from buropt import nn

INF, NAN = np.inf, np.nan
BOTH = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def value_and_grad(function, x, dtype=np.float64):
    return bo.value_and_grad(function)(np.asarray(x, dtype))


# ---- logsumexp and softmax


@BOTH
@pytest.mark.parametrize("fill", [0, 20])  # rows shorter and longer than a register
@pytest.mark.parametrize(
    ("row", "value", "gradient"),
    [
        ([-INF, -INF], -INF, [0, 0]),
        ([-INF, 3.0], 3.0, [0, 1]),
        ([INF, 1.0], INF, [1, 0]),
        ([INF, -INF, INF], INF, [0.5, 0, 0.5]),
        ([1e4, -1e4], 1e4, [1, 0]),
        ([1e4, 1e4], 1e4 + np.log(2), [0.5, 0.5]),
        ([-1e4, -1e4], -1e4 + np.log(2), [0.5, 0.5]),
        ([NAN, INF], NAN, [NAN, NAN]),
    ],
)
def test_logsumexp_of_special_rows(row, value, gradient, fill, dtype):
    padding = [NAN if np.isnan(value) else 0.0] * fill
    y, g = value_and_grad(nn.logsumexp, row + [-INF] * fill, dtype)
    np.testing.assert_allclose(y, dtype(value), rtol=1e-6 if dtype == np.float32 else 1e-15)
    np.testing.assert_allclose(g, gradient + padding, rtol=1e-6 if dtype == np.float32 else 1e-15)
    # The other elements of a batch of rows do not matter.
    rows = np.array([row, row[::-1]], dtype)
    g = value_and_grad(lambda x: np.sum(nn.logsumexp(x, axis=1)), rows, dtype)[1]
    np.testing.assert_allclose(g, [gradient, gradient[::-1]], rtol=1e-6)


def test_logsumexp_is_a_bounded_weight_at_any_order():
    x = np.array([-INF, 2.0, 1e4, 1e4 - 1])
    p = scipy.special.softmax(x)
    hessian = bo.hessian(nn.logsumexp)(x)
    np.testing.assert_allclose(hessian, np.diag(p) - np.outer(p, p), rtol=1e-12, atol=1e-16)
    assert np.array_equal(bo.hessian(nn.logsumexp)(np.full(3, -INF)), np.zeros((3, 3)))


@BOTH
def test_softmax_of_special_rows(dtype):
    rows = np.array([[1e4, -1e4, 0], [5, 5, 5], [-INF, 0, 0], [-1e4, -1e4, -1e4]], dtype)
    expected = [[1, 0, 0], [1 / 3] * 3, [0, 0.5, 0.5], [1 / 3] * 3]
    np.testing.assert_allclose(evaluate(nn.softmax, rows, dtype=dtype), expected, rtol=1e-6)
    logs = evaluate(nn.log_softmax, rows, dtype=dtype)
    np.testing.assert_allclose(logs[0], [0, -2e4, -1e4], rtol=1e-6)
    np.testing.assert_allclose(logs[2], [-INF, -np.log(2), -np.log(2)], rtol=1e-6)
    np.testing.assert_array_equal(evaluate(nn.log_softmax, np.array([INF, 0.0])), [NAN, -INF])


# ---- cross-entropy


@BOTH
def test_cross_entropy_of_special_logits(dtype):
    rows = np.array([[1e4, -1e4, 0], [5, 5, 5], [-INF, 0, 0], [0, 1, 1e4]], dtype)
    labels = np.array([1, 0, 2, 2])
    losses = evaluate(lambda x: nn.cross_entropy(x, labels, "none"), rows, dtype=dtype)
    np.testing.assert_allclose(losses, [2e4, np.log(3), np.log(2), 0], rtol=1e-6)
    gradient = value_and_grad(lambda x: nn.cross_entropy(x, labels, "sum"), rows, dtype)[1]
    expected = [[1, -1, 0], [-2 / 3, 1 / 3, 1 / 3], [0, 0.5, -0.5], [0, 0, 0]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
    certain = evaluate(lambda x: nn.cross_entropy(x, 0), np.array([-INF, 0.0], dtype), dtype=dtype)
    assert certain == INF


def test_wrong_labels_are_refused_when_arguments_are_given():
    def loss(x, label):
        return nn.cross_entropy(x, label)

    with pytest.raises(IndexError, match="label holds 3"):
        bo.grad(loss)(np.zeros(3), np.array(3))


@pytest.mark.parametrize("label", [-1, 3, 2**40])
def test_computed_labels_out_of_range_give_nan(label):
    def loss(x, label):
        return nn.cross_entropy(x, label + 0)

    value, gradient = bo.value_and_grad(loss)(np.zeros(3), np.array(label))
    assert np.isnan(value)
    assert np.isnan(gradient).all()
    rows = evaluate(lambda labels: nn.one_hot(labels + 0, 3), np.array([1, label]))
    np.testing.assert_array_equal(rows, [[0, 1, 0], [NAN] * 3])


def test_padded_labels_can_be_left_out():
    """-1 marks a position without a label; it contributes exactly 0."""

    def loss(x, labels):
        known = labels >= 0
        losses = nn.cross_entropy(x, np.where(known, labels, 0), reduction="none")
        return np.sum(np.where(known, losses, 0.0)) / np.sum(known)

    def careless(x, labels):
        losses = nn.cross_entropy(x, labels + 0, reduction="none")
        return np.sum(np.where(labels >= 0, losses, 0.0)) / np.sum(labels >= 0)

    x = np.random.default_rng(0).standard_normal((3, 4))
    labels = np.array([2, -1, 0])
    expected = bo.value_and_grad(lambda x: nn.cross_entropy(x, labels[::2]))(x[::2])
    for f in (loss, careless):
        value, gradient = bo.value_and_grad(f)(x, labels)
        assert value == pytest.approx(expected[0], rel=1e-15)
        np.testing.assert_allclose(gradient[::2], expected[1], rtol=1e-13)
        assert not gradient[1].any()


# ---- activations and normalizations


@BOTH
def test_activations_far_out(dtype):
    x = np.array([-INF, -1e30, -1e3, 0.0, 1e3, 1e30, INF], dtype)
    linear = np.array([0, 0, 0, 0, 1e3, 1e30, INF], dtype)
    functions = [nn.relu, nn.silu, nn.gelu, lambda x: nn.gelu(x, approximate="tanh"), nn.softplus]
    for f in functions:
        result = evaluate(f, x, dtype=dtype)
        at_zero = np.log(2) if f is nn.softplus else 0
        expected = np.where(x == 0, at_zero, linear)
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-30)
        np.testing.assert_allclose(f(x), expected, rtol=1e-6, atol=1e-30)
        slopes = bo.grad(lambda x, f=f: np.sum(f(x)))(x)
        middle = {nn.relu: 0.0}.get(f, 0.5)
        np.testing.assert_allclose(slopes, [0, 0, 0, middle, 1, 1, 1], rtol=1e-6, atol=1e-30)
        assert np.isnan(evaluate(f, np.array([NAN], dtype), dtype=dtype)).all()


@BOTH
def test_normalizations_of_special_rows(dtype):
    equal = np.full((2, 5), 3.0, dtype)
    np.testing.assert_array_equal(evaluate(nn.layer_norm, equal, dtype=dtype), np.zeros((2, 5)))
    weights = np.arange(5)
    gradient = value_and_grad(lambda x: np.sum(weights * nn.layer_norm(x)), equal, dtype)[1]
    expected = (weights - 2) / np.sqrt(1e-5)
    np.testing.assert_allclose(gradient, [expected, expected], rtol=1e-5)
    large = np.array([1e4 + 1, 1e4 - 1], dtype)  # the mean is taken off before squaring
    np.testing.assert_allclose(evaluate(nn.layer_norm, large, dtype=dtype), [1, -1], rtol=1e-5)
    np.testing.assert_array_equal(evaluate(nn.rms_norm, np.zeros(3, dtype), dtype=dtype), [0, 0, 0])


# ---- rows


ROW_FUNCTIONS = {
    "softmax": (nn.softmax, lambda x: scipy.special.softmax(x, axis=-1)),
    "log_softmax": (nn.log_softmax, lambda x: scipy.special.log_softmax(x, axis=-1)),
    "logsumexp": (
        lambda x: nn.logsumexp(x, axis=-1, keepdims=True),
        lambda x: scipy.special.logsumexp(x, axis=-1, keepdims=True),
    ),
    "layer_norm": (
        nn.layer_norm,
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
    ),
    "rms_norm": (nn.rms_norm, lambda x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)),
}


@given(
    name=st.sampled_from(sorted(ROW_FUNCTIONS)),
    rows=st.integers(0, 35),
    n=st.integers(1, 70),
    dtype=st.sampled_from([np.float64, np.float32]),
    seed=st.integers(0, 99),
)
def test_a_row_has_the_same_bits_wherever_it_stands(name, rows, n, dtype, seed):
    function, reference = ROW_FUNCTIONS[name]
    x = (3 * np.random.default_rng(seed).standard_normal((rows, n))).astype(dtype)

    def both(x):
        weights = np.arange(x.shape[-1]) / 7
        return function(x), bo.grad(lambda x: np.sum(weights * function(x)))(x)

    values, gradients = evaluate(both, x, dtype=dtype)
    tolerance = 2e-5 if dtype == np.float32 else 1e-13
    expected = reference(x.astype(np.float64))
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
    for i in range(0, rows, 5):
        value, gradient = evaluate(both, x[i], dtype=dtype)
        assert value.tobytes() == values[i].tobytes()
        assert gradient.tobytes() == gradients[i].tobytes()


def test_empty_rows():
    assert evaluate(nn.softmax, np.zeros((2, 0))).shape == (2, 0)
    assert evaluate(nn.layer_norm, np.zeros((2, 0))).shape == (2, 0)
    empty = evaluate(lambda x: nn.logsumexp(x, axis=1), np.zeros((2, 0)))
    np.testing.assert_array_equal(empty, [-INF, -INF])
    for shape in ((0, 3), (2, 0, 3), (0, 2, 3)):
        x = np.zeros(shape)
        assert evaluate(lambda x: nn.attention(x, x, x), x).shape == shape
    weight = np.ones((6, 3))
    assert nn.causal_self_attention(np.zeros((0, 3)), weight, n_heads=2).shape == (0, 2)
    traced = evaluate(lambda x: nn.causal_self_attention(x, weight, n_heads=2), np.zeros((0, 3)))
    assert traced.shape == (0, 2)


# ---- batches


def classifier(params, x, label):
    hidden = nn.layer_norm(nn.gelu(nn.linear(x, **params["hidden"]), "tanh"), **params["norm"])
    return nn.cross_entropy(nn.linear(hidden, **params["out"]), label)


def sequence(params, x, label):
    y = nn.causal_self_attention(nn.rms_norm(x.reshape(4, 3)), params["qkv"], n_heads=2)
    return nn.logsumexp(nn.softmax(y)) + nn.cross_entropy(y[-1], label)


def image(params, x, label):
    y = nn.relu(nn.conv2d(x.reshape(1, 3, 4), params["kernel"], padding=1))
    return nn.cross_entropy(nn.log_softmax(nn.avg_pool2d(y, (1, 2)).reshape(-1)), label)


RNG = np.random.default_rng(8)
MODELS = {
    "classifier": (
        classifier,
        {
            "hidden": nn.init.linear(0, 5, 12),
            "norm": nn.init.layer_norm(5),
            "out": nn.init.linear(1, 4, 5),
        },
    ),
    "sequence": (sequence, {"qkv": RNG.standard_normal((24, 3))}),
    "image": (image, {"kernel": RNG.standard_normal((2, 1, 3, 3))}),
}


@BOTH
@pytest.mark.parametrize("name", MODELS)
def test_batched_is_the_mean_over_samples(name, dtype):
    loss, params = MODELS[name]
    n = 41
    data = RNG.standard_normal((n, 12)).astype(dtype), RNG.integers(0, 4, n)
    oracle = bo.compile(loss, params, data=data, dtype=dtype)
    value, gradient = oracle.value_and_grad(oracle.x0)
    at = oracle.unflatten(oracle.x0)
    samples = [bo.value_and_grad(loss)(at, data[0][i], data[1][i]) for i in range(n)]
    rtol = 1e-12 if dtype == np.float64 else 1e-4
    assert value == pytest.approx(np.mean([value for value, _ in samples]), rel=rtol)
    each = np.array([oracle.flatten(gradient) for _, gradient in samples])
    np.testing.assert_allclose(gradient, each.mean(axis=0), rtol=rtol, atol=rtol)
    # Tiles of one sample and of many have the same bits.
    rows = oracle.per_sample_grads(oracle.x0)
    for i in (0, 7, n - 1):
        assert oracle.per_sample_grads(oracle.x0, [i])[0].tobytes() == rows[i].tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_some_coordinates_of_a_gradient(name):
    loss, params = MODELS[name]
    oracle = bo.compile(loss, params, data=(RNG.standard_normal((5, 12)), RNG.integers(0, 4, 5)))
    gradient = oracle.grad(oracle.x0)
    coords = np.arange(oracle.dim)[:: max(1, oracle.dim // 9)]
    for chosen in (coords, coords[-1:], [oracle.dim - 1, 0]):
        part = oracle.partial_grad(oracle.x0, chosen)
        np.testing.assert_allclose(part, gradient[chosen], rtol=1e-12, atol=1e-14)


def test_weights_shared_by_samples_go_through_one_product():
    """The activations of a tile are the rows of one matrix, and so are their cotangents."""
    loss = nn.models.gpt_loss
    sizes = {"vocabulary": 5, "context": 4, "width": 6, "n_blocks": 1}
    params = nn.models.gpt_init(0, **sizes)
    tokens = RNG.integers(0, 5, (10, 4))
    oracle = bo.compile(lambda p, a, b: loss(p, a, b, n_heads=2), params, data=(tokens, tokens))
    nodes = str(oracle.graph).splitlines()
    products = [line for line in nodes if "= matmul(" in line]
    sums = [line for line in nodes if "= matmul_batch_sum(" in line]
    # Forward and to the activations; each weight's gradient is one sum over samples and positions.
    assert len(products) == 5 + 5
    assert len(sums) == 5
    assert all("transpose_a=(1), transpose_b=(0)" in line for line in sums)
