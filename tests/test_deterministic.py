"""Deterministic methods: the rates of their theorems, line searches, Newton steps."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from methods import METHODS, random_quadratic, run, solution_of, squared

from buropt.optim import (
    GD,
    AdGD,
    Armijo,
    CubicNewton,
    HeavyBall,
    Momentum,
    Nesterov,
    NesterovSGD,
    Newton,
    PolyakStep,
    Wolfe,
)
from buropt.optim.cubic_newton import cubic_step
from buropt.problems import (
    Problem,
    least_squares,
    logistic,
    nonconvex_logistic,
    quadratic,
    synthetic_quadratic,
)


def samples(n: int = 40, d: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    return A, np.where(A @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)


def gaps(states: list[Any], problem: Problem) -> Any:
    f_star = problem.constants.f_star
    assert f_star is not None
    return np.array([problem.value(state.x) - f_star for state in states])


@pytest.mark.parametrize("seed", range(3))
def test_gradient_descent(seed: int) -> None:
    problem, _ = random_quadratic(3, 4, seed)
    c, k = problem.constants, np.arange(101)
    gap = gaps(run(GD(), problem, 100), problem)
    distance = squared(solution_of(problem))
    assert np.all(gap[1:] <= c.L * distance / (2 * k[1:]) * (1 + 1e-9))
    assert np.all(gap <= gap[0] * (1 - c.mu / c.L) ** k * (1 + 1e-9) + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_heavy_ball_on_quadratics(seed: int) -> None:
    """Each eigenvalue h gives a recursion with roots of size sqrt(momentum), for all of [mu, L]."""
    problem, _ = random_quadratic(3, 4, seed)
    method = HeavyBall().theory(problem)
    rate = math.sqrt(method.momentum)
    kappa = problem.constants.L / problem.constants.mu
    assert rate == pytest.approx((math.sqrt(kappa) - 1) / (math.sqrt(kappa) + 1))
    hessian = problem.hessian(problem.x0)
    for h in np.linalg.eigvalsh(hessian):
        step = np.array([[1 + rate**2 - method.gamma * h, -(rate**2)], [1, 0]])
        assert np.abs(np.linalg.eigvals(step)).max() == pytest.approx(rate, abs=1e-6)
    star = solution_of(problem)
    errors = [math.sqrt(squared(s.x - star)) for s in run(method, problem, 80)]
    assert errors[80] <= 100 * rate**80 * errors[0] + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_nesterov_when_strongly_convex(seed: int) -> None:
    problem, _ = random_quadratic(3, 4, seed)
    c, k = problem.constants, np.arange(151)
    gap = gaps(run(Nesterov(), problem, 150), problem)
    start = gap[0] + c.mu / 2 * squared(solution_of(problem))
    assert np.all(gap <= (1 - math.sqrt(c.mu / c.L)) ** k * start * (1 + 1e-9) + 1e-12)


def test_nesterov_when_convex() -> None:
    """A chain of 60 springs, which gradient descent takes long for."""
    d = 60
    A = 2 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1)
    problem = quadratic(A[None], np.eye(1, d))
    c, k = problem.constants, np.arange(1, 61)
    gap = gaps(run(Nesterov(mu=0), problem, 60), problem)[1:]
    bound = 2 * c.L * squared(solution_of(problem)) / (k + 1) ** 2
    assert np.all(gap <= bound)
    assert gap[-1] < gaps(run(GD(), problem, 60), problem)[-1] / 2


def test_nesterov_with_and_without_batches() -> None:
    """NesterovSGD follows the extrapolated points of Nesterov with a constant momentum."""
    problem, _ = random_quadratic(3, 4, 0)
    step = 0.5 / problem.constants.L
    a = run(Nesterov(step_size=step, momentum=0.7), problem, 30)
    b = run(NesterovSGD(step_size=step, momentum=0.7, batch_size=None), problem, 30)
    for first, second in zip(a, b, strict=True):
        np.testing.assert_allclose(first.y, second.x, rtol=1e-10, atol=1e-12)


def test_momentum_with_all_samples_is_the_heavy_ball() -> None:
    problem, _ = random_quadratic(3, 4, 0)
    settings: Any = {"step_size": 0.3 / problem.constants.L, "momentum": 0.6}
    a = run(HeavyBall(**settings), problem, 30)[-1].x
    b = run(Momentum(batch_size=3, **settings), problem, 30)[-1].x
    np.testing.assert_allclose(a, b, rtol=1e-11)


def test_heavy_ball_with_a_given_momentum() -> None:
    problem = logistic(*samples())
    method = HeavyBall(momentum=0.8).theory(problem)
    assert method.gamma == pytest.approx(0.2 / problem.constants.L)
    assert HeavyBall().theory(problem).momentum == 0.9  # mu = 0


@pytest.mark.parametrize("seed", range(3))
def test_adgd(seed: int) -> None:
    """The Lyapunov function of the paper never grows, and steps are at least 1/(2L)."""
    problem, _ = random_quadratic(3, 4, seed)
    star, f_star = solution_of(problem), problem.constants.f_star
    states = run(AdGD(), problem, 60)
    previous = math.inf
    for old, new in itertools.pairwise(states[1:]):
        assert new.lam >= 1 / (2 * problem.constants.L) * (1 - 1e-9)
        potential = (
            squared(new.x - star)
            + 0.5 * squared(new.x - old.x)
            + 2 * new.lam * (1 + new.theta) * (problem.value(old.x) - f_star)
        )
        assert potential <= previous * (1 + 1e-9) + 1e-13
        previous = potential
    assert problem.metrics(states[-1].x)[1] < 1e-3 * problem.metrics(problem.x0)[1]


@pytest.mark.parametrize("seed", range(3))
def test_polyak_step(seed: int) -> None:
    problem, _ = random_quadratic(3, 4, seed)
    star, c = solution_of(problem), problem.constants
    states = run(PolyakStep(), problem, 100)
    distances = np.array([squared(s.x - star) for s in states])
    assert np.all(distances[1:] <= (1 - c.mu / (4 * c.L)) * distances[:-1] + 1e-13)
    best = gaps(states[:-1], problem).min()
    assert best <= 2 * c.L * distances[0] / 100


def test_polyak_step_needs_the_minimum() -> None:
    problem = logistic(*samples())
    with pytest.raises(ValueError, match=r"minimum is not known; give optimizer\.f_star"):
        PolyakStep().theory(problem)
    assert PolyakStep(f_star=0.0).theory(problem).f_star == 0.0


@pytest.mark.parametrize("make", [logistic, nonconvex_logistic, least_squares])
@pytest.mark.parametrize("first", [1e-6, 1e4])
def test_line_searches_from_any_first_step(make: Any, first: float) -> None:
    problem = make(*samples())
    for method in (Armijo(step_size=first), Wolfe(step_size=first)):
        states = run(method, problem, 60)
        values = np.array([state.f for state in states])
        assert np.all(np.diff(values) <= 1e-15)
        assert problem.metrics(states[-1].x)[1] < 0.05 * problem.metrics(problem.x0)[1]
        for old, new in itertools.pairwise(states):
            square = squared(old.g)
            decrease = method.decrease * new.accepted * square
            assert new.f <= old.f - decrease + 1e-14
            if isinstance(method, Wolfe) and square > 1e-10:
                assert new.g @ old.g <= method.curvature * square


def test_armijo_steps_are_long_enough() -> None:
    problem, _ = random_quadratic(3, 4, 1)
    method = Armijo(decrease=0.3, shrink=0.7)
    least = 2 * 0.7 * (1 - 0.3) / problem.constants.L
    for state in run(method, problem, 30)[1:]:
        assert state.accepted >= min(least, 1 / problem.constants.L) * (1 - 1e-9)


def test_newton_solves_a_quadratic_at_once() -> None:
    problem, _ = random_quadratic(3, 4, 0)
    for method in (Newton(), CubicNewton()):
        x = run(method, problem, 1)[-1].x
        np.testing.assert_allclose(x, solution_of(problem), rtol=1e-9)


def test_newton_converges_quadratically() -> None:
    problem = logistic(*samples(), l2=0.05)
    norms = [math.sqrt(problem.metrics(s.x)[1]) for s in run(Newton(), problem, 6)]
    assert norms[-1] < 1e-14
    for old, new in itertools.pairwise(norms):
        assert new <= 10 * old**2 + 1e-14


def test_newton_where_the_hessian_is_singular() -> None:
    A, y = samples(3, 5)
    problem = least_squares(A, y)
    assert problem.metrics(run(Newton(), problem, 2)[-1].x)[1] < 1e-20


@pytest.mark.parametrize("seed", range(8))
def test_cubic_step_is_the_global_minimum(seed: int) -> None:
    """(H + (M r/2) I) s = -g with r = |s| and a positive semidefinite matrix characterize it."""
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((4, 4))
    H = H + H.T
    g = rng.standard_normal(4) * (0.0 if seed == 7 else 1.0)
    if seed in (5, 6):  # the hard case: no part along the smallest eigenvalue
        vectors = np.linalg.eigh(H)[1]
        g = vectors[:, 1:] @ (1e-3 * rng.standard_normal(3))
    M = rng.uniform(0.1, 3)
    s = cubic_step(H, g, M)
    shifted = H + 0.5 * M * math.sqrt(squared(s)) * np.eye(4)
    np.testing.assert_allclose(shifted @ s, -g, atol=1e-9)
    assert np.linalg.eigvalsh(shifted)[0] >= -1e-9


def test_cubic_newton_decreases_and_leaves_saddles() -> None:
    problem = nonconvex_logistic(*samples())
    M = CubicNewton().theory(problem).M
    states = run(CubicNewton(), problem, 30)
    for old, new in itertools.pairwise(states):
        s = math.sqrt(squared(new.x - old.x))
        assert problem.value(new.x) <= problem.value(old.x) - M * s**3 / 12 + 1e-14
    saddle = quadratic(np.array([[[1.0, 0.0], [0.0, -1.0]]]), np.zeros((1, 2)))
    x = run(CubicNewton(M=1.0), saddle, 1)[-1].x
    assert abs(x[1]) == pytest.approx(2.0)
    with pytest.raises(ValueError, match=r"take optimizer=cubic_newton"):
        Newton().theory(saddle)


@pytest.mark.parametrize("name", ["nesterov", "adgd", "newton", "polyak_step", "saga", "lkatyusha"])
def test_nonconvex_problems_are_refused_where_the_theorem_is(name: str) -> None:
    with pytest.raises(ValueError, match="not known to be convex"):
        METHODS[name].theory(nonconvex_logistic(*samples()))


def test_costs() -> None:
    """Of 10 steps: oracle calls, gradients in passes, floats up and down."""
    d, n = 5, 3
    for method, calls, passes, up, down in (
        (HeavyBall(), 11, 11, 11 * d, 10 * d),
        (Nesterov(), 10, 10, 10 * d, 10 * d),
        (AdGD(), 11, 11, 11 * d, 10 * d),
        (PolyakStep(), 11, 11, 11 * (d + 1), 10 * d),
        (Newton(), 21, 11 + 10 * d, 11 * d + 10 * d * (d + 1) // 2, 10 * d),
        (CubicNewton(), 21, 11 + 10 * d, 11 * d + 10 * d * (d + 1) // 2, 10 * d),
    ):
        problem = synthetic_quadratic(n, d)
        run(method, problem, 10)
        counters = problem.counters
        assert counters.oracle_calls == calls
        assert counters.sample_grads == passes * n
        assert counters.bits_up == up * 64
        assert counters.bits_down == down * 64
