"""Variance-reduced methods: reductions, one-step Lyapunov inequalities, rates, costs."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import (
    Draws,
    random_quadratic,
    run,
    shared_hessian,
    solution_of,
    squared,
)

from buropt.optim import (
    GD,
    LSVRG,
    PAGE,
    RCD,
    SAG,
    SAGA,
    SARAH,
    SEGA,
    SVRG,
    Katyusha,
    LKatyusha,
    MiG,
    Optimizer,
    SpiderBoost,
)
from buropt.optim.saga import UNIFORM
from buropt.optim.sampling import smoothness_scores
from buropt.optim.table import Table
from buropt.problems import least_squares, synthetic_quadratic

SEEDS = pytest.mark.parametrize("seed", range(5))


def follow_gradient_descent(method: Optimizer[Any], problem: Any, rounds: int = 25) -> None:
    expected = run(GD(step_size=0.1), problem, rounds)
    for a, b in zip(run(method, problem, rounds), expected, strict=True):
        np.testing.assert_allclose(a.x, b.x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        SVRG(step_size=0.1, m=5),
        SARAH(step_size=0.1, m=4),
        LSVRG(step_size=0.1, p=0.3),
        PAGE(step_size=0.1, p=0.3, batch_size=1),
        SpiderBoost(step_size=0.1, q=4, batch_size=2),
    ],
    ids=repr,
)
def test_a_shared_hessian_makes_every_estimate_exact(method: Optimizer[Any]) -> None:
    follow_gradient_descent(method, shared_hessian())


@pytest.mark.parametrize(
    "method",
    [
        PAGE(step_size=0.1, p=0.3, batch_size=4),
        LSVRG(step_size=0.1, p=0.3, batch_size=4),
        SAGA(step_size=0.1, batch_size=4),
        SVRG(step_size=0.1, m=7, batch_size=4),
        SARAH(step_size=0.1, m=6, batch_size=4),
        SpiderBoost(step_size=0.1, q=5, batch_size=4),
    ],
    ids=repr,
)
def test_all_samples_in_the_batch(method: Optimizer[Any]) -> None:
    follow_gradient_descent(method, random_quadratic(4, 3, 0)[0])


@pytest.mark.parametrize(
    "method",
    [
        SAGA(step_size=0.1),
        SAG(step_size=0.1),
        SVRG(step_size=0.1, m=4),
        LSVRG(step_size=0.1, p=0.5),
        PAGE(step_size=0.1, p=0.5),
        SARAH(step_size=0.1, m=3),
    ],
    ids=repr,
)
def test_one_sample(method: Optimizer[Any]) -> None:
    follow_gradient_descent(method, random_quadratic(1, 3, 1)[0])


@pytest.mark.parametrize("method", [SEGA(step_size=0.1), RCD(step_size=0.1, scaled=False)])
def test_one_dimension(method: Optimizer[Any]) -> None:
    follow_gradient_descent(method, random_quadratic(3, 1, 1)[0])


def test_lsvrg_with_a_certain_coin_corrects_by_the_previous_iterate() -> None:
    """Which is not gradient descent."""
    problem, _ = random_quadratic(4, 3, 0)
    states = run(LSVRG(step_size=0.05, p=1), problem, 10)
    for old, new in itertools.pairwise(states):
        assert np.array_equal(new.w, old.x)
        np.testing.assert_allclose(new.full, problem.grad(old.x))


# One step from a random state, all draws enumerated.


@SEEDS
@pytest.mark.parametrize("batch_size", [1, 2])
def test_lsvrg_contracts(seed: int, batch_size: int) -> None:
    problem, rng = random_quadratic(4, 3, seed)
    method = LSVRG(batch_size=batch_size).theory(problem)
    star, mu = solution_of(problem), problem.constants.mu
    if batch_size == 1:
        assert method.gamma == pytest.approx(1 / (6 * problem.constants.L_sample_max))
    c = (4 - batch_size) / (batch_size * 3)

    def potential(x: Any, w: Any) -> float:
        spread = squared(problem.sample_grads(w) - problem.sample_grads(star)) / 4
        return squared(x - star) + 4 * c * method.gamma**2 / method.p * spread

    rate = max(1 - method.gamma * mu, 1 - method.p / 2)
    for _ in range(5):
        x, w = star + rng.standard_normal((2, 3)) * rng.uniform(0.1, 3, (2, 1))
        state: Any = SimpleNamespace(x=x, w=w, full=problem.grad(w))
        after = []
        for batch in itertools.combinations(range(4), batch_size):
            for face, chance in ((True, method.p), (False, 1 - method.p)):
                new = method.step(problem, state, Draws(batch, face))
                after.append(chance * potential(new.x, new.w))
        mean = sum(after) / math.comb(4, batch_size)
        assert mean <= rate * potential(x, w) * (1 + 1e-9)


@SEEDS
@pytest.mark.parametrize("batch_size", [1, 2])
def test_saga_contracts(seed: int, batch_size: int) -> None:
    """With the step of the unified theory, 1/(6 Lmax) for one sample."""
    problem, rng = random_quadratic(4, 3, seed)
    step_size = LSVRG(batch_size=batch_size).theory(problem).gamma
    method = SAGA(step_size=step_size, batch_size=batch_size).theory(problem)
    star, mu = solution_of(problem), problem.constants.mu
    c = (4 - batch_size) / (batch_size * 3)

    def potential(x: Any, table: Any) -> float:
        spread = squared(np.asarray(table) - problem.sample_grads(star)) / 4
        return squared(x - star) + 4 * c * 4 / batch_size * step_size**2 * spread

    rate = max(1 - step_size * mu, 1 - batch_size / 8)
    for _ in range(5):
        x = star + rng.standard_normal(3) * rng.uniform(0.1, 3)
        rows = problem.sample_grads(star) + rng.standard_normal((4, 3)) * rng.uniform(0, 5)
        state: Any = SimpleNamespace(x=x, table=Table(rows), mean=rows.mean(axis=0))
        after = [
            method.step(problem, state, Draws(batch))
            for batch in itertools.combinations(range(4), batch_size)
        ]
        mean = np.mean([potential(new.x, new.table) for new in after])
        assert mean <= rate * potential(x, rows) * (1 + 1e-9)


@SEEDS
@pytest.mark.parametrize("method", [LSVRG(sampling="importance"), SAGA(sampling="importance")])
def test_importance_sampling_contracts(seed: int, method: Any) -> None:
    """The one-step inequalities of both docstrings, over all samples and coins."""
    A, y = np.random.default_rng(seed).standard_normal((2, 5, 3))
    A *= np.array([0.2, 0.5, 1, 2, 4])[:, None]
    problem = least_squares(A, y[:, 0], l2=0.1)
    method = method.theory(problem)
    is_saga = isinstance(method, SAGA)
    scores = smoothness_scores(problem, UNIFORM if is_saga else 0.0)
    p, gamma = scores / scores.sum(), method.gamma
    star = solution_of(problem)
    at_star = problem.sample_grads(star)
    weights = 4 / (5 * p**2) / 5 if is_saga else 4 / getattr(method, "p", 1) / (5 * p) / 5
    decay = p.min() / 2 if is_saga else getattr(method, "p", 1) / 2
    rate = max(1 - gamma * problem.constants.mu, 1 - decay)

    def potential(x: Any, rows: Any) -> float:
        spread = np.sum(np.square(rows - at_star), axis=1)
        return squared(x - star) + gamma**2 * float(weights @ spread)

    rng = np.random.default_rng(seed)
    for _ in range(5):
        x, w = star + rng.standard_normal((2, 3)) * rng.uniform(0.1, 3, (2, 1))
        rows = at_star + rng.standard_normal((5, 3)) * rng.uniform(0, 5)
        state: Any = SimpleNamespace(x=x, table=Table(rows), mean=rows.mean(axis=0))
        if not is_saga:
            rows = problem.sample_grads(w)
            state = SimpleNamespace(x=x, w=w, full=problem.grad(w))
        after = 0.0
        for j in range(5):
            for face, chance in ((True, getattr(method, "p", 1)), (False, 1)):
                new = method.step(problem, state, Draws((j,), face))
                if is_saga:
                    after += p[j] * potential(new.x, np.asarray(new.table)) / 2
                else:
                    chance = chance if face else 1 - getattr(method, "p", 1)
                    after += p[j] * chance * potential(new.x, problem.sample_grads(new.w))
        assert after <= rate * potential(x, rows) * (1 + 1e-9)


@SEEDS
def test_sega_contracts(seed: int) -> None:
    problem, rng = random_quadratic(3, 4, seed)
    method = SEGA().theory(problem)
    star, d = solution_of(problem), 4
    rate = max(1 - method.gamma * problem.constants.mu, 1 - 1 / (2 * d))
    weight = 4 * d * (d - 1) * method.gamma**2
    for _ in range(10):
        x = star + rng.standard_normal(d) * rng.uniform(0.1, 3)
        h = rng.standard_normal(d) * rng.uniform(0, 5)
        state: Any = SimpleNamespace(x=x, h=h)
        after = [method.step(problem, state, Draws((c,))) for c in range(d)]
        mean = np.mean([squared(new.x - star) + weight * squared(new.h) for new in after])
        assert mean <= rate * (squared(x - star) + weight * squared(h)) * (1 + 1e-9)


@SEEDS
@pytest.mark.parametrize("pl", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_page_descends(seed: int, pl: bool, batch_size: int) -> None:
    """The potential never grows; under the Polyak-Lojasiewicz inequality it contracts."""
    problem, rng = random_quadratic(4, 3, seed)
    method = PAGE(batch_size=batch_size, polyak_lojasiewicz=pl).theory(problem)
    c = problem.constants
    weight = method.gamma / (method.p * (1 if pl else 2))
    for _ in range(5):
        x = 2 * rng.standard_normal(3)
        gradient = problem.grad(x)
        g = gradient + rng.standard_normal(3) * rng.uniform(0, 3)
        state: Any = SimpleNamespace(x=x, g=g)
        before = problem.value(x) - c.f_star + weight * squared(g - gradient)
        exact = method.step(problem, state, Draws(face=True))
        errors = [
            squared(method.step(problem, state, Draws(batch)).g - exact.g)
            for batch in itertools.combinations(range(4), batch_size)
        ]
        after = problem.value(exact.x) - c.f_star
        after += weight * (1 - method.p) * float(np.mean(errors))
        bound = before - method.gamma / 2 * squared(gradient)
        assert after <= ((1 - method.gamma * c.mu) * before if pl else bound) + 1e-9 * abs(before)


@SEEDS
@pytest.mark.parametrize("coordinates", ["uniform", "importance"])
def test_rcd_contracts(seed: int, coordinates: Any) -> None:
    problem, rng = random_quadratic(3, 4, seed)
    method = RCD(coordinates=coordinates).theory(problem)
    L_c, c = problem.constants.L_coordinates, problem.constants
    chances = np.full(4, 1 / 4) if coordinates == "uniform" else L_c / L_c.sum()
    rate = 1 - c.mu / (4 * L_c.max() if coordinates == "uniform" else L_c.sum())
    uniform = RCD().theory(problem)
    for _ in range(10):
        x: Any = SimpleNamespace(x=3 * rng.standard_normal(4))
        after = [problem.value(uniform.step(problem, x, Draws((k,))).x) for k in range(4)]
        gap = problem.value(x.x) - c.f_star
        assert chances @ after - c.f_star <= rate * gap * (1 + 1e-9)
    assert problem.metrics(run(method, problem, 3000)[-1].x)[1] < 1e-18


@SEEDS
def test_svrg_contracts_over_an_epoch(seed: int) -> None:
    """E f(next) - f* of Theorem 1 for a short epoch, over all samples and picks."""
    problem, rng = random_quadratic(3, 2, seed)
    c, m = problem.constants, 3
    method = SVRG(m=m, restart="random").theory(problem)
    s, L = method.gamma, c.L_sample_max
    factor = 1 / (c.mu * s * (1 - 2 * L * s) * m) + 2 * L * s / (1 - 2 * L * s)
    w = 2 * rng.standard_normal(2)
    values = []
    for draws in itertools.product(range(3), repeat=m):
        state: Any = SimpleNamespace(x=w, w=w, full=problem.grad(w), picked=w)
        for t, j in enumerate(draws, start=1):
            values.append(problem.value(state.x))
            state = method.step(problem, state, Draws((j,), round=t))
    # The picked point is each of the m starts of a step with the same probability.
    assert np.mean(values) - c.f_star <= factor * (problem.value(w) - c.f_star) * (1 + 1e-9)


@SEEDS
def test_sarah_contracts_over_an_epoch(seed: int) -> None:
    problem, rng = random_quadratic(3, 2, seed)
    c, m = problem.constants, 4
    method = SARAH(m=m).theory(problem)
    s, L = method.gamma, c.L_sample_max
    factor = 1 / (c.mu * s * (m + 1)) + s * L / (2 - s * L)
    x = 2 * rng.standard_normal(2)
    norms = []
    for draws in itertools.product(range(3), repeat=m):
        state: Any = SimpleNamespace(x=x, v=problem.grad(x), picked=x)
        norms.append(squared(problem.grad(x)))
        for t, j in enumerate(draws, start=1):
            state = method.step(problem, state, Draws((j,), round=t))
            norms.append(squared(problem.grad(state.x)))
    assert np.mean(norms) <= factor * squared(problem.grad(x)) * (1 + 1e-9)


def test_the_picked_iterate_is_uniform() -> None:
    problem, _ = random_quadratic(3, 2, 0)
    method = SVRG(m=4, restart="random").theory(problem)
    counts = np.zeros(4)
    for seed in range(400):
        states = run(method, problem, 4, seed=seed)
        starts = [state.x.tobytes() for state in states[:4]]
        counts[starts.index(states[4].x.tobytes())] += 1
    assert np.all(np.abs(counts - 100) < 6 * math.sqrt(400 * 3 / 16))


@pytest.mark.parametrize(
    ("method", "rounds"),
    [
        (SVRG(), 8000),
        (SVRG(restart="random"), 8000),
        (LSVRG(), 4000),
        (LSVRG(batch_size=3), 2000),
        (SAGA(), 3000),
        (SAGA(batch_size=3), 3000),
        (SAG(), 8000),
        (SARAH(m=40), 4000),
        (SARAH(m=40, restart="random"), 6000),
        (PAGE(), 4000),
        (SpiderBoost(), 3000),
        (Katyusha(), 2500),
        (LKatyusha(), 2500),
        (LKatyusha(sampling="importance"), 2500),
        (MiG(), 2500),
        (MiG(batch_size=2, sampling="importance"), 2500),
        (SEGA(), 4000),
    ],
    ids=repr,
)
def test_linear_convergence_to_the_solution(method: Optimizer[Any], rounds: int) -> None:
    """Workers, and samples, differ; a method without variance reduction would stop at a floor."""
    problem = synthetic_quadratic(6, 5, L=1.0, mu=0.2, seed=3)
    assert problem.metrics(run(method, problem, rounds)[-1].x)[1] < 1e-22


def test_tables() -> None:
    rows = np.arange(33.0).reshape(11, 3)
    table = Table(rows)
    idx = np.array([10, 0, 4])
    np.testing.assert_array_equal(table[idx], rows[idx])
    new = table.replaced(idx, -rows[idx])
    expected = rows.copy()
    expected[idx] *= -1
    np.testing.assert_array_equal(new, expected)
    np.testing.assert_array_equal(table, np.arange(33.0).reshape(11, 3))
    assert new.shape == (11, 3)
    assert new.dtype == np.float64


def test_saga_keeps_the_mean_of_its_table() -> None:
    problem, _ = random_quadratic(6, 3, 0)
    for method in (SAGA(batch_size=2), SAG()):
        state = run(method, problem, 200)[-1]
        np.testing.assert_allclose(state.mean, np.asarray(state.table).mean(axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("method", "calls", "gradients", "floats_up", "floats_down"),
    [
        (SVRG(m=4), 1 + 12 + 3, 6 + 24 + 18, 5 * (13 + 3), 5 * 12),
        (LSVRG(p=1e-12), 13, 6 + 24, 5 * 13, 5 * 12),
        (SAGA(batch_size=2), 13, 6 + 24, 5 * 13, 5 * 12),
        (SAG(), 13, 6 + 12, 5 * 13, 5 * 12),
        (SARAH(m=3), 1 + 9 + 3, 6 + 18 + 18, 5 * 13, 5 * 12),
        (PAGE(p=1e-12, batch_size=2), 13, 6 + 48, 5 * 13, 5 * 12),
        (SpiderBoost(q=4, batch_size=2), 13, 6 + 36 + 18, 5 * 13, 5 * 12),
        (Katyusha(m=4), 16, 6 + 24 + 18, 5 * 16, 5 * (12 + 3)),
        (LKatyusha(p=1e-12), 13, 6 + 24, 5 * 13, 5 * 12),
        (MiG(m=4), 16, 6 + 24 + 18, 5 * 16, 5 * (12 + 3)),
        (RCD(), 12, 12 * 6 / 5, 12, 5 * 12),
        (SEGA(), 12, 12 * 6 / 5, 12, 5 * 12),
    ],
    ids=repr,
)
def test_costs_of_twelve_steps(
    method: Optimizer[Any], calls: int, gradients: float, floats_up: int, floats_down: int
) -> None:
    """A snapshot is broadcast if it is no point of a round: SVRG's next round is at its.

    The start is known to all, so that the broadcast of round k is that of x_k.
    """
    problem = synthetic_quadratic(6, 5)
    run(method, problem, 12)
    assert problem.counters.oracle_calls == calls
    assert problem.counters.sample_grads == pytest.approx(gradients)
    assert problem.counters.bits_up == 64 * floats_up
    assert problem.counters.bits_down == 64 * floats_down
