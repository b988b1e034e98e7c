"""Draws of samples: subsets, probabilities, orders, and the second moments that step sizes need."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from methods import random_quadratic, run, solution_of, squared

from buropt.optim import SGD
from buropt.optim.sampling import (
    draw,
    expected_smoothness,
    moment_weights,
    proportional,
    reshuffled,
    subset,
)
from buropt.problems import synthetic_quadratic
from buropt.random import Key


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 5])
def test_second_moment_of_a_batch(batch_size: int, replacement: bool) -> None:
    """The identity behind SGD's step size, over all batches of 5 vectors."""
    u = np.random.default_rng(0).standard_normal((5, 3))
    batches = (
        itertools.product(range(5), repeat=batch_size)
        if replacement
        else itertools.combinations(range(5), batch_size)
    )
    moment = np.mean([squared(u[list(batch)].mean(axis=0)) for batch in batches])
    full, sample = moment_weights(5, batch_size, replacement)
    expected = full * squared(u.mean(axis=0)) + sample * squared(u) / 5
    assert moment == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("sampling", ["nice", "independent", "importance"])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_expected_smoothness(sampling: Any, batch_size: int, seed: int) -> None:
    """E|g(x) - g(x*)|^2 <= 2 Ls (f(x) - f*), and E g = grad f, over all batches."""
    problem, rng = random_quadratic(4, 3, seed)
    star = solution_of(problem)
    L_j = problem.constants.L_samples
    p = L_j / L_j.sum() if sampling == "importance" else np.full(4, 1 / 4)
    if sampling == "nice":
        batches = [(b, 1.0) for b in itertools.combinations(range(4), batch_size)]
    else:
        batches = [
            (b, math.prod(p[list(b)])) for b in itertools.product(range(4), repeat=batch_size)
        ]
    total = sum(chance for _, chance in batches)
    Ls = expected_smoothness(problem, sampling, batch_size)
    for _ in range(10):
        x = star + rng.standard_normal(3)
        mean, moment = np.zeros(3), 0.0
        for batch, chance in batches:
            idx = np.array(batch)
            weights = 1 / (4 * p[idx]) if sampling == "importance" else None
            g = problem.sample_grad(x, idx, weights)
            mean += chance / total * g
            moment += chance / total * squared(g - problem.sample_grad(star, idx, weights))
        np.testing.assert_allclose(mean, problem.grad(x), rtol=1e-10, atol=1e-10)
        gap = problem.value(x) - problem.constants.f_star
        assert moment <= 2 * Ls * gap * (1 + 1e-9)


def test_weights_of_importance_sampling() -> None:
    problem, _ = random_quadratic(4, 3, 0)
    batch = draw(problem, "importance", 50, Key(0, 1))
    L_j = problem.constants.L_samples
    np.testing.assert_allclose(batch.weights, L_j.mean() / L_j[batch.idx])


@pytest.mark.parametrize(("n", "size"), [(5, 2), (5, 4), (4, 4), (1, 1), (300, 150)])
def test_subsets(n: int, size: int) -> None:
    for number in range(50):
        batch = subset(Key(3, number), n, size)
        assert len(batch) == len(set(batch.tolist())) == size
        assert 0 <= batch.min() <= batch.max() < n
        np.testing.assert_array_equal(batch, subset(Key(3, number), n, size))


def evenly(counts: Counter[Any], draws: int, probabilities: dict[Any, float]) -> None:
    """Within six standard deviations of binomial counts; the draws are fixed by the seed."""
    assert set(counts) == set(probabilities)
    for outcome, p in probabilities.items():
        assert abs(counts[outcome] - draws * p) < 6 * math.sqrt(draws * p * (1 - p))


@pytest.mark.parametrize("size", [2, 3])
def test_every_subset_is_equally_likely(size: int) -> None:
    draws = 4000
    counts = Counter(frozenset(subset(Key(0, k), 5, size).tolist()) for k in range(draws))
    evenly(counts, draws, {frozenset(s): 0.1 for s in itertools.combinations(range(5), size)})


def test_proportional_draws() -> None:
    weights = np.array([1.0, 0.0, 3.0, 4.0])
    counts = Counter(proportional(Key(0, 1), weights, 4000).tolist())
    evenly(counts, 4000, {0: 1 / 8, 2: 3 / 8, 3: 1 / 2})


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7])
def test_reshuffling_visits_everyone_once_an_epoch(batch_size: int) -> None:
    per_epoch = -(-7 // batch_size)
    orders = []
    for epoch in range(3):
        rounds = range(epoch * per_epoch + 1, (epoch + 1) * per_epoch + 1)
        order = np.concatenate([reshuffled(Key(5, k), 7, batch_size) for k in rounds])
        assert sorted(order.tolist()) == list(range(7))
        orders.append(tuple(order.tolist()))
    assert len(set(orders)) == 3


def test_all_orders_are_equally_likely() -> None:
    draws = 3000
    orders = Counter(tuple(reshuffled(Key(k, 1), 3, 3).tolist()) for k in range(draws))
    evenly(orders, draws, dict.fromkeys(itertools.permutations(range(3)), 1 / 6))


@pytest.mark.parametrize("sampling", ["nice", "independent", "importance", "reshuffled"])
def test_sgd_where_the_samples_agree(sampling: Any) -> None:
    """Interpolation: no noise at the solution, linear convergence with a constant step."""
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, gradient_heterogeneity=0.0, seed=3)
    x = run(SGD(sampling=sampling, batch_size=2), problem, 1200)[-1].x
    assert problem.metrics(x)[1] < 1e-24


def test_reshuffling_reaches_a_lower_floor_than_independent_draws() -> None:
    problem, _ = random_quadratic(6, 3, 1)
    star = solution_of(problem)

    def floor(sampling: Any) -> float:
        method = SGD(sampling=sampling, step_size=0.02 / problem.constants.L_sample_max)
        states = run(method, problem, 6000)[3000::6]
        return float(np.mean([squared(state.x - star) for state in states]))

    assert floor("reshuffled") < 0.2 * floor("independent")
