"""Minibatches of sparse rows: with small whole numbers, and batches of 2^k, every sum is exact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo

D = 24


def weighted_product(x, a, y):
    return y * (a @ x)


def matrix(lengths, ones, seed=0):
    """A row of each length, its columns in random order, with whole numbers or ones."""
    rng = np.random.default_rng(seed)
    columns = np.concatenate([rng.permutation(D)[:n] for n in lengths] or [[]])
    values = np.ones(len(columns)) if ones else rng.choice([-3.0, -2.0, 2.0, 5.0], len(columns))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_array((values, columns.astype(np.int32), starts), shape=(len(lengths), D))


def check(A, idx, dtype):
    rng = np.random.default_rng(1)
    y, x = rng.integers(-4, 5, A.shape[0]), rng.integers(-4, 5, D)
    oracle = bo.compile(weighted_product, np.zeros(D), (A, y.astype(float)), dtype=dtype)
    value, gradient = oracle.value_and_grad(x.astype(dtype), np.array(idx))
    picked, weights = A.toarray()[idx], y[idx] / len(idx)
    assert value == weights @ (picked @ x)
    np.testing.assert_array_equal(gradient, weights @ picked)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ones", [False, True])
def test_rows_of_every_length_in_any_order(ones, dtype):
    # The last rows end where no whole group of entries can be read.
    lengths = [*range(14), 0, 9, 4, 1, 0, 2, 0]
    A = matrix(lengths, ones)
    for seed in range(8):
        idx = np.random.default_rng(seed).integers(0, len(lengths), 32)
        check(A, idx, dtype)
    for row in range(len(lengths)):
        check(A, [row], dtype)


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("lengths", [[0, 0], [1], [2, 0], [0, 1, 2], [3, 1], [2, 3], [0, 24]])
def test_matrices_of_few_entries(lengths, ones):
    A = matrix(lengths, ones)
    check(A, np.arange(4) % len(lengths), float)
    check(A, [len(lengths) - 1] * 4, float)


def test_several_tiles():
    rng = np.random.default_rng(3)
    A = matrix(rng.integers(0, 12, 3000), ones=False)
    check(A, rng.integers(0, 3000, 2048), float)


def test_infinities_stay_where_they_belong():
    A = matrix(np.arange(3000) % 12, ones=False)
    x = np.zeros(D)
    x[5] = np.inf
    oracle = bo.compile(lambda x, a: (a @ x) ** 2, np.zeros(D), (A,))
    rows = np.flatnonzero(A[:, [5]].toarray() == 0)[:100]
    assert oracle.value(x, rows) == 0
