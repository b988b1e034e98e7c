"""Initializers and the ready models: PyTorch's distributions, sizes, losses and gradients."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import buropt as bo
from buropt import nn
from buropt.nn import init, models

# ---- initializers


def moments(x):
    """(sample mean, sample standard deviation), each with its statistical error."""
    n, std = x.size, x.std()
    kurtosis = np.mean((x - x.mean()) ** 4) / std**4
    return (x.mean(), std / math.sqrt(n)), (std, std * math.sqrt((kurtosis - 1) / (4 * n)))


def assert_uniform(x, bound):
    """Within the bounds, up to them, and with the spread of the uniform distribution."""
    assert np.abs(x).max() <= bound
    assert np.abs(x).max() > bound * (1 - 20 / x.size)
    (mean, mean_error), (std, std_error) = moments(x)
    assert abs(mean) < 5 * mean_error
    assert abs(std - bound / math.sqrt(3)) < 5 * std_error


def assert_normal(x, std):
    (mean, mean_error), (sample_std, std_error) = moments(x)
    assert abs(mean) < 5 * mean_error
    assert abs(sample_std - std) < 5 * std_error
    inside = np.mean(np.abs(x) < std)
    assert abs(inside - 0.682689) < 5 * math.sqrt(0.22 / x.size)


def test_linear_is_uniform_in_one_over_sqrt_of_the_inputs():
    layer = init.linear(0, 300, 100)
    assert layer["weight"].shape == (300, 100)
    assert layer["bias"].shape == (300,)
    assert_uniform(layer["weight"], 0.1)
    assert_uniform(layer["bias"], 0.1)
    assert set(init.linear(0, 3, 4, bias=False)) == {"weight"}


def test_convolutions_count_the_kernel_among_the_inputs():
    layer = init.conv2d(0, 40, 10, (5, 2))
    assert layer["weight"].shape == (40, 10, 5, 2)
    assert_uniform(layer["weight"], 0.1)
    assert np.abs(layer["bias"]).max() <= 0.1
    assert init.conv2d(0, 4, 2, 3)["weight"].shape == (4, 2, 3, 3)
    layer = init.conv1d(0, 50, 20, 5)
    assert layer["weight"].shape == (50, 20, 5)
    assert_uniform(layer["weight"], 0.1)


def test_embedding_is_standard_normal():
    table = init.embedding(0, 200, 50)
    assert table.shape == (200, 50)
    assert_normal(table, 1.0)


def test_layer_norm_is_the_identity():
    layer = init.layer_norm(3)
    assert np.array_equal(layer["weight"], np.ones(3))
    assert np.array_equal(layer["bias"], np.zeros(3))
    assert set(init.layer_norm(3, bias=False)) == {"weight"}


def test_self_attention_has_two_linear_layers():
    params = init.self_attention(0, 100, in_bias=False)
    assert {name: array.shape for name, array in params.items()} == {
        "in_proj_weight": (300, 100),
        "out_proj_weight": (100, 100),
        "out_proj_bias": (100,),
    }
    assert_uniform(params["in_proj_weight"], 0.1)
    assert nn.causal_self_attention(np.ones((4, 100)), **params, n_heads=5).shape == (4, 100)


SHAPE = (150, 50, 2)  # fan_in 100, fan_out 300


@pytest.mark.parametrize(
    ("function", "check", "size"),
    [
        (init.xavier_uniform, assert_uniform, math.sqrt(6 / 400)),
        (partial(init.xavier_uniform, gain=2), assert_uniform, 2 * math.sqrt(6 / 400)),
        (init.xavier_normal, assert_normal, math.sqrt(2 / 400)),
        (init.kaiming_uniform, assert_uniform, math.sqrt(6 / 100)),
        (partial(init.kaiming_uniform, a=1), assert_uniform, math.sqrt(3 / 100)),
        (init.kaiming_normal, assert_normal, math.sqrt(2 / 100)),
        (partial(init.normal, std=0.02), assert_normal, 0.02),
        (partial(init.uniform, low=-3, high=3), assert_uniform, 3),
    ],
)
def test_distributions(function, check, size):
    x = function(0, SHAPE)
    assert x.shape == SHAPE
    check(x, size)


def test_a_weight_needs_two_axes():
    with pytest.raises(ValueError, match=r"shape \(3,\) has no fan-in"):
        init.kaiming_normal(0, (3,))


def test_seeds():
    """One integer determines everything; a generator is drawn from in turn."""
    assert np.array_equal(init.normal(7, (3,)), init.normal(7, (3,)))
    assert not np.array_equal(init.normal(7, (3,)), init.normal(8, (3,)))
    rng = init.generator(7)
    assert not np.array_equal(init.normal(rng, (3,)), init.normal(rng, (3,)))
    assert init.linear(0, 2, 3, dtype=np.float32)["weight"].dtype == np.float32
    # These numbers stay, or runs from before could not be repeated.
    np.testing.assert_allclose(init.normal(0, (2,)), PINNED, rtol=1e-15)


PINNED = [-0.2059740286292238, -0.12884495093462758]


# ---- models


def leaves(tree):
    if isinstance(tree, np.ndarray):
        return [tree]
    values = tree.values() if isinstance(tree, dict) else tree
    return [leaf for value in values for leaf in leaves(value)]


def n_parameters(tree):
    return sum(leaf.size for leaf in leaves(tree))


def test_sizes_of_the_models():
    assert n_parameters(models.mlp_init(0)) == 1_079_003
    assert n_parameters(models.gpt_init(0)) == 46_337
    assert n_parameters(models.gpt_init(0, final_norm=False)) == 46_289


SMALL = {"vocabulary": 7, "context": 5, "width": 8, "n_blocks": 2}
RNG = np.random.default_rng(1)
MODELS = {
    "mlp": (
        models.mlp_loss,
        models.mlp_init(0, vocabulary=7, context=5, width=3, hidden=4),
        (RNG.integers(0, 7, (12, 5)), RNG.integers(0, 7, 12)),
    ),
    "gpt": (
        partial(models.gpt_loss, n_heads=2, activation="gelu_tanh"),
        models.gpt_init(0, **SMALL),
        (RNG.integers(0, 7, (12, 5)), RNG.integers(0, 7, (12, 5))),
    ),
    "gpt, without the last norm": (
        partial(models.gpt_loss, n_heads=4),
        models.gpt_init(0, **SMALL, final_norm=False),
        (RNG.integers(0, 7, (12, 4)), RNG.integers(0, 7, (12, 4))),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_oracle_of_a_model(name):
    """The traced loss is NumPy's, the batch the mean over samples, the gradient its derivative."""
    loss, params, data = MODELS[name]
    oracle = bo.compile(loss, params, data=data)
    value, gradient = oracle.value_and_grad(oracle.x0)
    samples = list(zip(*data, strict=True))
    assert value == pytest.approx(np.mean([loss(params, *s) for s in samples]), rel=1e-13)
    each = [oracle.flatten(bo.grad(loss)(params, *s)) for s in samples]
    np.testing.assert_allclose(gradient, np.mean(each, axis=0), rtol=1e-10, atol=1e-14)
    direction = RNG.standard_normal(oracle.dim)
    h = 1e-6
    difference = (
        oracle.value(oracle.x0 + h * direction) - oracle.value(oracle.x0 - h * direction)
    ) / (2 * h)
    assert gradient @ direction == pytest.approx(difference, rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_hessian_vector_product_of_a_model(name):
    loss, params, data = MODELS[name]
    oracle = bo.compile(loss, params, data=data)
    direction = RNG.standard_normal(oracle.dim) / 10
    h = 1e-5
    up, down = (oracle.grad(oracle.x0 + s * h * direction) for s in (1, -1))
    hvp = oracle.hvp(oracle.x0, direction)
    np.testing.assert_allclose(hvp, (up - down) / (2 * h), atol=1e-5 * np.abs(hvp).max())


def test_single_precision():
    loss, params, data = MODELS["gpt"]
    double = bo.compile(loss, params, data=data)
    single = bo.compile(loss, params, data=data, dtype=np.float32)
    value, gradient = single.value_and_grad(single.x0)
    expected = double.value_and_grad(double.x0)
    assert value == pytest.approx(expected[0], rel=1e-5)
    scale = np.abs(expected[1]).max()
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-3, atol=1e-5 * scale)


def test_gpt_is_causal():
    """What comes later does not change what was said before."""
    params = models.gpt_init(0, **SMALL)
    tokens = np.array([1, 2, 3, 4, 5])
    logits = models.gpt(params, tokens, n_heads=2)
    assert logits.shape == (5, 7)
    changed = models.gpt(params, np.array([1, 2, 3, 0, 0]), n_heads=2)
    np.testing.assert_allclose(changed[:3], logits[:3], rtol=1e-13)
    assert not np.allclose(changed[3:], logits[3:])


def gpt_in_autograd(anp, params, tokens, targets, n_heads):
    """The same network as one would write it with autograd, head by head."""

    def norm(x, p):
        centred = x - anp.mean(x, axis=-1, keepdims=True)
        variance = anp.mean(centred**2, axis=-1, keepdims=True)
        return centred / anp.sqrt(variance + 1e-5) * p["weight"] + p["bias"]

    x = params["token_embedding"][tokens] + params["position_embedding"][: len(tokens)]
    mask = np.tri(len(tokens)) == 0
    for block in params["blocks"]:
        rows = anp.dot(norm(x, block["norm1"]), block["attention"]["in_proj_weight"].T)
        width = x.shape[1] // n_heads
        heads = []
        for h in range(n_heads):
            q, k, v = (
                rows[:, part * x.shape[1] + h * width : part * x.shape[1] + (h + 1) * width]
                for part in range(3)
            )
            scores = anp.where(mask, -1e30, anp.dot(q, k.T) / np.sqrt(width))
            weights = anp.exp(scores - anp.max(scores, axis=1, keepdims=True))
            heads.append(anp.dot(weights / anp.sum(weights, axis=1, keepdims=True), v))
        y = anp.dot(anp.concatenate(heads, axis=1), block["attention"]["out_proj_weight"].T)
        x = x + y + block["attention"]["out_proj_bias"]
        y = anp.dot(norm(x, block["norm2"]), block["up"]["weight"].T) + block["up"]["bias"]
        y = anp.where(y > 0, y, 0.0)
        x = x + anp.dot(y, block["down"]["weight"].T) + block["down"]["bias"]
    x = norm(x, params["norm"])
    logits = anp.dot(x, params["head"]["weight"].T) + params["head"]["bias"]
    largest = anp.max(logits, axis=1, keepdims=True)
    log_sums = anp.log(anp.sum(anp.exp(logits - largest), axis=1)) + largest[:, 0]
    return anp.mean(log_sums - logits[np.arange(len(tokens)), targets])


def test_gpt_against_autograd():
    autograd = pytest.importorskip("autograd")
    params = models.gpt_init(0, **SMALL)
    rng = np.random.default_rng(5)
    for block in params["blocks"]:  # norms that are not the identity
        block["norm1"]["weight"] += rng.standard_normal(8) / 3
        block["norm2"]["bias"] += rng.standard_normal(8) / 3
    tokens, targets = rng.integers(0, 7, (2, 5))
    f = partial(gpt_in_autograd, autograd.numpy, tokens=tokens, targets=targets, n_heads=2)
    value, gradient = autograd.value_and_grad(f)(params)
    got, got_gradient = bo.value_and_grad(partial(models.gpt_loss, n_heads=2))(
        params, tokens, targets
    )
    assert got == pytest.approx(value, rel=1e-13)
    for a, b in zip(leaves(got_gradient), leaves(gradient), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-13)


def test_a_model_learns():
    """A few hundred steps of gradient descent reach the entropy of a sequence that repeats."""
    params = models.gpt_init(0, vocabulary=4, context=4, width=8, n_blocks=1, dtype=np.float32)
    text = np.tile([0, 1, 2, 3], 20)
    windows = np.lib.stride_tricks.sliding_window_view(text, 5)[:16]
    oracle = bo.compile(
        partial(models.gpt_loss, n_heads=2), params, data=(windows[:, :4], windows[:, 1:])
    )
    x = oracle.x0.copy()
    first = oracle.value(x)
    for _ in range(300):
        x -= 0.1 * oracle.grad(x)
    assert first > 1.2
    assert oracle.value(x) < 0.05
