"""Dense data that are mostly zeros: computed with without them, and nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo

N, D = 700, 80


def logistic(x, a, b):
    return np.logaddexp(0, -b * (a @ x))


def problem(share=0.08, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((N, D)) < share, rng.standard_normal((N, D)), 0.0).astype(dtype)
    return A, np.sign(rng.standard_normal(N)), rng.standard_normal(D).astype(dtype)


def copied(oracle):
    return oracle.describe()["copied_bytes"]


def derivative(A, b, x):
    """Of the mean loss, as NumPy computes it."""
    with np.errstate(all="ignore"):
        return (-b / (1 + np.exp(b * (A @ x))) / len(b)) @ A


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_the_sparse_matrix(dtype):
    A, b, x = problem(dtype=dtype)
    dense, sparse = (
        bo.compile(logistic, x, (data, b), dtype=dtype, workers=3) for data in (A, sp.csr_array(A))
    )
    assert 0 < copied(dense) < A.nbytes / 4
    assert "data without their zeros" in repr(dense.describe())
    idx = np.random.default_rng(1).integers(0, N, 50)
    w = np.random.default_rng(2).random(N)
    tolerance = {"rtol": 1e-4 if dtype == np.float32 else 1e-11, "atol": 1e-6}
    calls = (
        lambda f: f.value_and_grad(x),
        lambda f: f.grad(x, idx),
        lambda f: f.grad(x, idx[:1]),
        lambda f: f.grad(x, weights=w),
        lambda f: f.hvp(x, A[5] + 1, idx),
        lambda f: f.worker_grads(x),
        lambda f: f.per_sample_grads(x, idx[:3]),
        lambda f: f.hessian(x),
    )
    for call in calls:
        for ours, theirs in zip(call(dense), call(sparse), strict=True):
            np.testing.assert_allclose(ours, theirs, **tolerance)


def test_the_bits_are_those_of_any_number_of_threads():
    A, b, x = problem()
    first, *others = (
        bo.compile(logistic, x, (np.tile(A, (20, 1)), np.tile(b, 20)), threads=threads)
        for threads in (1, 2, 5)
    )
    assert first.describe()["slots"] > 1
    for other in others:
        np.testing.assert_array_equal(other.grad(x), first.grad(x))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_zeros_times_what_is_not_finite_count(bad):
    A, b, x = problem()
    oracle = bo.compile(logistic, x, (A, b))
    assert copied(oracle) > 0
    x[7] = bad
    for idx in (None, np.arange(20)):
        assert np.isnan(oracle.value(x, idx))
        assert np.isnan(oracle.grad(x, idx)).all()
    x[7] = 0.0
    np.testing.assert_allclose(oracle.grad(x), derivative(A, b, x), rtol=1e-10, atol=1e-14)


def test_a_factor_that_is_not_finite_reaches_every_column():
    A, _, x = problem()
    A[:, 0] = 1.0
    oracle = bo.compile(lambda x, a: np.exp(a @ x), x, (A,))
    assert copied(oracle) > 0
    x[0] = 1e6
    gradient = oracle.grad(x)
    assert np.isnan(gradient[~np.isinf(gradient)]).all()
    assert np.isnan(gradient).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_data_may_hold_anything(bad):
    A, b, x = problem()
    A[3] = -0.0
    A[11, 4] = bad
    oracle = bo.compile(logistic, x, (A, b))
    assert copied(oracle) > 0
    got, expected = oracle.grad(x, [3, 11, 12]), derivative(A[[3, 11, 12]], b[[3, 11, 12]], x)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-14)
    alone = oracle.grad(x, [3])
    np.testing.assert_array_equal(alone, np.zeros(D))
    assert not np.signbit(alone).any()


def test_ones_are_not_stored():
    A, b, x = problem()
    ones = (A != 0).astype(float)
    with_values, without = (copied(bo.compile(logistic, x, (data, b))) for data in (A, ones))
    assert with_values - without == 8 * np.count_nonzero(A)


def test_only_data_that_are_mostly_zeros_and_only_multiplied_are_copied():
    A, b, x = problem()
    assert copied(bo.compile(logistic, x, (problem(share=0.3)[0], b))) == 0
    assert copied(bo.compile(logistic, x[:50], (A[:, :50].copy(), b))) == 0  # short rows
    late = np.concatenate([A, np.ones((N, D))])  # dense where nobody looks first
    assert copied(bo.compile(logistic, x, (late, np.tile(b, 2)))) == 0
    assert copied(bo.compile(lambda x, a, b: (a @ x - b) ** 2 + a @ a, x, (A, b))) == 0


def test_saved_and_loaded_data_are_whole(tmp_path):
    A, b, x = problem()
    oracle = bo.compile(logistic, x, (A, b))
    oracle.save(tmp_path / "oracle.buropt")
    loaded = bo.load(tmp_path / "oracle.buropt")
    np.testing.assert_array_equal(loaded.grad(x), oracle.grad(x))
    assert loaded.describe()["data_bytes"] == oracle.describe()["data_bytes"] == A.nbytes + b.nbytes
