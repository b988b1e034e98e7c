"""Constants of samples and coordinates, and of third derivatives: bounds at random points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from methods import random_quadratic

from buropt.problems import (
    Problem,
    least_squares,
    logistic,
    logistic_nonconvex_reg,
    nonconvex_logistic,
    synthetic_quadratic,
)


def samples() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return 2 * rng.standard_normal((9, 3)), np.where(rng.random(9) < 0.5, 1.0, -1.0)


CASES: dict[str, Any] = {
    "logistic": lambda: logistic(*samples(), l2=0.1, split=3),
    "least_squares": lambda: least_squares(*samples(), l2=0.1, split=3),
    "nonconvex_logistic": lambda: nonconvex_logistic(*samples(), split=3),
    "logistic_nonconvex_reg": lambda: logistic_nonconvex_reg(*samples(), lam=0.3, split=3),
    "quadratic": lambda: random_quadratic(4, 3, 0)[0],
    "rotated": lambda: synthetic_quadratic(4, 3, mu=0.2),
    "diagonal": lambda: synthetic_quadratic(4, 3, mu=0.2, basis="diagonal"),
}


def sample_hessians(problem: Problem, x: Any) -> Any:
    return np.stack([problem.oracle.hessian(x, [j]) for j in range(problem.n_samples)])


@pytest.mark.parametrize("name", CASES)
def test_bounds_at_random_points(name: str) -> None:
    problem = CASES[name]()
    c, rng = problem.constants, np.random.default_rng(0)
    assert c.L_samples.shape == (problem.n_samples,)
    assert c.L_coordinates.shape == (problem.dim,)
    assert c.L_sample_max == c.L_samples.max()
    assert c.L_sample_mean <= c.L_sample_tilde * (1 + 1e-12) <= c.L_sample_max * (1 + 1e-9)
    for _ in range(60):
        x = rng.standard_normal(3) * rng.uniform(0, 3)
        eigenvalues = np.linalg.eigvalsh(sample_hessians(problem, x))
        assert np.all(np.abs(eigenvalues).max(axis=1) <= c.L_samples * (1 + 1e-9))
        assert eigenvalues.min() >= c.mu_sample - 1e-9 or not c.convex
        workers = np.linalg.eigvalsh(problem.oracle.worker_hessians(x))
        assert workers.min() >= c.mu_worker - 1e-9 or not c.convex
        hessian = problem.oracle.hessian(x)
        assert np.all(np.abs(np.diag(hessian)) <= c.L_coordinates * (1 + 1e-9))
        values = [problem.oracle.value(x, [j]) for j in range(problem.n_samples)]
        assert min(values) >= c.sample_minimum - 1e-9
        y = x + rng.standard_normal(3) * rng.choice([1e-4, 0.1, 1.0])
        change = np.linalg.norm(problem.oracle.hessian(y) - hessian, 2)
        assert change <= c.L_hessian * np.linalg.norm(y - x) * (1 + 1e-6) + 1e-9


def test_bounds_are_reached() -> None:
    """By one sample in one dimension at the worst point, and by quadratics everywhere."""
    one = logistic(np.array([[2.0]]), np.array([1.0]))
    worst = np.array([np.log((1 + np.sqrt(1 / 3)) / (1 - np.sqrt(1 / 3))) / 2])
    h = 1e-6
    slope = abs(one.oracle.hessian(worst + h) - one.oracle.hessian(worst - h))[0, 0] / (2 * h)
    assert slope == pytest.approx(one.constants.L_hessian, rel=1e-6)
    problem, _ = random_quadratic(4, 3, 0)
    hessians = sample_hessians(problem, np.zeros(3))
    np.testing.assert_allclose(problem.constants.L_samples, np.linalg.norm(hessians, 2, (1, 2)))
    minima = [
        float(problem.oracle.value(np.linalg.solve(H, -problem.oracle.grad(np.zeros(3), [j])), [j]))
        for j, H in enumerate(hessians)
    ]
    assert problem.constants.sample_minimum == pytest.approx(min(minima))
