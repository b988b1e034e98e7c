"""Theorems behind the step sizes, one step at a time: expectations by enumerating all draws.

From a random state (not only one that a run visits) the expected Lyapunov value after a step must
be at most what the theorem says. This is sharper than a long run, and cheaper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Mask, masks, squared

from buropt.compressors import TopK
from buropt.optim import EF21, Diana, Marina
from buropt.problems import Problem, quadratic
from buropt.random import Key


@dataclass(frozen=True)
class Coin:
    """A key with a known coin."""

    face: bool

    def fold(self, purpose: int) -> Coin:
        return self

    def coin(self, p: float) -> bool:
        return self.face


@pytest.fixture(params=range(6))
def random_problem(request: pytest.FixtureRequest) -> tuple[Problem, np.random.Generator]:
    """Quadratics with unrelated Hessians, n = d = 3."""
    rng = np.random.default_rng(request.param)
    factors = rng.standard_normal((3, 3, 4)) * rng.uniform(0.3, 2, (3, 1, 1))
    A = np.einsum("ijk,ilk->ijl", factors, factors)
    return quadratic((A + A.transpose(0, 2, 1)) / 2, rng.standard_normal((3, 3))), rng


def test_marina_descends_as_theorem_2_1_says(random_problem: Any) -> None:
    """E[f(x+) + c |g+ - grad f(x+)|^2] <= the same before - step/2 |grad f(x)|^2, c = step/(2p)."""
    problem, rng = random_problem
    method = Marina(compressor=Mask((0, 0, 0))).theory(problem)
    weight = method.gamma / (2 * method.p)
    for _ in range(5):
        x, grads = 2 * rng.standard_normal(3), None
        grads = problem.worker_grads(x)
        gradient = grads.mean(axis=0)
        g = gradient + rng.standard_normal(3) * rng.uniform(0, 2)
        state = SimpleNamespace(x=x, g=g, grads=grads)
        before = problem.value(x) + weight * squared(g - gradient)
        dense = method.step(problem, state, Coin(True))
        after = problem.value(dense.x)
        errors = [
            squared(variant.step(problem, state, Coin(False)).g - problem.grad(dense.x))
            for variant in masks(method, problem)
        ]
        after += weight * (1 - method.p) * float(np.mean(errors))
        assert after <= before - method.gamma / 2 * squared(gradient) + 1e-9 * abs(before)


def test_marina_contracts_under_polyak_lojasiewicz(random_problem: Any) -> None:
    """f - f* + (step/p) |g - grad f|^2 by 1 - step mu."""
    problem, rng = random_problem
    method = Marina(compressor=Mask(), polyak_lojasiewicz=True).theory(problem)
    weight, f_star = method.gamma / method.p, problem.constants.f_star
    for _ in range(5):
        x = 2 * rng.standard_normal(3)
        grads = problem.worker_grads(x)
        g = grads.mean(axis=0) + rng.standard_normal(3) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g, grads=grads)
        dense = method.step(problem, state, Coin(True))
        errors = [
            squared(variant.step(problem, state, Coin(False)).g - dense.g)
            for variant in masks(method, problem)
        ]
        after = problem.value(dense.x) - f_star + weight * (1 - method.p) * float(np.mean(errors))
        before = problem.value(x) - f_star + weight * squared(g - grads.mean(axis=0))
        assert after <= (1 - method.gamma * problem.constants.mu) * before * (1 + 1e-9)


@pytest.mark.parametrize("reloaded", [False, True])
def test_ef21_contracts_under_polyak_lojasiewicz(random_problem: Any, reloaded: bool) -> None:
    """With L~, and with the mean of the L_i and errors weighted by mean L / L_i (2402.10774)."""
    problem, rng = random_problem
    method = EF21(compressor=TopK(1), polyak_lojasiewicz=True).theory(problem)
    c, theta = problem.constants, 1 - math.sqrt(2 / 3)
    weights = np.ones((3, 1))
    if reloaded:
        mean_L = float(c.L_i.mean())
        weights = mean_L / c.L_i[:, None]
        root = math.sqrt(2 * (2 / 3) / theta / theta)
        step_size = min(1 / (c.L + mean_L * root), theta / (2 * c.mu))
        assert step_size >= method.gamma
        method = EF21(compressor=TopK(1), step_size=step_size).theory(problem)

    def potential(x: Any, g_i: Any) -> float:
        errors = weights * (g_i - problem.worker_grads(x)) ** 2
        return problem.value(x) - c.f_star + method.gamma / theta * float(errors.sum()) / 3

    for _ in range(20):
        x = 2 * rng.standard_normal(3)
        g_i = problem.worker_grads(x) + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g_i.mean(axis=0), g_i=g_i)
        new = method.step(problem, state, Key(0, 1))
        bound = (1 - method.gamma * c.mu) * potential(x, g_i)
        assert potential(new.x, new.g_i) <= bound * (1 + 1e-9)


def test_ef21_descends_as_theorem_1_says(random_problem: Any) -> None:
    """The same with mean_i |g_i - grad f_i(x)|^2 and c = step / (2 theta); Top1 draws nothing."""
    problem, rng = random_problem
    method = EF21(compressor=TopK(1)).theory(problem)
    weight = method.gamma / (2 * (1 - math.sqrt(1 - 1 / 3)))
    for _ in range(20):
        x = 2 * rng.standard_normal(3)
        grads = problem.worker_grads(x)
        g_i = grads + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g_i.mean(axis=0), g_i=g_i)
        new = method.step(problem, state, Key(0, 1))
        before = problem.value(x) + weight * squared(g_i - grads) / 3
        after = problem.value(new.x) + weight * squared(new.g_i - problem.worker_grads(new.x)) / 3
        assert after <= before - method.gamma / 2 * squared(grads.mean(axis=0)) + 1e-9 * abs(before)


def test_diana_contracts(random_problem: Any) -> None:
    """|x - x*|^2 + M step^2 mean_i |h_i - grad f_i(x*)|^2 contracts in expectation."""
    problem, rng = random_problem
    method = Diana(compressor=Mask((0, 0, 0)), convexity="strong").theory(problem)
    hessian = np.array([problem.grad(e) - problem.grad(0 * e) for e in np.eye(3)])
    solution = np.linalg.solve(hessian, -problem.grad(np.zeros(3)))
    optimal = problem.worker_grads(solution)
    weight = 4 * 2 / (3 * method.alpha) * method.gamma**2
    rate = max(1 - method.gamma * problem.constants.mu, 1 - method.alpha / 2)
    for _ in range(5):
        x = solution + rng.standard_normal(3) * rng.uniform(0.1, 3)
        h = optimal + rng.standard_normal((3, 3)) * rng.uniform(0, 3)
        before = squared(x - solution) + weight * squared(h - optimal) / 3
        after = []
        for variant in masks(method, problem):
            # From g = 0 a step stays at x: it only forms the estimate and moves the shifts.
            still: Any = SimpleNamespace(x=x, g=np.zeros(3), h=h)
            state = variant.step(problem, still, Key(0, 1))
            moved = x - method.gamma * state.g
            after.append(squared(moved - solution) + weight * squared(state.h - optimal) / 3)
        assert np.mean(after) <= rate * before * (1 + 1e-9)
