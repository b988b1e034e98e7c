"""`Oracle.hvp_at`: many products with the Hessian at one point."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo

N, D = 300, 6
RNG = np.random.default_rng(5)
DENSE = RNG.standard_normal((N, D))
SPARSE = sp.csr_array(DENSE * (RNG.random((N, D)) < 0.4))
B = RNG.choice([-1.0, 1.0], N)


def logistic(x, a, b):
    return np.logaddexp(0, -b * (a @ x))


def two_parts(p, a, b):
    return np.tanh(p["w"] @ a + p["c"]) * b + (a @ p["w"]) ** 2


def network(p, a, b):
    return (p["v"] @ np.tanh(p["W"] @ a) - b) ** 2


NESTED = {"w": np.zeros(D), "c": 0.0}
LARGE = {"W": np.zeros((40, D)), "v": np.zeros(40)}
CASES = {
    "sparse": (logistic, np.zeros(D), SPARSE, True),
    "dense": (logistic, np.zeros(D), DENSE, True),
    "nested": (two_parts, NESTED, DENSE, True),
    "network": (network, LARGE, DENSE, False),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_products_at_a_point(name, weighted, dtype):
    loss, x0, A, is_split = CASES[name]
    oracle = bo.compile(
        loss,
        x0,
        data=(A, B),
        regularizer=(lambda x: 0.01 * np.sum(x**4)) if isinstance(x0, np.ndarray) else None,
        weights=RNG.random(N) if weighted else None,
        dtype=dtype,
    )
    x, v, w = RNG.standard_normal((3, oracle.dim)).astype(dtype)
    product = oracle.hvp_at(x)
    assert oracle._products.is_split is is_split
    point = x.copy()
    x[:] = np.nan  # the point is remembered, not the array
    for direction in (v, w):
        exact = oracle.hvp(point, direction)
        error = np.abs(product(direction) - exact).max()
        assert error <= 100 * np.finfo(dtype).eps * np.abs(exact).max()
        assert product(direction).dtype == dtype


def test_products_without_data_and_their_mistakes():
    oracle = bo.compile(lambda x: np.sum(x**3), np.ones(3))
    assert np.array_equal(oracle.hvp_at(np.ones(3))(np.ones(3)), [6, 6, 6])
    data = bo.compile(logistic, np.zeros(D), data=(DENSE, B))
    with pytest.raises(ValueError, match="x must have shape"):
        data.hvp_at(np.zeros(2))
    with pytest.raises(ValueError, match="v must have shape"):
        data.hvp_at(np.zeros(D))(np.zeros(2))


def test_a_graph_that_building_changes():
    def loss(x, a):
        value = np.ptp(x) * a
        for _ in range(6):
            value = np.abs(value)
        return np.arcsinh(value)

    oracle = bo.compile(loss, np.array([1.0, 3.0]), data=np.array([1.0, 2.0]))
    x, v = np.array([0.5, 2.0]), np.array([1.0, -1.0])
    step = 1e-6
    expected = (oracle.grad(x + step * v) - oracle.grad(x - step * v)) / (2 * step)
    assert np.allclose(oracle.hvp_at(x)(v), expected, rtol=1e-6)
    assert np.allclose(oracle.hvp(x, v), expected, rtol=1e-6)
