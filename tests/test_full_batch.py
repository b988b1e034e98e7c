"""Full batches of sparse data, which go by copies sliced by rows and columns where that pays."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo

N, D = 1500, 2100


def logistic(x, a, b):
    return np.logaddexp(0, -b * (a @ x))


def squares(x, a, b):
    return 0.5 * (a @ x - b) ** 2


def sparse(n=N, d=D, entries=50_000, values="real", seed=0):
    """Some rows and columns empty, one row long."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(5, n, entries), rng.integers(5, d, entries)
    columns[:200], rows[:200] = np.arange(200) + 5, n // 2
    numbers = {
        "ones": np.ones(entries),
        "counts": rng.integers(0, 9, entries),
        "integers": rng.integers(-4, 5, entries),
        "large": np.where(rng.random(entries) < 0.01, 70_000, 3),
        "real": rng.standard_normal(entries),
    }[values]
    A = sp.coo_array((numbers.astype(float), (rows, columns)), (n, d))
    A.sum_duplicates()
    if values == "ones":
        A.data[:] = 1.0
    return A.tocsr()


def labels(n, seed=1):
    return np.sign(np.random.default_rng(seed).standard_normal(n))


def sliced(oracle):
    return oracle.describe()["sliced_bytes"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("values", ["ones", "counts", "integers", "large"])
@pytest.mark.parametrize(
    "shape", [(2048, 2101), (8192, 70_001), (65536 * 2, 1100), (16_384, 300), (131_072, 210)]
)
def test_sums_of_integers_are_exact(shape, values, dtype):
    if values == "large" and dtype == np.float32:
        return  # not exact
    n, d = shape
    A = sparse(n, d, max(50_000, 3 * (n + d)), values)
    rng = np.random.default_rng(2)
    x, b = rng.integers(-3, 4, d).astype(float), rng.integers(-3, 4, n).astype(float)
    w = rng.integers(0, 3, n).astype(float)
    oracle = bo.compile(squares, x, (A, b), dtype=dtype)
    r = A @ x - b
    np.testing.assert_array_equal(oracle.grad(x), ((A.T @ r) / n).astype(dtype))
    np.testing.assert_array_equal(oracle.grad(x, weights=w), ((A.T @ (w * r)) / n).astype(dtype))
    np.testing.assert_allclose(oracle.value(x), 0.5 * np.mean(r**2), rtol=1e-5)
    assert sliced(oracle) > 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_queries_and_threads_agree_in_bits(dtype):
    A, b = sparse(n=4001), labels(4001)
    x = np.random.default_rng(3).standard_normal(D).astype(dtype)
    w = np.random.default_rng(4).random(4001)

    def penalty(x):
        return 0.01 * (x @ x)

    first, *others = (
        bo.compile(logistic, x, (A, b), regularizer=penalty, dtype=dtype, threads=threads)
        for threads in (1, 2, 3, 8)
    )
    value, gradient = first.value_and_grad(x)
    weighted = first.grad(x, weights=w)
    assert first.describe()["slots"] > 2
    for oracle in (first, *others):
        for _ in range(2):
            assert oracle.value(x) == value
            np.testing.assert_array_equal(oracle.grad(x), gradient)
            again = oracle.value_and_grad(x)
            assert again[0] == value
            np.testing.assert_array_equal(again[1], gradient)
            np.testing.assert_array_equal(oracle.grad(x, weights=w), weighted)
        at, g = x.copy(), np.empty_like(x)
        assert oracle.bind(at, g)() == value
        np.testing.assert_array_equal(g, gradient)
        oracle.step(at, 0.5)
        np.testing.assert_array_equal(at, x - dtype(0.5) * gradient)
    tolerance = {"rtol": 2e-4, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-11}
    all_samples = first.grad(x, np.arange(4001))
    np.testing.assert_allclose(gradient, all_samples, **tolerance)
    np.testing.assert_allclose(first.worker_grads(x)[0], gradient, **tolerance)


def test_every_query_of_the_full_batch():
    A, b = sparse(), labels(N)
    x, v = np.random.default_rng(5).standard_normal((2, D))
    oracle = bo.compile(logistic, x, (A, b), workers=3)
    everything = np.arange(N)
    for call in (
        lambda idx: oracle.hvp(x, v, idx),
        lambda idx: oracle.jvp(x, v, idx),
        lambda idx: oracle.partial_grad(x, [3, 9, 1000], idx),
        lambda idx: oracle.per_sample_grads(x, idx)[:, :50],
        lambda idx: oracle.value(x, idx),
    ):
        np.testing.assert_allclose(call(None), call(everything), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(oracle.worker_grads(x).mean(axis=0), oracle.grad(x), rtol=1e-9)


def test_several_sparse_arrays_and_products():
    A, B = sparse(), sparse(seed=6)
    x, y = np.random.default_rng(7).standard_normal((2, D))

    def loss(p, a, b):
        product = np.sin(a @ p["x"]) * (b @ p["y"])
        return product + a @ p["y"] + np.sum(p["M"] * p["M"]) * (b @ p["x"])

    M = np.ones((2, 2))
    oracle = bo.compile(loss, {"x": x, "y": y, "M": M}, (A, B))
    gradient = oracle.unflatten(oracle.grad(oracle.x0))
    s, c = np.sin(A @ x), np.cos(A @ x)
    expected = A.T @ (c * (B @ y)) + B.T @ np.full(N, np.sum(M * M))
    np.testing.assert_allclose(gradient["x"], expected / N, rtol=1e-9, atol=1e-12)
    expected = B.T @ s + A.T @ np.ones(N)
    np.testing.assert_allclose(gradient["y"], expected / N, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gradient["M"], 2 * M * np.mean(B @ x), rtol=1e-9)
    assert sliced(oracle) > 0


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("values", ["ones", "counts", "real"])
def test_only_samples_that_have_a_column_see_what_is_not_finite(values, bad):
    A = sparse(values=values)
    x = np.random.default_rng(8).standard_normal(D)
    for column in (0, 5, D - 1):  # the first has no entries
        at = x.copy()
        at[column] = bad
        oracle = bo.compile(lambda x, a: np.tanh(a @ x), x, (A,))
        with np.errstate(all="ignore"):
            z = A @ at
            expected = (A.T @ (1 - np.tanh(z) ** 2)) / N
        np.testing.assert_allclose(oracle.grad(at), expected, rtol=1e-9, atol=1e-14)
        assert sliced(oracle) > 0


def test_copies_are_made_when_a_full_batch_needs_them_and_shared():
    A, b = sparse(values="counts"), labels(N)
    x = np.zeros(D)
    oracle = bo.compile(logistic, x, (A, b))
    size = len(pickle.dumps(oracle))
    oracle.grad(x, np.arange(20))
    assert sliced(oracle) == 0
    oracle.value(x)
    rows = sliced(oracle)
    oracle.value_and_grad(x)
    both = sliced(oracle)
    assert A.nnz * 4 < rows < both < A.nnz * 12
    assert "for full batches" in repr(oracle.describe())
    oracle.grad(x)
    oracle.hvp(x, x)
    assert sliced(oracle) == both
    assert len(pickle.dumps(oracle)) == size
    loaded = pickle.loads(pickle.dumps(oracle))
    assert sliced(loaded) == 0
    np.testing.assert_array_equal(loaded.grad(x), oracle.grad(x))


def test_long_rows_and_columns_are_cut():
    A = sparse(values="real").tolil()
    A[:, 7] = 1.0
    A[11, :] = 0.5
    A = A.tocsr()
    x = np.random.default_rng(9).standard_normal(D) / 10
    b = labels(N)
    first, other = (bo.compile(logistic, x, (A, b), threads=threads) for threads in (1, 4))
    expected = A.T @ (-b / (1 + np.exp(b * (A @ x)))) / N
    np.testing.assert_allclose(first.grad(x), expected, rtol=1e-11, atol=1e-15)
    np.testing.assert_array_equal(first.grad(x), other.grad(x))
    assert sliced(first) > 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), [(1500, 70), (5000, 64), (40_000, 64)])
def test_narrow_data_are_summed_by_blocks_of_samples(n, d, dtype):
    """Each slot its own, also columns so long that they are cut, whatever the last block's size."""
    rng = np.random.default_rng(12)
    A = sp.csr_array(np.where(rng.random((n, d)) < 0.4, rng.standard_normal((n, d)), 0))
    x, b, w = rng.standard_normal(d).astype(dtype), labels(n), rng.random(n)
    first, other = (
        bo.compile(logistic, x, (A, b), dtype=dtype, threads=threads) for threads in (1, 3)
    )
    slopes = w * -b / (1 + np.exp(b * (A @ x)))
    gradient = first.grad(x, weights=w)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(gradient, A.T @ slopes / n, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(other.grad(x, weights=w), gradient)
    np.testing.assert_array_equal(first.value_and_grad(x)[1], other.grad(x))
    moved = x.copy()
    other.step(moved, dtype(0.5))
    np.testing.assert_array_equal(moved, x - dtype(0.5) * first.grad(x))
    assert sliced(first) > 0


def test_threads_of_python_that_come_first_together():
    A, b = sparse(), labels(N)
    x = np.random.default_rng(10).standard_normal(D)
    expected = bo.compile(logistic, x, (A, b)).grad(x)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            oracle = bo.compile(logistic, x, (A, b))
            for gradient in pool.map(lambda _, f=oracle: f.grad(x), range(8)):
                np.testing.assert_array_equal(gradient, expected)


def test_data_that_gain_nothing_are_not_copied():
    even = sparse()
    for A in (
        sparse(200, 3000, 20_000),  # few entries
        sp.random_array((3000, 60), density=0.4, rng=0, format="csr"),  # narrow
        sparse(30_000, 30_000, 50_000),  # few in a row
    ):
        n, d = A.shape
        oracle = bo.compile(logistic, np.zeros(d), (A, labels(n)))
        oracle.grad(np.zeros(d))
        assert sliced(oracle) == 0
    oracle = bo.compile(lambda X, a: np.sum((a @ X) ** 2), np.ones((D, 3)), (even,))
    oracle.grad(np.ones((D, 3)))
    assert sliced(oracle) == 0  # products with matrices
