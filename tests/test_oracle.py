"""`compile` and `Oracle`: values and gradients of objectives over data, in every kind of call."""

import math
import threading
import time
from functools import partial

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import buropt as bo

N, D = 517, 9


def logistic(x, a, b):
    return np.logaddexp(0, -b * (a @ x))


def ridge(x):
    return 0.05 * (x @ x)


def problem(seed=0, n=N, d=D):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    return A, np.sign(rng.standard_normal(n)), rng.standard_normal(d)


def expected(x, A, y, scale=None, lam=0.05):
    """Value and gradient of the sum of scale * loss plus the ridge; scale is 1/n by default."""
    scale = np.full(len(y), 1 / len(y)) if scale is None else scale
    z = -y * (A @ x)
    return (
        scale @ np.logaddexp(0, z) + lam * x @ x,
        A.T @ (-y * scale / (1 + np.exp(-z))) + 2 * lam * x,
    )


@pytest.fixture(params=["dense", "csr"])
def oracle(request):
    A, y, x = problem()
    data = (sp.csr_array(A) if request.param == "csr" else A, y)
    return bo.compile(logistic, x, data, regularizer=ridge, workers=4), A, y, x


def close(got, want, rtol=1e-12):
    np.testing.assert_allclose(got[0], want[0], rtol=rtol)
    np.testing.assert_allclose(got[1], want[1], rtol=rtol, atol=1e-13)


def test_full_batch(oracle):
    f, A, y, x = oracle
    want = expected(x, A, y)
    close(f.value_and_grad(x), want)
    close((f.value(x), f.grad(x)), want)
    assert type(f.value(x)) is float
    assert f.grad(x).shape == (D,)


@given(idx=st.lists(st.integers(0, N - 1), min_size=1, max_size=80))
@settings(max_examples=25)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_minibatch_counts_repeats_and_the_regularizer_once(kind, idx):
    A, y, x = problem()
    f = bo.compile(logistic, x, (sp.csr_array(A) if kind == "csr" else A, y), regularizer=ridge)
    close(f.value_and_grad(x, np.array(idx)), expected(x, A[idx], y[idx]))


def test_one_index_may_be_a_number(oracle):
    f, A, y, x = oracle
    close(f.value_and_grad(x, 5), expected(x, A[[5]], y[[5]]))
    close(f.value_and_grad(x, [5]), expected(x, A[[5]], y[[5]]))


def test_weights(oracle):
    f, A, y, x = oracle
    w = np.random.default_rng(1).random(N)
    close(f.value_and_grad(x, weights=w), expected(x, A, y, w / N))
    idx = np.array([3, 3, 100])
    close(f.value_and_grad(x, idx, w[:3]), expected(x, A[idx], y[idx], w[:3] / 3))
    always = bo.compile(logistic, x, (A, y), regularizer=ridge, weights=w)
    close(always.value_and_grad(x), expected(x, A, y, w / N))
    close(always.value_and_grad(x, idx), expected(x, A[idx], y[idx], w[idx] / 3))


def test_out_is_written_and_returned(oracle):
    f, _, _, x = oracle
    out = np.empty(D)
    assert f.grad(x, out=out) is out
    assert np.array_equal(out, f.grad(x))
    assert f.value_and_grad(x, out=out)[1] is out


def test_bind_sees_later_values(oracle):
    f, _, _, x0 = oracle
    x, g = x0.copy(), np.empty(D)
    call = f.bind(x, g)
    for _ in range(3):
        x += 0.1
        value, gradient = f.value_and_grad(x)
        assert call() == value
        assert np.array_equal(g, gradient)


# Workers

SPLITS = {
    "a number": 4,
    "contiguous": [np.arange(0, 100), np.arange(100, 350), np.arange(350, N)],
    "scattered": list(np.array_split(np.random.default_rng(3).permutation(N), 5)),
}


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("split", SPLITS)
def test_worker_functions(kind, split):
    A, y, x = problem()
    data = (sp.csr_array(A) if kind == "csr" else A, y)
    f = bo.compile(logistic, x, data, regularizer=ridge, workers=SPLITS[split])
    shards = np.array_split(np.arange(N), 4) if split == "a number" else SPLITS[split]
    n = f.n_workers
    values, grads = f.worker_values_and_grads(x)
    for i, shard in enumerate(shards):
        want = expected(x, A[shard], y[shard], np.full(len(shard), n / N))
        close((values[i], grads[i]), want)
    # The objective is the mean of the workers' functions for any split.
    close((values.mean(), grads.mean(axis=0)), f.value_and_grad(x))
    out = np.empty((n, D))
    assert f.worker_grads(x, out=out) is out
    assert np.array_equal(out, grads)


def test_worker_gradient_differences(oracle):
    f, A, y, x = oracle
    z = x + 0.3
    np.testing.assert_allclose(
        f.worker_grad_differences(x, z), f.worker_grads(x) - f.worker_grads(z), atol=1e-14
    )
    shards = np.array_split(np.arange(N), 4)
    idx = np.stack([np.random.default_rng(i).choice(s, 6) for i, s in enumerate(shards)])
    out = np.empty((4, D))
    assert f.worker_grad_differences(x, z, idx, out) is out
    for i, row in enumerate(idx):
        share = np.full(6, 4 * len(shards[i]) / N / 6)
        want = [expected(p, A[row], y[row], share)[1] for p in (x, z)]
        np.testing.assert_allclose(out[i], want[0] - want[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("split", SPLITS)
def test_weighted_worker_functions_and_bound_calls(split):
    A, y, x = problem()
    w = np.random.default_rng(7).random(N)
    f = bo.compile(logistic, x, (A, y), regularizer=ridge, weights=w, workers=SPLITS[split])
    shards = np.array_split(np.arange(N), 4) if split == "a number" else SPLITS[split]
    n = f.n_workers
    values, grads = f.worker_values_and_grads(x)
    for i, shard in enumerate(shards):
        want = expected(x, A[shard], y[shard], n / N * w[shard])
        close((values[i], grads[i]), want)
    close((values.mean(), grads.mean(axis=0)), f.value_and_grad(x))

    idx = np.stack([shard[[0, 2, 2]] for shard in shards])
    z = x + 0.5
    differences = f.worker_grad_differences(x, z, idx)
    values, grads = f.worker_values_and_grads(x, idx)
    assert np.array_equal(grads, f.worker_grads(x, idx))
    for i, row in enumerate(idx):
        scale = n * len(shards[i]) / N / 3 * w[row]
        at_x, at_z = (expected(p, A[row], y[row], scale)[1] for p in (x, z))
        np.testing.assert_allclose(differences[i], at_x - at_z, rtol=1e-11, atol=1e-13)
        close((values[i], grads[i]), expected(x, A[row], y[row], scale))

    g = np.empty(D)
    assert f.bind(x, g)() == f.value(x)
    assert np.array_equal(g, f.grad(x))


# Reproducibility: one bit pattern for any number of threads


def test_bits_do_not_depend_on_threads():
    A, y, x = problem(seed=5, n=10_007, d=13)
    rng = np.random.default_rng(6)
    small, large = rng.integers(0, 10_007, 257), rng.integers(0, 10_007, 4000)
    small[::9] = small[0]
    for kind, data in {"dense": (A, y), "csr": (sp.csr_array(A), y)}.items():
        seen = {name: set() for name in ("full", "small", "large", "workers", "one by one")}
        for threads in (1, 2, 3, 5, 8):
            f = bo.compile(logistic, x, data, regularizer=ridge, threads=threads, workers=7)
            assert f.describe()["slots"] > 1
            for _ in range(20):
                for name, idx in (("full", None), ("small", small), ("large", large)):
                    value, gradient = f.value_and_grad(x, idx)
                    seen[name].add((value, gradient.tobytes()))
                seen["workers"].add(f.worker_grads(x).tobytes())
            alone = np.mean([f.grad(x, j) for j in range(10_007)], axis=0)
            seen["one by one"].add(alone.tobytes())
            np.testing.assert_allclose(alone, f.grad(x), rtol=1e-12, atol=1e-14)
        assert {name: len(patterns) for name, patterns in seen.items()} == dict.fromkeys(seen, 1)
        # The large minibatch, too, is summed in several slots.
        pick = bo.compile(logistic, x, (data[0][large], y[large]), regularizer=ridge)
        assert pick.describe()["slots"] >= 3, kind
        close(f.value_and_grad(x, large), pick.value_and_grad(x))


def stamps_during(call):
    """How often another Python thread got to run in the middle 80 % of the call; its seconds."""
    stamps = []
    stop = threading.Event()

    def work():
        while not stop.is_set():
            stamps.append(time.perf_counter())
            time.sleep(1e-3)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while not stamps:
            time.sleep(1e-3)
        begin = time.perf_counter()
        call()
        end = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    margin = (end - begin) / 10
    return sum(begin + margin < stamp < end - margin for stamp in stamps), end - begin


def size_for(call, seconds, size):
    """A size for which `call(size)`, whose time grows in proportion, takes about as long."""
    while True:
        begin = time.perf_counter()
        call(size)
        taken = time.perf_counter() - begin
        if taken > 0.05:
            return math.ceil(size * seconds / taken)
        size *= 4


def test_gil_is_released():
    def slow(x, a):
        h = x
        for _ in range(20):
            h = np.tanh(a + np.sin(h))
        return np.sum(h)

    f = bo.compile(slow, np.zeros(300), (np.ones((64, 300)),), threads=1)

    def gradient(size):
        f.grad(np.zeros(300), np.arange(size) % 64)

    def holding(size):
        sum(range(size))  # one call, inside of which Python does not change threads

    size = size_for(gradient, 1.3, 64)
    stamps, seconds = stamps_during(partial(gradient, size))
    while seconds < 1:  # the first measurement may have been disturbed
        size *= 2
        stamps, seconds = stamps_during(partial(gradient, size))
    assert stamps > 50
    stamps, seconds = stamps_during(partial(holding, size_for(holding, 0.7, 10**5)))
    assert seconds > 0.2
    assert stamps == 0


def test_several_python_threads_share_an_oracle(oracle):
    f, _, _, x = oracle
    points = [x + 0.01 * i for i in range(40)]
    want = [f.grad(p).tobytes() for p in points]
    got = [b""] * 40
    threads = [
        threading.Thread(
            target=lambda k: got.__setitem__(
                slice(k, 40, 4), [f.grad(p).tobytes() for p in points[k::4]]
            ),
            args=(k,),
        )
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == want


# Shapes and dtypes


def test_parameters_as_a_tree():
    rng = np.random.default_rng(0)
    x0 = {"w": [rng.standard_normal((4, 3)), rng.standard_normal((1, 4))], "b": 0.5}
    A = rng.standard_normal((20, 3))

    def loss(p, a):
        return np.sum(p["w"][1] @ np.tanh(p["w"][0] @ a)) + p["b"] ** 2

    f = bo.compile(loss, x0, (A,))
    assert f.dim == 17
    tree = f.unflatten(f.x0)
    assert np.array_equal(tree["w"][0], x0["w"][0])
    assert np.array_equal(f.flatten(tree), f.x0)
    value = np.mean([loss(x0, a) for a in A])
    assert f.value(f.x0) == pytest.approx(value, rel=1e-13)
    error = scipy.optimize.check_grad(f.value, f.grad, f.x0)
    assert error < 1e-5


def test_float32_computes_in_float32():
    A, y, x = problem()
    f = bo.compile(logistic, x.astype(np.float32), (A, y), regularizer=ridge)
    assert f.dtype == np.float32
    assert f.grad(x).dtype == np.float32
    close(f.value_and_grad(x), expected(x, A, y), rtol=2e-5)
    assert bo.compile(logistic, x, (A, y), dtype="float32").dtype == np.float32


def test_start_shape_is_accepted_and_kept():
    f = bo.compile(lambda x: np.sum(x**2), np.ones((2, 3)))
    assert f.grad(np.ones((2, 3))).shape == (2, 3)
    assert f.grad(np.ones(6)).shape == (6,)
    scalar = bo.compile(lambda x: x**2, 3.0)
    assert scalar.value(3.0) == 9
    assert scalar.grad(3.0).shape == ()


def test_softmax_regression_over_csr_uses_the_matrix_form():
    rng = np.random.default_rng(2)
    A, labels = problem()[0], rng.integers(0, 3, N)
    onehot = np.eye(3)[labels]

    def loss(W, a, t):
        z = a @ W
        return np.log(np.sum(np.exp(z))) - z @ t

    W = rng.standard_normal((D, 3))
    dense, csr = (bo.compile(loss, W, (data, onehot)) for data in (A, sp.csr_array(A)))
    close(csr.value_and_grad(W), dense.value_and_grad(W))
    p = np.exp(A @ W)
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(dense.grad(W), A.T @ (p - onehot) / N, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("batch", [1, 3, 64, 300])
def test_network_with_matrices_on_both_sides(batch):
    rng = np.random.default_rng(3)
    A, T = rng.standard_normal((300, 5, 4)), rng.standard_normal((300, 6))
    x0 = {
        "U": rng.standard_normal((4, 6)),
        "V": rng.standard_normal((3, 5)),
        "c": rng.standard_normal(6),
    }

    def loss(p, a, t):
        h = np.tanh(p["V"] @ a @ p["U"] + p["c"])
        return np.sum((h.sum(axis=0) - t) ** 2) + np.sum(a.T @ a) * 1e-3

    f = bo.compile(loss, x0, (A, T))
    idx = rng.integers(0, 300, batch)
    want = np.mean([loss(x0, A[i], T[i]) for i in idx])
    assert f.value(f.x0, idx) == pytest.approx(want, rel=1e-12)
    v = rng.standard_normal(f.dim)
    h = 1e-5
    slope = (f.value(f.x0 + h * v, idx) - f.value(f.x0 - h * v, idx)) / (2 * h)
    assert f.grad(f.x0, idx) @ v == pytest.approx(slope, rel=1e-6)


def test_describe_and_graph(oracle):
    f = oracle[0]
    description = f.describe()
    assert description["executor"] == "tile"
    assert 1 <= description["tile"] <= 256
    assert description["instructions"] < description["nodes"]
    assert "input x0" in str(f.graph)
    assert bo.compile(lambda x: x**2, 1.0).describe()["executor"] == "scalar"


def test_scipy_minimize_takes_it_as_it_stands(oracle):
    f, *_ = oracle
    result = scipy.optimize.minimize(f.value, np.zeros(D), jac=f.grad, method="BFGS")
    assert np.linalg.norm(f.grad(result.x)) < 1e-4
