"""Hessians of the workers as triangles: the linear model's kernel, estimates, and their solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import buropt as bo
from buropt.compressors import Compressor, RandK, TopK
from buropt.optim.estimates import Estimates, first_estimates
from buropt.problems import Problem, logistic
from buropt.random import Key
from buropt.triangle import matrix, products, solve_shifted, triangle, triangle_size


def logistic_loss(x: Any, a: Any, b: Any) -> Any:
    return np.logaddexp(0, -b * (a @ x))


def features(n: int, d: int, dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)).astype(dtype)


def signs(n: int) -> Any:
    return np.where(np.arange(n) % 3 == 0, 1.0, -1.0)


SHARDS = [np.array([7, 3, 20, 1]), np.array([0, 2, 4, 5, 6]), np.r_[8:20, 21:30]]
REGULARIZERS: dict[str, Callable[[Any], Any] | None] = {
    "none": None,
    "ridge": lambda x: 0.05 * (x @ x),
    "nonquadratic": lambda x: 0.05 * np.sum(x * x / (1 + x * x)),
}


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("kind", ["dense", "csr", "binary"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hessians_of_a_linear_model(regularizer: str, kind: str, dtype: Any) -> None:
    """Against the same loss written so that nobody sees that it is one."""
    A = features(30, 70, dtype)
    if kind == "binary":
        A = (A != 0).astype(dtype)
    rng = np.random.default_rng(1)
    x0, weights = rng.standard_normal(70).astype(dtype), rng.random(30)
    rows = A if kind == "dense" else sparse.csr_array(A)
    given: Any = {
        "regularizer": REGULARIZERS[regularizer],
        "weights": weights,
        "workers": SHARDS,
    }
    oracle = bo.compile(logistic_loss, x0, (rows, signs(30)), **given)
    plain = bo.compile(
        lambda x, a, b: np.logaddexp(0, -b * np.sum(a * x)), x0, (A, signs(30)), **given
    )
    assert oracle._linear_model is not None
    assert plain._linear_model is None
    expected = plain.worker_hessians(x0)
    accuracy = 1e-12 if dtype == np.float64 else 1e-5
    for _ in range(2):
        np.testing.assert_allclose(oracle.worker_hessians(x0), expected, atol=accuracy)
    np.testing.assert_allclose(expected.mean(axis=0), plain.hessian(x0), atol=accuracy)
    some = oracle.worker_triangles(x0, [2, 0])
    np.testing.assert_array_equal(some, oracle.worker_triangles(x0)[[2, 0]])


def test_a_regularizer_that_is_not_quadratic_moves_with_x() -> None:
    A = features(30, 5, np.float64)
    oracle = bo.compile(
        logistic_loss, np.zeros(5), (A, signs(30)), regularizer=REGULARIZERS["nonquadratic"]
    )
    for x in (np.zeros(5), np.ones(5)):
        np.testing.assert_allclose(oracle.worker_hessians(x)[0], oracle.hessian(x), atol=1e-14)


def test_two_parameters_are_no_linear_model() -> None:
    def loss(p: Any, a: Any) -> Any:
        return (p["u"] @ p["v"] - a) ** 2

    oracle = bo.compile(loss, {"u": np.ones(2), "v": np.ones(2)}, np.arange(4.0), workers=2)
    assert oracle._linear_model is None
    x = np.arange(4.0)
    np.testing.assert_allclose(oracle.worker_hessians(x).mean(axis=0), oracle.hessian(x))


def test_hessians_need_data() -> None:
    oracle = bo.compile(lambda x: x @ x, np.zeros(2))
    with pytest.raises(ValueError, match="this oracle was compiled without"):
        oracle.worker_hessians(np.zeros(2))


def problem_with(threads: int, d: int = 40) -> Problem:
    A = sparse.csr_array(features(90, d, np.float64))
    return logistic(A, signs(90), l2=0.1, split=5, threads=threads)


def rounds(
    problem: Problem, compressor: Compressor, workers: Any = None
) -> list[tuple[Estimates, Any]]:
    """Estimates that start from 0 and learn at five points; their means."""
    rng = np.random.default_rng(0)
    versions = [first_estimates(problem, problem.x0, False)]
    for number in range(5):
        x, key = rng.standard_normal(problem.dim), Key(0, number)
        H_i, H = versions[-1]
        learned = H_i.learned(problem, x, H, compressor, 0.75, key, workers)
        versions.append((learned.H_i, learned.H))
    return versions


@pytest.mark.parametrize("compressor", [TopK(33), RandK(50), RandK(820)], ids=repr)
@pytest.mark.parametrize("workers", [None, np.array([4, 1])])
def test_estimates_learn_what_is_sent(compressor: Any, workers: Any) -> None:
    """Against whole matrices, compressed by themselves; old versions stay what they were."""
    problem, reference = problem_with(1), problem_with(1)
    versions = rounds(problem, compressor, workers)
    rng = np.random.default_rng(0)
    expected = [np.zeros((5, triangle_size(40)))]
    chosen = np.arange(5) if workers is None else workers
    for number in range(5):
        x = rng.standard_normal(40)
        differences = triangle(reference.worker_hessians(x)) - expected[-1]
        sent = reference.send(compressor, differences, Key(0, number), workers)
        after = expected[-1].copy()
        after[chosen] += 0.75 * sent[chosen]
        expected.append(after)
    for (version, H), rows in reversed(list(zip(versions, expected, strict=True))):
        np.testing.assert_allclose(H, rows.mean(axis=0), atol=1e-14)
        np.testing.assert_allclose(np.asarray(version), rows, atol=1e-14)
    assert problem.counters.bits_up == pytest.approx(reference.counters.bits_up)


@pytest.mark.parametrize("compressor", [TopK(33), RandK(50)], ids=repr)
def test_old_versions_come_back_to_the_bit(compressor: Any) -> None:
    problem, kept = problem_with(1), []
    version, H = first_estimates(problem, problem.x0, True)
    versions = [version]
    for number in range(4):
        kept.append(np.asarray(version).copy())
        x = np.full(40, 0.1 * number)
        version = version.learned(problem, x, H, compressor, 0.5, Key(1, number)).H_i
        versions.append(version)
    assert np.asarray(versions[1]).tobytes() == kept[1].tobytes()
    for old, rows in zip(versions, kept, strict=False):
        assert np.asarray(old).tobytes() == rows.tobytes()
    again = versions[0].learned(problem, np.zeros(40), H, compressor, 0.5, Key(1, 0)).H_i
    assert np.asarray(again).tobytes() == np.asarray(versions[1]).tobytes()


def test_norms_before_and_after() -> None:
    problem = problem_with(1)
    version, H = first_estimates(problem, problem.x0, False)
    x = np.ones(40)
    some = np.array([3, 0])
    newer, _, before, after = version.learned(problem, x, H, TopK(33), 0.5, Key(0, 0), some)
    hessians = problem.oracle.worker_hessians(x)[[3, 0]]
    learned = matrix(np.asarray(newer)[[3, 0]], 40)
    np.testing.assert_allclose(before, np.linalg.norm(hessians, axis=(1, 2)))
    np.testing.assert_allclose(after, np.linalg.norm(hessians - learned, axis=(1, 2)))


@pytest.mark.parametrize("compressor", [TopK(33), RandK(50)], ids=repr)
def test_any_number_of_threads_gives_the_same_bits(compressor: Any) -> None:
    first, *others = (rounds(problem_with(threads), compressor)[-1] for threads in (1, 2, 3))
    for other in others:
        for part, same in zip(first, other, strict=True):
            assert np.asarray(part).tobytes() == np.asarray(same).tobytes()


def test_a_k_that_does_not_fit() -> None:
    problem = problem_with(1)
    version, H = first_estimates(problem, problem.x0, False)
    with pytest.raises(ValueError, match=r"TopK\.k must be between 1 and d = 820, got 821"):
        version.learned(problem, problem.x0, H, TopK(821), 1.0, Key(0, 0))
    with pytest.raises(IndexError, match="workers contains 5, but workers go from 0 to 4"):
        problem.oracle.worker_triangles(problem.x0, [5])


@pytest.mark.parametrize("d", [1, 2, 9, 70])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_systems_and_products_of_triangles(d: int, dtype: Any) -> None:
    rng = np.random.default_rng(d)
    factor = rng.standard_normal((d, d + 3)).astype(dtype)
    A, b = factor @ factor.T, rng.standard_normal(d).astype(dtype)
    accuracy = 1e-9 if dtype == np.float64 else 1e-3
    shifted = A + np.eye(d, dtype=dtype)
    np.testing.assert_allclose(
        solve_shifted(triangle(A), 1.0, b), np.linalg.solve(shifted, b), rtol=accuracy
    )
    both = np.stack([triangle(A), triangle(shifted)])
    np.testing.assert_allclose(
        products(both, b), np.stack([A @ b, shifted @ b]), rtol=accuracy, atol=accuracy
    )
    assert np.isnan(solve_shifted(triangle(-A), 0.0, b)).all()
