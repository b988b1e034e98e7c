"""Prox operators, and the methods that use them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import METHODS, Draws, random_quadratic, run, squared

from buropt.compressors import Identity, RandK, TopK
from buropt.optim import (
    EF21,
    GD,
    SAGA,
    SEGA,
    SGD,
    SVRG,
    Diana,
    Katyusha,
    MiG,
    Nesterov,
    Optimizer,
    ProxSkip,
    VRDiana,
)
from buropt.problems import least_squares, synthetic_quadratic
from buropt.prox import L1, Ball, Box, ElasticNet, GroupL1, Psi, Simplex

FUNCTIONS = [
    L1(0.7),
    ElasticNet(0.4, 1.3),
    GroupL1(0.8, size=2),
    GroupL1(0.8, size=3),
    Box(0.6),
    Ball(0.9),
    Simplex(1.5),
]
EVERY = pytest.mark.parametrize("psi", FUNCTIONS, ids=repr)


@EVERY
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_prox_is_the_minimizer(psi: Psi, dtype: Any) -> None:
    """No point near it or far from it is better; the objective is strongly convex."""
    rng = np.random.default_rng(0)
    for step in (0.1, 1.0, 3.0):
        for _ in range(10):
            x = (2 * rng.standard_normal(5)).astype(dtype)
            best = psi.prox(x, step)
            assert best.dtype == dtype
            assert best.shape == (5,)

            def objective(z: Any, x: Any = x, step: float = step) -> float:
                return psi.value(z) + squared(z - x) / (2 * step)

            least = objective(best)
            assert math.isfinite(least)
            for scale in (1e-2, 0.3, 2.0):
                other = best + scale * rng.standard_normal(5).astype(dtype)
                if psi.value(other) == math.inf:  # sets: a point that is allowed
                    other = psi.prox(other, step)
                excess = squared(other - best) / (2 * step)
                assert objective(other) >= least + excess - 1e-5 * (1 + least)


def test_prox_by_hand() -> None:
    x = np.array([3.0, -0.2, 4.0, 1.0])
    np.testing.assert_allclose(L1(0.5).prox(x, 2.0), [2, 0, 3, 0])
    np.testing.assert_allclose(ElasticNet(0.5, 0.5).prox(x, 2.0), [1, 0, 1.5, 0])
    np.testing.assert_allclose(GroupL1(1.0).prox(np.array([3.0, 4.0, 0.6]), 1.0), [2.4, 3.2, 0])
    np.testing.assert_allclose(Box(1.0).prox(x, 5.0), [1, -0.2, 1, 1])
    np.testing.assert_allclose(Ball(2.5).prox(np.array([3.0, 4.0]), 1.0), [1.5, 2.0])
    np.testing.assert_allclose(Simplex(1.0).prox(np.array([0.9, 0.7, -3.0]), 1.0), [0.6, 0.4, 0])
    zero = np.zeros(3)
    for psi in (L1(), ElasticNet(), GroupL1(), Box(), Ball()):
        assert not psi.prox(zero, 1.0).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L1(-1.0), r"L1\.l1 must be a finite number >= 0, got -1"),
        (lambda: Ball(math.inf), r"Ball\.radius"),
        (lambda: Box(math.nan), r"Box\.radius"),
        (lambda: GroupL1(size=0), r"GroupL1\.size must be a whole number >= 1"),
    ],
)
def test_wrong_parameters(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_start_that_is_not_allowed_is_projected() -> None:
    problem = synthetic_quadratic(3, 4)
    assert problem.with_psi(Simplex()).x0.tolist() == [0.25] * 4
    assert not problem.with_psi(L1()).x0.any()
    assert problem.with_psi(L1()).constants.f_star is None
    assert problem.psi is None
    assert problem.constants.f_star is not None


def test_metrics_are_those_of_the_sum() -> None:
    problem = synthetic_quadratic(3, 4).with_psi(L1(0.3))
    x = np.array([1.0, -2.0, 0.5, 0.0])
    value, mapping = problem.metrics(x)
    assert value == pytest.approx(problem.value(x) + 0.3 * 3.5)
    L = problem.constants.L
    moved = L1(0.3).prox(x - problem.grad(x) / L, 1 / L)
    assert mapping == pytest.approx(L**2 * squared(x - moved))


@EVERY
def test_gradient_descent_reaches_a_stationary_point(psi: Psi) -> None:
    problem = random_quadratic(3, 5, 1)[0].with_psi(psi)
    states = run(GD(), problem, 3000)
    x = states[-1].x
    assert problem.metrics(x)[1] < 1e-20
    values = [problem.metrics(state.x)[0] for state in states[:50]]
    assert np.all(np.diff(values) <= 1e-12)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = psi.prox(x + rng.standard_normal(5), 1.0)
        assert problem.metrics(other)[0] >= problem.metrics(x)[0] - 1e-12


@pytest.mark.parametrize(
    ("method", "rounds"),
    [
        (Nesterov(), 300),
        (SGD(batch_size=None), 1500),
        (SVRG(), 8000),
        (SAGA(), 3000),
        (Katyusha(), 2500),
        (MiG(), 2500),
        (METHODS["lsvrg"], 4000),
        (SEGA(), 6000),
        (METHODS["diana"], 1500),
        (Diana(compressor=Identity()), 1500),
        (VRDiana(compressor=RandK(3)), 8000),
        (EF21(compressor=TopK(2)), 3000),
        (ProxSkip(), 1500),
    ],
    ids=repr,
)
@pytest.mark.parametrize("psi", [L1(0.2), GroupL1(0.3), Ball(0.3)], ids=repr)
def test_the_same_solution_by_every_method(method: Optimizer[Any], rounds: int, psi: Psi) -> None:
    problem = synthetic_quadratic(4, 5, L=1.0, mu=0.2, seed=3).with_psi(psi)
    expected = run(GD(), problem, 1500)[-1].x
    np.testing.assert_allclose(run(method, problem, rounds)[-1].x, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("psi", [L1(0.5), Ball(0.8)], ids=repr)
def test_error_feedback_never_loses_ground(psi: Psi, seed: int) -> None:
    """f + psi + step/(2 theta) mean_i |g_i - grad f_i|^2 does not grow in a step of EF21."""
    smooth, rng = random_quadratic(3, 3, seed)
    problem = smooth.with_psi(psi)
    method = EF21(compressor=TopK(1)).theory(problem)
    weight = method.gamma / (2 * (1 - math.sqrt(2 / 3)))

    def potential(x: Any, g_i: Any) -> float:
        errors = squared(g_i - problem.worker_grads(x)) / 3
        return problem.metrics(x)[0] + weight * errors

    for _ in range(20):
        x = psi.prox(2 * rng.standard_normal(3), 1.0)
        g_i = problem.worker_grads(x) + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g_i.mean(axis=0), g_i=g_i)
        new = method.step(problem, state, Draws())
        before = potential(x, g_i)
        assert potential(new.x, new.g_i) <= before + 1e-9 * abs(before)


def test_lasso_is_sparse() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 10))
    truth = np.concatenate([np.ones(3), np.zeros(7)])
    problem = least_squares(A, A @ truth + 0.01 * rng.standard_normal(50)).with_psi(L1(0.1))
    x = run(SAGA(), problem, 20000)[-1].x
    assert set(np.flatnonzero(x)) == {0, 1, 2}
    assert problem.metrics(x)[1] < 1e-18
