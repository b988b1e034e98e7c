"""Katyusha, L-Katyusha and MiG: their inequalities, and that acceleration pays."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Draws, random_quadratic, run, solution_of, squared

from buropt.optim import GD, LSVRG, Katyusha, LKatyusha, MiG
from buropt.optim.coupled import total_weight
from buropt.optim.sampling import smoothness_scores
from buropt.problems import Problem, least_squares, logistic, synthetic_quadratic
from buropt.prox import L1

SEEDS = pytest.mark.parametrize("seed", range(3))
SAMPLINGS = pytest.mark.parametrize("sampling", ["nice", "importance"])


def rows_of_different_lengths(seed: int) -> Problem:
    A, y = np.random.default_rng(seed).standard_normal((2, 5, 3))
    A *= np.array([0.2, 0.5, 1, 2, 4])[:, None]
    return least_squares(A, y[:, 0], l2=0.1)


def chances(problem: Problem, sampling: str, batch_size: int) -> dict[tuple[int, ...], float]:
    """All batches with their probabilities."""
    n = problem.n_samples
    if sampling == "nice":
        subsets = itertools.combinations(range(n), batch_size)
        return dict.fromkeys(subsets, 1 / math.comb(n, batch_size))
    scores = smoothness_scores(problem)
    p = scores / scores.sum()
    lists = itertools.product(range(n), repeat=batch_size)
    return {b: float(np.prod(p[list(b)])) for b in lists}


@SEEDS
@SAMPLINGS
def test_lkatyusha_contracts(seed: int, sampling: Any) -> None:
    """The paper's Lyapunov function, over all samples and both sides of the coin."""
    problem = rows_of_different_lengths(seed)
    method = LKatyusha(sampling=sampling, p=0.3).theory(problem)
    star, mu, s = solution_of(problem), problem.constants.mu, method.gamma
    p, theta1, theta2 = 0.3, method.theta1, 0.5
    rate = max(1 / (1 + s * mu), 1 - theta1 * (1 - theta2), 1 - p * theta1 / (1 + theta1))

    def gap(x: Any) -> float:
        return problem.metrics(x)[0] - problem.metrics(star)[0]

    def potential(y: Any, z: Any, w: Any) -> float:
        weight = theta2 * (1 + theta1) / (p * theta1)
        return (1 + s * mu) / (2 * s) * squared(z - star) + gap(y) / theta1 + weight * gap(w)

    rng = np.random.default_rng(seed)
    for _ in range(5):
        y, z, w = star + rng.standard_normal((3, 3)) * rng.uniform(0.1, 3, (3, 1))
        state: Any = SimpleNamespace(y=y, z=z, w=w, full=problem.grad(w))
        after = 0.0
        for batch, chance in chances(problem, sampling, 1).items():
            for face, side in ((True, p), (False, 1 - p)):
                new = method.step(problem, state, Draws(batch, face))
                after += chance * side * potential(new.y, new.z, new.w)
        assert after <= rate * potential(y, z, w) * (1 + 1e-9)


@SEEDS
@pytest.mark.parametrize("batch_size", [1, 2])
@SAMPLINGS
@pytest.mark.parametrize("psi", [None, L1(0.3)], ids=repr)
def test_mig_contracts(seed: int, batch_size: int, sampling: Any, psi: Any) -> None:
    """The one-step inequality of the docstring, over all samples; and its step where b = 1."""
    smooth = rows_of_different_lengths(seed)
    problem = smooth if psi is None else smooth.with_psi(psi)
    star = solution_of(problem) if psi is None else run(GD(), problem, 4000)[-1].x
    method = MiG(batch_size=batch_size, sampling=sampling, m=9).theory(problem)
    theta, s, mu = method.theta, method.gamma, problem.constants.mu
    if batch_size == 1 and sampling == "nice":
        assert s >= 1 / (3 * theta * problem.constants.L_sample_max)

    def gap(x: Any) -> float:
        return problem.metrics(x)[0] - problem.metrics(star)[0]

    rng = np.random.default_rng(seed)
    for _ in range(5):
        z, w = star + rng.standard_normal((2, 3)) * rng.uniform(0.1, 3, (2, 1))
        state: Any = SimpleNamespace(y=w, z=z, w=w, full=problem.grad(w), average=w)
        after = 0.0
        for batch, chance in chances(problem, sampling, batch_size).items():
            new = method.step(problem, state, Draws(batch))
            after += chance * (gap(new.y) + theta * (1 + s * mu) / (2 * s) * squared(new.z - star))
        assert after <= (1 - theta) * gap(w) + theta / (2 * s) * squared(z - star) + 1e-9


def test_an_epoch_of_mig_ends_in_the_weighted_mean() -> None:
    problem, _ = random_quadratic(4, 3, 0)
    method = MiG(m=6).theory(problem)
    states = run(method, problem, 6)
    growth = 1 + method.gamma * problem.constants.mu
    points = [method.theta * s.z + (1 - method.theta) * states[0].w for s in states[1:]]
    expected = np.average(points, axis=0, weights=growth ** np.arange(6))
    np.testing.assert_allclose(states[6].w, expected, rtol=1e-12)
    assert np.array_equal(states[6].x, states[6].w)


def test_acceleration_pays_when_ill_conditioned() -> None:
    problem = synthetic_quadratic(10, 5, L=1.0, mu=1e-4, seed=3)
    plain = problem.metrics(run(LSVRG(), problem, 4000)[-1].x)[1]
    for method in (Katyusha(), LKatyusha(), MiG()):
        assert problem.metrics(run(method, problem, 4000)[-1].x)[1] < plain / 100


@pytest.mark.parametrize("method", [Katyusha(), MiG()], ids=repr)
def test_acceleration_without_strong_convexity(method: Any) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 3))
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    problem = logistic(A, y)
    method = method.theory(problem)
    if isinstance(method, Katyusha):
        assert method.tau1 is None
        assert method.gamma == pytest.approx(2 / (3 * problem.constants.L_sample_max))
    else:
        assert method.theta is None
    assert problem.metrics(run(method, problem, 2000)[-1].x)[1] < 1e-10


@pytest.mark.parametrize("growth", [1.0, 1.0 + 1e-9, 1.3, 50.0])
def test_weights_of_katyusha(growth: float) -> None:
    for i in (0, 1, 7, 40):
        direct = sum(growth ** (k - i) for k in range(i + 1))
        assert total_weight(growth, i) == pytest.approx(direct, rel=1e-7)
    assert math.isfinite(total_weight(50.0, 100_000))
