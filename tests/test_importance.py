"""Importance sampling where the objective has a regularizer, whose gradient gets no weight."""

from __future__ import annotations

import numpy as np
import pytest
from methods import run, solution_of, squared

from buropt.optim import SAGA, SGD, SVRG
from buropt.optim.sampling import (
    expected_smoothness,
    largest_smoothness,
    smoothness_scores,
    solution_noise,
)
from buropt.problems import Problem, least_squares, logistic


def heavy_regularizer(seed: int = 0) -> Problem:
    """Five samples of very different size, one of them 0, and a regularizer as large as they."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((5, 2)) * np.array([0, 0.1, 0.5, 1, 2])[:, None]
    return least_squares(A, rng.standard_normal(5), l2=1.0)


@pytest.mark.parametrize("seed", range(6))
def test_expected_smoothness_with_a_regularizer(seed: int) -> None:
    """E|g(x) - g(x*)|^2 <= 2 Ls (f(x) - f*), over all samples; tight up to a half."""
    problem = heavy_regularizer(seed)
    p = smoothness_scores(problem)
    p /= p.sum()
    star, rng = solution_of(problem), np.random.default_rng(seed)
    Ls = expected_smoothness(problem, "importance", 1)
    worst = 0.0
    for _ in range(200):
        x = star + rng.standard_normal(2)
        moment = 0.0
        for j in range(5):
            idx, weight = np.array([j]), np.array([1 / (5 * p[j])])
            g, g_star = (problem.sample_grad(point, idx, weight) for point in (x, star))
            moment += p[j] * squared(g - g_star)
        worst = max(worst, moment / (2 * (problem.value(x) - problem.value(star))))
    assert 0.5 * Ls < worst <= Ls * (1 + 1e-9)


def test_a_plane_in_which_the_mean_of_the_smoothness_is_too_small() -> None:
    """f_1 = x^2/2 + r, f_2 = r, r = x^2/2: E|g|^2 = 19/8 x^2, and the mean of L_j gives 18/8."""
    problem = least_squares(np.array([[1.0], [0.0]]), np.zeros(2), l2=1.0)
    assert problem.constants.L_sample_mean == pytest.approx(1.5)
    assert expected_smoothness(problem, "importance", 1) == pytest.approx(1.75)
    assert largest_smoothness(problem, "importance") == pytest.approx(1.75)


def test_noise_at_the_solution_with_a_regularizer() -> None:
    problem = heavy_regularizer()
    star = problem.constants.x_star
    assert star is not None
    p = smoothness_scores(problem)
    p /= p.sum()
    grads = [problem.sample_grad(star, np.array([j]), np.array([0.2 / p[j]])) for j in range(5)]
    exact = float(p @ [squared(g) for g in grads])
    assert solution_noise(problem, "importance", 1) == pytest.approx(exact)
    assert solution_noise(problem, "importance", 3) == pytest.approx(exact / 3)


@pytest.mark.parametrize("method", [SGD, SVRG, SAGA])
def test_samples_of_nothing_are_not_drawn(method: type[SGD]) -> None:
    """A row of zeros has no smoothness, and no part in the step size."""
    A = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    problem = logistic(A, np.array([1.0, 1.0, -1.0]))
    states = run(method(sampling="importance"), problem, 20)
    assert problem.metrics(states[-1].x)[0] < problem.metrics(states[0].x)[0]
