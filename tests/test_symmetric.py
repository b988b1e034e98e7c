"""Compressors of symmetric matrices, and FedNL with every compressor of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from methods import run

from buropt.compressors import (
    BlockTopK,
    Compressor,
    NaturalCompression,
    PowerSGD,
    RandK,
    RandSeqK,
    RankR,
    TopK,
    TopLEK,
)
from buropt.compressors.symmetric import SymmetricPowerSGD, SymmetricRankR, for_triangles
from buropt.optim import FedNL, FedNLPP
from buropt.problems import Problem, logistic
from buropt.random import Key
from buropt.triangle import matrix, triangle

BOTH = pytest.mark.parametrize("cls", [SymmetricRankR, SymmetricPowerSGD])


def symmetric(n: int, d: int, seed: int = 0) -> Any:
    M = np.random.default_rng(seed).standard_normal((n, d, d))
    return M + M.transpose(0, 2, 1)


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_rank_r_keeps_the_largest_eigenvalues(rank: int) -> None:
    M = symmetric(5, 6)
    received = matrix(SymmetricRankR(rank).compress(triangle(M), Key(0)).values, 6)
    for whole, part in zip(M, received, strict=True):
        w, V = np.linalg.eigh(whole)
        k = np.argsort(-np.abs(w))[:rank]
        np.testing.assert_allclose(part, (V[:, k] * w[k]) @ V[:, k].T, atol=1e-12)


def with_eigenvalues(w: Any, seed: int = 0) -> Any:
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(w), len(w))))[0]
    M = (Q * w) @ Q.T
    return (M + M.T) / 2


HARD = {
    "one number": np.array([[-3.0]]),
    "identity": np.eye(6),
    "diagonal": np.diag([0.0, 2, -2, 1, 0, -1]),
    "repeated": with_eigenvalues(np.repeat([1.0, -1.0], 20)),
    "clustered": with_eigenvalues(1 + 1e-13 * np.arange(40)),
    "pairs": np.diag(np.abs(np.arange(21.0) - 10)) + np.eye(21, k=1) + np.eye(21, k=-1),
    "falling": with_eigenvalues(10.0 ** -np.arange(0, 300, 10)),
    "ones": np.ones((9, 9)),
    "two": np.outer(np.arange(12.0), np.arange(12.0)) - 50 * np.eye(12)[:, :1] @ np.eye(12)[:1],
}


@pytest.mark.parametrize("name", HARD)
def test_rank_r_is_the_best_approximation(name: str) -> None:
    """Also where eigenvalues are equal, or so close that their vectors are not defined."""
    M = HARD[name]
    d, sizes = len(M), np.sort(np.abs(np.linalg.eigvalsh(M)))[::-1]
    for rank in {1, min(2, d), d // 2 + 1, d}:
        received = matrix(SymmetricRankR(rank).compress(triangle(M[None]), Key(0)).values, d)[0]
        least = float(np.linalg.norm(sizes[rank:]))
        assert np.linalg.norm(M - received) <= least + 1e-13 * d * sizes[0]
        if d > 1:
            rectangle = RankR(rank, rows=d).compress(M.reshape(1, -1), Key(0)).values
            assert np.linalg.norm(M - rectangle.reshape(d, d)) <= least + 1e-7 * sizes[0]


def test_of_two_eigenvalues_the_positive_one_is_kept() -> None:
    x = triangle(np.array([[[0.0, 2.0], [2.0, 0.0]]]))
    kept = matrix(SymmetricRankR(1).compress(x, Key(0)).values, 2)
    np.testing.assert_allclose(kept, np.ones((1, 2, 2)), rtol=1e-12)


def test_power_sgd_projects() -> None:
    """Of a matrix of rank 2 nothing is lost; of others the error is at most the matrix."""
    rng = np.random.default_rng(0)
    low = np.stack([B @ np.diag([2.0, -1.0]) @ B.T for B in rng.standard_normal((4, 7, 2))])
    received = SymmetricPowerSGD(2).compress(triangle(low), Key(0)).values
    np.testing.assert_allclose(matrix(received, 7), low, atol=1e-12)
    x = triangle(symmetric(200, 5))
    errors = SymmetricPowerSGD(2).compress(x, Key(1)).values - x
    ratios = np.square(errors).sum(axis=1) / np.square(x).sum(axis=1)
    assert ratios.max() <= 1 + 1e-12
    assert ratios.mean() <= 1 - 2 / 5


@BOTH
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_messages(cls: Any, dtype: Any, d: int) -> None:
    compressor, key = cls(min(d, 2)), Key(3)
    x = triangle(symmetric(3, d)).astype(dtype)
    values, bits = compressor.compress(x, key)
    assert values.dtype == dtype
    for worker, row in enumerate(x):
        payload = compressor.encode(row, key, worker)
        assert bits[worker] == compressor.bits(len(row), dtype)
        assert len(payload) == -(-bits[worker] // 8)
        read = compressor.decode(payload, len(row), dtype, key, worker)
        assert read.tobytes() == values[worker].tobytes()
    assert not compressor.compress(np.zeros_like(x), key).values.any()
    x[0, 0] = np.nan
    assert np.isnan(compressor.compress(x, key).values[0]).all()


@BOTH
def test_the_scale_does_not_matter(cls: Any) -> None:
    x = triangle(symmetric(1, 4))
    plain = cls(2).compress(x, Key(0)).values
    for scale in (2.0**-1000, 2.0**1000):
        scaled = cls(2).compress(x * scale, Key(0)).values
        np.testing.assert_allclose(scaled, plain * scale, rtol=1e-10)


@BOTH
def test_refusals(cls: Any) -> None:
    with pytest.raises(ValueError, match=r"has d \(d \+ 1\) / 2 entries, not 7"):
        cls(1).compress(np.zeros((1, 7)), Key(0))
    with pytest.raises(ValueError, match=r"rank must be at most 3, the side of the matrix, got 4"):
        cls(4).compress(np.zeros((1, 6)), Key(0))


def test_matrices_have_compressors_of_their_own() -> None:
    assert for_triangles(RankR(2)) == SymmetricRankR(2)
    assert for_triangles(PowerSGD(2)) == SymmetricPowerSGD(2)
    assert for_triangles(TopK(2)) == TopK(2)
    assert FedNL(compressor=RankR(2)).theory(small()).alpha == 1


def small() -> Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 5))
    y = np.where(A @ rng.standard_normal(5) + rng.standard_normal(60) > 0, 1.0, -1.0)
    return logistic(A, y, l2=0.05, split=4)


COMPRESSORS = [
    RankR(1),
    PowerSGD(1),
    BlockTopK(1, 4),
    TopLEK(3),
    RandSeqK(5),
    RandK(4, scaled=False),
    NaturalCompression(),
]


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=repr)
def test_fednl_converges_with(compressor: Compressor) -> None:
    problem = small()
    states = run(FedNL(option="B", compressor=compressor), problem, 40)
    assert problem.metrics(states[-1].x)[1] < 1e-24
    sent = for_triangles(compressor).bits(15, np.float64)
    up = problem.counters.bits_up - 64 * 15 - 40 * 64 * 6
    assert up == 40 * sent or (isinstance(compressor, TopLEK) and up < 40 * sent)
    states = run(FedNLPP(clients=2, compressor=compressor), small(), 80)
    assert small().metrics(states[-1].x)[1] < 1e-22
