"""Inner loops of linear models: the lazy sparse steps are the dense ones, written out in NumPy."""

import signal

import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo
from buropt.inner import LinearLoops

N, D = 40, 15


def logistic(x, a, b):
    return np.logaddexp(0, -b * (a @ x))


def slope(z, b):
    return -b / (1 + np.exp(b * z))


@pytest.fixture(params=["values", "ones"])
def samples(request):
    A = sp.random(N, D, 0.15, format="csr", random_state=1)
    if request.param == "ones":
        A.data[:] = 1
    return sp.csr_array(A), np.where(np.arange(N) % 3 == 0, 1.0, -1.0)


def soft(y, t):
    return np.sign(y) * np.maximum(np.abs(y) - t, 0)


PENALTIES = [(0.0, 0.0), (0.05, 0.0), (0.0, 0.02), (0.05, 0.02)]


def test_slopes_and_their_mean_gradient(samples):
    A, b = samples
    oracle = bo.compile(logistic, np.zeros(D), (A, b))
    x = np.random.default_rng(0).standard_normal(D)
    slopes, mean = LinearLoops(oracle).slopes(x)
    np.testing.assert_allclose(slopes, slope(A @ x, b), rtol=1e-14)
    np.testing.assert_allclose(mean, oracle.grad(x), rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize(("l2", "l1"), PENALTIES)
def test_saga_is_the_dense_step(samples, l2, l1):
    A, b = samples
    loops = LinearLoops(bo.compile(logistic, np.zeros(D), (A, b)))
    rng = np.random.default_rng(1)
    x, step, idx = rng.standard_normal(D), 0.4, rng.integers(0, N, 500)
    table, mean = loops.slopes(x)
    y, T, m = x.copy(), table.copy(), mean.copy()
    for j in idx:
        a = A[[j]].toarray()[0]
        s = slope(a @ y, b[j])
        y = soft(y - step * ((s - T[j]) * a + m + l2 * y), step * l1)
        m = m + (s - T[j]) / N * a
        T[j] = s
    for part in (idx[:7], idx[7:7], idx[7:]):
        loops.saga(x, table, mean, part, step, l2=l2, l1=l1)
    np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(table, T, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(mean, m, rtol=1e-11, atol=1e-13)
    assert (x == 0).sum() == (y == 0).sum()


@pytest.mark.parametrize(("l2", "l1"), PENALTIES)
def test_svrg_is_the_dense_step(samples, l2, l1):
    A, b = samples
    loops = LinearLoops(bo.compile(logistic, np.zeros(D), (A, b)))
    rng = np.random.default_rng(2)
    x, step, idx = rng.standard_normal(D), 0.4, rng.integers(0, N, 300)
    anchor, mean = loops.slopes(x)
    y = x.copy()
    for j in idx:
        a = A[[j]].toarray()[0]
        y = soft(y - step * ((slope(a @ y, b[j]) - anchor[j]) * a + mean + l2 * y), step * l1)
    loops.svrg(x, anchor, mean, idx, step, l2=l2, l1=l1)
    np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_sarah_is_the_dense_recursion(samples, l2, batch):
    A, b = samples
    ridge = (lambda x: 0.5 * l2 * (x @ x)) if l2 else None
    oracle = bo.compile(logistic, np.zeros(D), (A, b), regularizer=ridge)
    rng = np.random.default_rng(3)
    x0, step = rng.standard_normal(D), 0.3
    idx = rng.integers(0, N, 200 if batch is None else (200, batch))
    v, x = oracle.grad(x0), x0.copy()
    y, w = x.copy(), v.copy()
    for row in np.atleast_2d(idx.T).T:
        before, y = y, y - step * w
        w = w + oracle.grad(y, row) - oracle.grad(before, row)
    LinearLoops(oracle).sarah(x, v, idx, step, l2=l2)
    np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(v, w, rtol=1e-9, atol=1e-12)


def test_saga_solves_l1_regularized_logistic_regression(samples):
    A, b = samples
    loops = LinearLoops(bo.compile(logistic, np.zeros(D), (A, b)))
    x = np.zeros(D)
    table, mean = loops.slopes(x)
    idx = np.random.default_rng(4).integers(0, N, 200_000)
    loops.saga(x, table, mean, idx, 0.2, l2=0.01, l1=0.01)
    # The subdifferential holds 0.
    g = A.T @ slope(A @ x, b) / N + 0.01 * x
    assert 0 < (x == 0).sum() < D
    np.testing.assert_allclose(g[x != 0], -0.01 * np.sign(x[x != 0]), atol=1e-12)
    assert (np.abs(g[x == 0]) <= 0.01 + 1e-12).all()


def test_float32(samples):
    A, b = samples
    loops = LinearLoops(bo.compile(logistic, np.zeros(D), (A, b), dtype=np.float32))
    x = np.zeros(D, np.float32)
    table, mean = loops.slopes(x)
    loops.saga(x, table, mean, np.random.default_rng(4).integers(0, N, 50_000), 0.2, l2=0.01)
    g = A.T @ slope(A @ x, b) / N + 0.01 * x
    assert np.abs(g).max() < 1e-6


def test_ctrl_c_leaves_complete_steps(samples):
    A, b = samples
    loops = LinearLoops(bo.compile(logistic, np.zeros(D), (A, b)))
    x = np.zeros(D)
    table, mean = loops.slopes(x)
    idx = np.random.default_rng(6).integers(0, N, 30_000_000)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            loops.saga(x, table, mean, idx, 0.2, l2=0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    np.testing.assert_allclose(mean, A.T @ table / N, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, a, b: np.sin(b * (a @ x)) + (a @ x) ** 2,
        lambda x, a, b: np.where(b > 0, np.abs(a @ x - b), 0.5 * (a @ x) ** 2),
    ],
)
def test_any_function_of_the_product_will_do(samples, loss):
    oracle = bo.compile(loss, np.zeros(D), samples)
    x = np.random.default_rng(5).standard_normal(D)
    np.testing.assert_allclose(LinearLoops(oracle).slopes(x)[1], oracle.grad(x), atol=1e-14)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, a, b: (a @ x) ** 2 + x[0] * b,
        lambda x, a, b: (a @ (2 * x)) ** 2,
        lambda x, a, b: (a @ x) * (a @ np.tanh(x)),
        lambda x, a, b: b * np.sum(x**2),
    ],
)
def test_other_losses_are_refused(samples, loss):
    with pytest.raises(ValueError, match="LinearLoops needs an unweighted loss"):
        LinearLoops(bo.compile(loss, np.zeros(D), samples))


def test_dense_data_weights_and_two_parameters_are_refused(samples):
    A, b = samples
    dense = bo.compile(logistic, np.zeros(D), (A.toarray(), b))
    weighted = bo.compile(logistic, np.zeros(D), samples, weights=np.ones(N))
    two = bo.compile(
        lambda p, a, b: (a @ p["x"] + p["c"] - b) ** 2, {"x": np.zeros(D), "c": 0.0}, samples
    )
    for oracle in (dense, weighted, two):
        with pytest.raises(ValueError, match="LinearLoops needs an unweighted loss"):
            LinearLoops(oracle)


def test_mistakes_are_named(samples):
    loops = LinearLoops(bo.compile(logistic, np.zeros(D), samples))
    x = np.zeros(D)
    table, mean = loops.slopes(x)
    with pytest.raises(IndexError, match="idx contains 40"):
        loops.saga(x, table, mean, [3, 40], 0.1)
    with pytest.raises(ValueError, match=r"idx must have shape \(steps,\) or \(steps, b\)"):
        loops.saga(x, table, mean, [[[1, 2]]], 0.1)
    with pytest.raises(ValueError, match="a step with an l1 term has one sample, got 2"):
        loops.saga(x, table, mean, [[1, 2]], 0.1, l1=0.1)
    with pytest.raises(ValueError, match="l1 must be a finite number >= 0, got -1"):
        loops.svrg(x, table, mean, [1], 0.1, l1=-1)
    with pytest.raises(ValueError, match="mean must not share memory with x"):
        loops.saga(x, table, x, [1], 0.1)
    with pytest.raises(ValueError, match="slopes must be a C-contiguous float64 array"):
        loops.saga(x, mean, mean, [1], 0.1)
    assert (x == 0).all()
