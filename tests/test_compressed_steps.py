"""Compressed methods, one step from a random state: expectations by enumerating all draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Draws, Mask, masks, random_quadratic, run, solution_of, squared

from buropt.compressors import TopK
from buropt.optim import DASHA, EF21, EF21BC, EF21HB, EF21PP, EF21SGDM, EF21W, PPMarina, VRDiana
from buropt.optim.contractive import theta_beta
from buropt.problems import Problem, least_squares

SEEDS = pytest.mark.parametrize("seed", range(4))


def dasha_steps(
    method: DASHA, problem: Problem, rng: np.random.Generator, potential: Callable[[Any], float]
) -> Iterator[tuple[Any, float]]:
    """Random states, each with the mean potential after a step, over all masks."""
    for _ in range(4):
        x = 2 * rng.standard_normal(3)
        h_i = problem.worker_grads(x)
        g_i = h_i + rng.standard_normal((3, 3)) * rng.uniform(0, 3)
        state: Any = SimpleNamespace(x=x, g=g_i.mean(axis=0), g_i=g_i, h_i=h_i)
        new = [m.step(problem, state, Draws()) for m in masks(method, problem)]
        yield state, float(np.mean([potential(s) for s in new]))


@SEEDS
@pytest.mark.parametrize("a", [None, 0.05, 0.25])
def test_dasha_contracts(seed: int, a: float | None) -> None:
    """Under the Polyak-Lojasiewicz inequality, in expectation over all masks."""
    problem, rng = random_quadratic(3, 3, seed)
    method = DASHA(a=a, compressor=Mask(), polyak_lojasiewicz=True).theory(problem)
    omega, n, c = 2.0, 3, problem.constants
    a = method.a or 0.0
    c1 = 2 / (a * (3 - 2 * a))
    c2 = 2 * omega * a * c1 / (n * (1.5 - a * (2 * omega + 1)))
    if a == pytest.approx(1 / 5):
        assert c1 == pytest.approx(2 * (2 * omega + 1) ** 2 / (6 * omega + 1))
        assert c2 == pytest.approx(4 * omega * c1 / ((2 * omega + 1) * n))

    def potential(s: Any) -> float:
        error = s.g_i - s.h_i
        spread = c1 * squared(error.mean(axis=0)) + c2 * squared(error) / n
        return problem.value(s.x) - c.f_star + method.gamma / 2 * spread

    for state, after in dasha_steps(method, problem, rng, potential):
        bound = (1 - method.gamma * c.mu) * potential(state)
        assert after <= bound * (1 + 1e-9)


@SEEDS
@pytest.mark.parametrize("a", [1 / 5, 0.05, 0.35])
def test_dasha_descends(seed: int, a: float) -> None:
    """With the longer step, f plus errors decreases by step/2 |grad f|^2."""
    problem, rng = random_quadratic(3, 3, seed)
    method = DASHA(a=a, compressor=Mask()).theory(problem)
    omega, n = 2.0, 3
    assert DASHA(compressor=Mask()).theory(problem).a == pytest.approx(1 / 5)
    c1 = 1 / (a * (2 - a))
    c2 = 2 * omega * a * c1 / (n * (2 - a * (2 * omega + 1)))

    def potential(s: Any) -> float:
        error = s.g_i - s.h_i
        spread = c1 * squared(error.mean(axis=0)) + c2 * squared(error) / n
        return problem.value(s.x) + method.gamma / 2 * spread

    for state, after in dasha_steps(method, problem, rng, potential):
        before = potential(state)
        decrease = method.gamma / 2 * squared(problem.grad(state.x))
        assert after <= before - decrease + 1e-9 * abs(before)


@SEEDS
def test_pp_marina_descends(seed: int) -> None:
    problem, rng = random_quadratic(3, 3, seed)
    method = PPMarina(clients=2, compressor=Mask()).theory(problem)
    weight = method.gamma / (2 * method.p)
    for _ in range(3):
        x = 2 * rng.standard_normal(3)
        gradient = problem.grad(x)
        g = gradient + rng.standard_normal(3) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g)
        before = problem.value(x) + weight * squared(g - gradient)
        dense = method.step(problem, state, Draws(face=True))
        errors = []
        for m in masks(method, problem):
            for left_out in range(3):  # a subset of 2 is drawn by its complement
                new = m.step(problem, state, Draws((left_out,)))
                errors.append(squared(new.g - dense.g))
        after = problem.value(dense.x) + weight * (1 - method.p) * float(np.mean(errors))
        bound = before - method.gamma / 2 * squared(gradient)
        assert after <= bound + 1e-9 * abs(before)


@SEEDS
@pytest.mark.parametrize("p", [0.3, 0.8])
def test_ef21_pp_descends(seed: int, p: float) -> None:
    """Over all sets of participants; Top1 draws nothing."""
    problem, rng = random_quadratic(3, 3, seed)
    method = EF21PP(p=p, compressor=TopK(1)).theory(problem)
    theta, _ = theta_beta(1 / 3)
    weight = method.gamma / (p * theta)
    low, high = 0, 2**53 - 1  # draws of a participant and of another
    for _ in range(5):
        x = 2 * rng.standard_normal(3)
        grads = problem.worker_grads(x)
        g_i = grads + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g_i.mean(axis=0), g_i=g_i)
        before = problem.value(x) + weight * squared(g_i - grads) / 3
        after = 0.0
        for chosen in itertools.product((True, False), repeat=3):
            chance = math.prod(p if here else 1 - p for here in chosen)
            new = method.step(problem, state, Draws(tuple(low if c else high for c in chosen)))
            error = squared(new.g_i - problem.worker_grads(new.x)) / 3
            after += chance * (problem.value(new.x) + weight * error)
        bound = before - method.gamma / 2 * squared(grads.mean(axis=0))
        assert after <= bound + 1e-9 * abs(before)


@SEEDS
def test_ef21_bc_descends(seed: int) -> None:
    problem, rng = random_quadratic(3, 3, seed)
    method = EF21BC(compressor=TopK(1), server_compressor=TopK(1)).theory(problem)
    theta, beta = theta_beta(1 / 3)
    k = (1 + math.sqrt(2 / 3)) ** 2
    a = 2 / theta
    b = (2 + 2 * k * a * beta) / theta

    def potential(x: Any, g: Any, g_i: Any) -> float:
        errors = a * squared(g - g_i.mean(axis=0))
        errors += b * squared(g_i - problem.worker_grads(x)) / 3
        return problem.value(x) + method.gamma / 2 * errors

    for _ in range(10):
        x = 2 * rng.standard_normal(3)
        g_i = problem.worker_grads(x) + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        g = g_i.mean(axis=0) + rng.standard_normal(3) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g, g_i=g_i)
        new = method.step(problem, state, Draws())
        before = potential(x, g, g_i)
        bound = before - method.gamma / 2 * squared(problem.grad(x))
        assert potential(new.x, new.g, new.g_i) <= bound + 1e-9 * abs(before)


@SEEDS
@pytest.mark.parametrize("eta", [0.1, 0.5, 1.0])
def test_ef21_sgdm_descends_with_full_gradients(seed: int, eta: float) -> None:
    problem, rng = random_quadratic(3, 3, seed)
    method = EF21SGDM(eta=eta, batch_size=None, compressor=TopK(1)).theory(problem)
    theta, beta = theta_beta(1 / 3)
    a, b = 2 / theta, (2 + 4 * eta**2 * beta / theta) / eta

    def potential(x: Any, g_i: Any, v_i: Any) -> float:
        errors = a * squared(g_i - v_i) + b * squared(v_i - problem.worker_grads(x))
        return problem.value(x) + method.gamma / 2 * errors / 3

    for _ in range(10):
        x = 2 * rng.standard_normal(3)
        v_i = problem.worker_grads(x) + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        g_i = v_i + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g_i.mean(axis=0), g_i=g_i, v_i=v_i)
        new = method.step(problem, state, Draws())
        before = potential(x, g_i, v_i)
        bound = before - method.gamma / 2 * squared(problem.grad(x))
        assert potential(new.x, new.g_i, new.v_i) <= bound + 1e-9 * abs(before)


@SEEDS
def test_ef21_hb_keeps_its_promise(seed: int) -> None:
    """mean |grad f(z_t)|^2 <= 2 (f(x0) - f*)/(s T) + 2 G0/(theta T), s = step/(1 - momentum)."""
    problem, _ = random_quadratic(3, 3, seed)
    method = EF21HB(momentum=0.8, compressor=TopK(1)).theory(problem)
    states = run(method, problem, 200)
    s = method.gamma / 0.2
    z = [state.x - method.gamma * 0.8 / 0.2 * state.v for state in states]
    theta, _ = theta_beta(1 / 3)
    G0 = squared(states[0].g_i - problem.worker_grads(problem.x0)) / 3
    gap = problem.value(problem.x0) - problem.constants.f_star
    for T in (1, 5, 50, 200):
        mean = np.mean([squared(problem.grad(point)) for point in z[:T]])
        assert mean <= (2 * gap / s + 2 * G0 / theta) / T * (1 + 1e-9)


@SEEDS
def test_ef21_w_descends(seed: int) -> None:
    """With weights in the error; the step has mean L_i where EF21 has the root mean square."""
    problem, rng = random_quadratic(3, 3, seed)
    method = EF21W(compressor=TopK(1)).theory(problem)
    assert method.gamma >= EF21(compressor=TopK(1)).theory(problem).gamma
    theta, _ = theta_beta(1 / 3)
    w = (problem.constants.L_i / problem.constants.L_i.sum())[:, None]
    weight = method.gamma / (2 * theta)
    for _ in range(10):
        x = 2 * rng.standard_normal(3)
        v = problem.worker_grads(x) / (3 * w)
        g_i = v + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=(w * g_i).sum(axis=0), g_i=g_i)
        new = method.step(problem, state, Draws())
        before = problem.value(x) + weight * squared(np.sqrt(w) * (g_i - v))
        error = np.sqrt(w) * (new.g_i - problem.worker_grads(new.x) / (3 * w))
        bound = before - method.gamma / 2 * squared(problem.grad(x))
        assert problem.value(new.x) + weight * squared(error) <= bound + 1e-9 * abs(before)


@SEEDS
@pytest.mark.parametrize(("p", "l2"), [(None, 0.3), (0.01, 30.0)])
def test_vr_diana_contracts(seed: int, p: float | None, l2: float) -> None:
    """|x - x*|^2 and weighted errors of shifts and snapshots, over all samples, masks and coins."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((4, 2)), rng.standard_normal(4)
    problem = least_squares(A, y, l2=l2, split=2)
    method = VRDiana(p=p, compressor=Mask((0, 0))).theory(problem)
    m, n, omega, alpha, gamma = 2, 2, 1.0, method.alpha, method.gamma
    star = solution_of(problem)
    optimal = problem.worker_grads(star)
    samples = problem.sample_grads(star)
    M = 4 * (omega + 1) / (n * alpha)

    def potential(x: Any, h: Any, w: Any) -> float:
        shifts = squared(h - optimal) / n
        snapshots = squared(problem.sample_grads(w) - samples) / (n * m)
        return squared(x - star) + M * gamma**2 * (shifts + snapshots)

    rate = max(1 - gamma * problem.constants.mu, 1 - alpha / 2)
    for known in (1, 1, 0):  # in the last state x and h are the best, and only w is to be learned
        x, w = star + rng.standard_normal((2, 2)) * rng.uniform(0.1, 2, (2, 1)) * [[known], [1]]
        h = optimal + known * rng.standard_normal((2, 2)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, h=h, w=w, full=problem.worker_grads(w))
        after = []
        for draws in itertools.product((0, 2**30), repeat=2):
            for variant in masks(method, problem):
                for face, chance in ((True, method.p), (False, 1 - method.p)):
                    new = variant.step(problem, state, Draws(draws, face))
                    after.append(chance * potential(new.x, new.h, new.w))
        assert sum(after) / (4 * 4) <= rate * potential(x, h, w) * (1 + 1e-9)
