"""FedNL: Newton steps as a special case, local convergence, triangles, costs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from methods import random_quadratic, run, solution_of, squared

from buropt.compressors import Identity, RandK, TopK
from buropt.optim import FedNL, FedNLPP, Newton
from buropt.optim.fednl import solve_above
from buropt.optim.sampling import participants
from buropt.problems import Problem, logistic, nonconvex_logistic
from buropt.random import Key
from buropt.triangle import matrix, triangle


def data(l2: float = 0.05) -> Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 5))
    y = np.where(A @ rng.standard_normal(5) + rng.standard_normal(60) > 0, 1.0, -1.0)
    return logistic(A, y, l2=l2, split=4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_triangles_keep_the_frobenius_norm(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    M = rng.standard_normal((3, 4, 4)).astype(dtype)
    M = M + M.transpose(0, 2, 1)
    entries = triangle(M)
    assert entries.shape == (3, 10)
    assert entries.dtype == dtype
    for vector, full in zip(entries, M, strict=True):
        assert squared(vector) == pytest.approx(squared(full), rel=1e-5)
        np.testing.assert_allclose(matrix(vector, 4), full, rtol=1e-6)


def test_eigenvalues_are_raised() -> None:
    H = np.diag([3.0, -1.0, 0.5])
    np.testing.assert_allclose(solve_above(H, 1.0, np.ones(3)), [1 / 3, 1, 1])


@pytest.mark.parametrize("option", ["A", "B"])
def test_a_quadratic_takes_one_step(option: Any) -> None:
    """Estimates start exact, so that l = 0."""
    problem, _ = random_quadratic(3, 4, 0)
    for compressor in (Identity(), TopK(1), RandK(2)):
        x = run(FedNL(option=option, compressor=compressor), problem, 1)[-1].x
        np.testing.assert_allclose(x, solution_of(problem), rtol=1e-8)


def test_nothing_lost_is_newton_with_the_hessian_of_the_round_before() -> None:
    problem = data()
    states = run(FedNL(compressor=Identity()), problem, 6)
    newton = run(Newton(), problem, 1)
    np.testing.assert_allclose(states[1].x, newton[1].x, rtol=1e-10)
    for before, old, new in zip(states, states[1:], states[2:], strict=False):
        step = np.linalg.solve(problem.hessian(before.x), problem.grad(old.x))
        np.testing.assert_allclose(new.x, old.x - step, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("option", ["A", "B"])
@pytest.mark.parametrize("compressor", [TopK(3), RandK(5)], ids=repr)
def test_converges_faster_than_linearly(option: Any, compressor: Any) -> None:
    problem = data()
    norms = [
        math.sqrt(problem.metrics(state.x)[1])
        for state in run(FedNL(option=option, compressor=compressor), problem, 40)
    ]
    assert norms[-1] < 1e-14
    assert all(new <= 0.95 * old or new < 1e-13 for old, new in itertools.pairwise(norms[2:]))


@pytest.mark.parametrize("hessian_start", [True, False])
def test_line_search_from_far_away(hessian_start: bool) -> None:
    """With features ten times as large and estimates that start at 0."""
    rng = np.random.default_rng(1)
    A = 10 * rng.standard_normal((60, 4))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    problem = logistic(A, y, l2=1e-3, split=3)
    method = FedNL(line_search=True, hessian_start=hessian_start, compressor=TopK(4))
    states = run(method, problem, 150)
    values = [problem.value(state.x) for state in states]
    assert np.all(np.diff(values) <= 1e-14)
    assert problem.metrics(states[-1].x)[1] < 1e-18


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"mu = 0; give optimizer\.mu, or write optimizer\.opt"):
        FedNL().theory(data(l2=0.0))
    assert FedNL(option="B").theory(data(l2=0.0)).alpha == 1
    rng = np.random.default_rng(0)
    nonconvex = nonconvex_logistic(rng.standard_normal((8, 3)), np.tile([1.0, -1.0], 4))
    with pytest.raises(ValueError, match="not known to be convex; take optimizer=cubic_newton"):
        FedNL(mu=0.1).theory(nonconvex)


def test_steps_of_the_estimates() -> None:
    problem = data()
    assert FedNL(compressor=TopK(3)).theory(problem).alpha == 1
    assert FedNL(compressor=RandK(3)).theory(problem).alpha == pytest.approx(3 / 15)
    assert FedNL(alpha=0.5, compressor=RandK(3)).theory(problem).alpha == 0.5


def test_costs_of_ten_rounds() -> None:
    problem = data()
    run(FedNL(compressor=TopK(3)), problem, 10)
    assert problem.counters.sample_grads == 60 * (5 + 10 * (1 + 5))
    assert problem.counters.bits_up == 64 * 15 + 10 * (64 * 6 + 3 * (64 + 4))
    assert problem.counters.bits_down == 10 * 64 * 5


# Partial participation


def test_everybody_and_nothing_lost_is_newton() -> None:
    problem = data()
    states = run(FedNLPP(clients=4, compressor=Identity()), problem, 6)
    newton = run(Newton(), problem, 6)
    for state, other in zip(states, newton, strict=True):
        np.testing.assert_allclose(state.x, other.x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("hessian_start", [True, False])
@pytest.mark.parametrize("compressor", [TopK(3), RandK(5)], ids=repr)
def test_states_of_the_workers_are_what_the_paper_says(
    hessian_start: bool, compressor: Any
) -> None:
    """H_i from whole matrices, l_i and g_i at the points where the workers took part last."""
    problem = data()
    method = FedNLPP(clients=2, hessian_start=hessian_start, compressor=compressor)
    states = run(method, problem, 12)
    oracle, alpha = problem.oracle, method.theory(problem).alpha
    start = triangle(oracle.worker_hessians(problem.x0))
    H_i = start if hessian_start else np.zeros_like(start)
    points = np.tile(problem.x0, (4, 1))
    for number, state in enumerate(states[1:], start=1):
        key = Key(0, number)
        S = participants(problem, 2, key)
        differences = triangle(oracle.worker_hessians(state.x)) - H_i
        H_i = H_i.copy()
        H_i[S] += alpha * compressor.compress(differences, key).values[S]
        points[S] = state.x
        np.testing.assert_allclose(np.asarray(state.H_i), H_i, atol=1e-13)
        full = matrix(H_i, 5)
        for i, w in enumerate(points):
            error = np.linalg.norm(full[i] - oracle.worker_hessians(w)[i])
            assert state.l_i[i] == pytest.approx(error, abs=1e-13)
            model = full[i] @ w + error * w - oracle.worker_grads(w)[i]
            np.testing.assert_allclose(state.g_i[i], model, atol=1e-12)
    H, g = matrix(states[4].H, 5), states[4].g_i.mean(axis=0)
    shifted = H + states[4].l_i.mean() * np.eye(5)
    np.testing.assert_allclose(states[5].x, np.linalg.solve(shifted, g), rtol=1e-9)


@pytest.mark.parametrize("hessian_start", [True, False])
@pytest.mark.parametrize("compressor", [TopK(3), RandK(5)], ids=repr)
def test_a_quarter_of_the_workers_converge(hessian_start: bool, compressor: Any) -> None:
    problem = data()
    method = FedNLPP(clients=1, hessian_start=hessian_start, compressor=compressor)
    assert problem.metrics(run(method, problem, 300)[-1].x)[1] < 1e-24


def test_costs_of_participants() -> None:
    problem = data()
    run(FedNLPP(clients=2, compressor=TopK(3)), problem, 10)
    assert problem.counters.sample_grads == 60 * (5 + 1) + 10 * 30 * (1 + 5)
    assert problem.counters.bits_up == 64 * (15 + 6) + 10 * 0.5 * (64 * 6 + 3 * (64 + 4))
    assert problem.counters.bits_down == 10 * 64 * 5
    with pytest.raises(ValueError, match=r"FedNLPP\.clients=5 is more than the 4 workers"):
        FedNLPP(clients=5).theory(problem)
