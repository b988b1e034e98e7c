"""What the planner joins: the numbers, and what stays apart."""

import numpy as np
import pytest

import buropt as bo
from buropt import nn

autograd = pytest.importorskip("autograd")
anp = pytest.importorskip("autograd.numpy")

T, K, N, SAMPLES = 5, 6, 7, 20
RNG = np.random.default_rng(0)
START = {
    "a": RNG.standard_normal((N, K)),
    "bias": RNG.standard_normal(N),
    "square": RNG.standard_normal((K, K)),
    "edge": RNG.standard_normal(K),
    "full": RNG.standard_normal((T, N)),
}
DATA = RNG.standard_normal((SAMPLES, T, K))


def relu(x, np):
    return np.maximum(x, 0.0) if np is anp else nn.relu(x)


def biased(p, x, np):
    return x @ p["a"].T + p["bias"]


def biased_relu(p, x, np):
    return relu(biased(p, x, np), np)


def residual(p, x, np):
    return x + (x @ p["square"] + p["edge"])


def residual_in_front(p, x, np):
    return relu((p["edge"] + x @ p["square"].T) + np.tanh(x), np)


def two_layers(p, x, np):
    return x + (relu(x @ p["a"].T + p["bias"], np) @ p["a"] + p["edge"])


def bias_after_residual(p, x, np):
    return (x + x @ p["square"]) + p["edge"]


def one_row(p, x, np):
    return relu(p["a"] @ x[0] + p["bias"], np)


def matrix_that_samples_share(p, x, np):
    return x @ p["a"].T + p["full"]


def sum_of_products(p, x, np):
    return (x @ p["square"] + p["edge"]) + x @ p["square"].T


def two_readers(p, x, np):
    y = x @ p["a"].T
    return np.concatenate([relu(y, np), y])


def twice_the_product(p, x, np):
    y = x @ p["square"]
    return y + y


def longer_rows(p, x, np):
    return np.reshape(x @ p["a"].T, (T * N,)) + np.reshape(p["full"], (T * N,))


FUNCTIONS = {
    biased: 1,
    biased_relu: 2,
    residual: 2,
    residual_in_front: 3,
    two_layers: 4,
    bias_after_residual: 1,
    one_row: 2,
    matrix_that_samples_share: 0,
    sum_of_products: 2,
    two_readers: 0,
    twice_the_product: 0,
    longer_rows: 0,
}


def touch(p, np):
    """So that every parameter counts."""
    return sum(np.sum(part) for part in p.values())


def compiled(function, finish):
    return bo.compile(
        lambda p, x: np.sum(finish(function(p, x, np))),
        START,
        data=(DATA,),
        regularizer=lambda p: touch(p, np),
    )


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients(function):
    oracle = compiled(function, np.square)

    def mean(p):
        return sum(anp.sum(function(p, x, anp) ** 2) for x in DATA) / SAMPLES + touch(p, anp)

    value, gradient = oracle.value_and_grad(oracle.x0)
    assert value == pytest.approx(mean(START), rel=1e-12)
    expected = autograd.grad(mean)(START)
    for name, part in oracle.unflatten(gradient).items():
        np.testing.assert_allclose(part, expected[name], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_joins(function):
    """How many of the graph's primitives run as a part of another one."""
    oracle = compiled(function, np.cumsum)  # that no chain of elementwise instructions ends in
    oracle.value(oracle.x0)
    program = oracle.describe()["programs"]["value"]
    assert sum(program["primitives"].values()) - program["instructions"] == FUNCTIONS[function]


def test_the_slope_of_relu_joins():
    """The cotangent of the second product passes it on its way out."""
    program = compiled(two_layers, np.square).describe()
    assert sum(program["primitives"].values()) - program["instructions"] == 5


@pytest.mark.parametrize("x", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(x):
    data = np.full((3, 2, K), x)
    joined = bo.compile(
        lambda p, x: np.sum(biased_relu(p, x, np)),
        START,
        data=(data,),
        regularizer=lambda p: touch(p, np),
    )
    with np.errstate(all="ignore"):
        expected = np.sum(np.maximum(biased(START, data[0], np), 0)) + touch(START, np)
    np.testing.assert_equal(joined.value(joined.x0), expected)


def test_a_layer_norm_takes_moments_that_cotangents_need():
    """Two norms of the same rows share them; what the oracle alone computes has the same bits."""

    def loss(p, x):
        one = nn.layer_norm(np.sin(x), p["edge"], p["square"][0])
        other = nn.layer_norm(np.sin(x), p["square"][1], p["edge"])
        return np.sum(np.cumsum(one * other))

    oracle = bo.compile(loss, START, data=(DATA,), regularizer=lambda p: touch(p, np))
    value, gradient = oracle.value_and_grad(oracle.x0)
    assert value == oracle.value(oracle.x0)
    np.testing.assert_array_equal(gradient, oracle.grad(oracle.x0))

    def norm(x, weight, bias):
        centred = x - anp.mean(x, axis=-1, keepdims=True)
        variance = anp.mean(centred**2, axis=-1, keepdims=True)
        return centred / anp.sqrt(variance + 1e-5) * weight + bias

    def mean(p):
        total = touch(p, anp)
        for x in np.sin(DATA):
            one = norm(x, p["edge"], p["square"][0])
            total += anp.sum(anp.cumsum(one * norm(x, p["square"][1], p["edge"]))) / SAMPLES
        return total

    expected = autograd.grad(mean)(START)
    for name, part in oracle.unflatten(gradient).items():
        np.testing.assert_allclose(part, expected[name], rtol=1e-9, atol=1e-9)
