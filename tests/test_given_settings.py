"""Step sizes of the theorems where other hyperparameters are given, and what is refused then."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Draws, Mask, masks, parabolas, random_quadratic, squared

from buropt.compressors import Identity, Message, PermK, RandK
from buropt.optim import (
    COFIG,
    DASHA,
    DASHAMVR,
    DASHAPAGE,
    FRECON,
    ADiana,
    Diana,
    Scaffold,
    Spider,
    SpiderBoost,
    ThreePCv2,
    VRDiana,
    VRMarina,
)
from buropt.problems import least_squares, logistic, quadratic
from buropt.random import Key


@pytest.mark.parametrize("method", [SpiderBoost, Spider])
def test_spider_with_small_batches(method: type[SpiderBoost]) -> None:
    """step L~ + step^2 L~^2 q/b <= 1, what the drift of an epoch allows."""
    problem, _ = random_quadratic(9, 3, 0)
    L = problem.constants.L_sample_tilde
    assert method().theory(problem).gamma == pytest.approx(1 / (2 * L))
    assert method(q=9, batch_size=9).theory(problem).gamma == pytest.approx(1 / (2 * L))
    for q, b in ((9, 1), (100, 3)):
        s = method(q=q, batch_size=b).theory(problem).gamma
        assert 0.7 < s * L + (s * L) ** 2 * q / b <= 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("alpha", "lam"), [(None, None), (0.2, None), (None, 0.5), (0.1, 0.01)])
def test_frecon_descends(seed: int, alpha: float | None, lam: float | None) -> None:
    """f plus errors decreases by step/2 |grad f|^2, over all masks and pairs of participants.

    Both messages of a worker have the same mask: the proof does not need their independence.
    """
    problem, rng = random_quadratic(3, 2, seed)
    method = FRECON(clients=2, alpha=alpha, lam=lam, compressor=Mask()).theory(problem)
    lam, omega, r = method.lam or 0.0, 1.0, (method.alpha or 0.0) * 2 / 3
    A = 1 / (lam * (2 - lam))
    B = 4 * A * lam**2 * (1 + omega) / (r * 2)

    def potential(x: Any, g: Any, h: Any, at: Any) -> float:
        errors = A * squared(g - problem.grad(x))
        errors += B * squared(h - problem.worker_grads(at)) / 3
        return problem.value(x) + method.gamma / 2 * errors

    for _ in range(4):
        x = 2 * rng.standard_normal(2)
        g = problem.grad(x) + rng.standard_normal(2) * rng.uniform(0, 2)
        h = problem.worker_grads(x) + rng.standard_normal((3, 2)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g, h=h)
        new = [
            m.step(problem, state, Draws((left_out,)))
            for m in masks(method, problem)
            for left_out in range(3)
        ]
        mean = np.mean([potential(s.x, s.g, s.h, s.x) for s in new])
        before = potential(x, g, h, x)
        decrease = method.gamma / 2 * squared(problem.grad(x))
        assert mean <= before - decrease + 1e-9 * abs(before)


@dataclass(frozen=True)
class TwoMasks(Mask):
    """A mask for the first message of a round, and another for the second."""

    second: tuple[int, ...] = (0, 0)

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        return Mask(self.second if key.purpose else self.coordinates).compress(x, key)


@pytest.mark.parametrize(("n", "spread"), [(1, 100.0), (2, 1000.0)])
def test_second_moments_of_adiana_shrink_at_the_accelerated_rate(n: int, spread: float) -> None:
    """On quadratics a step is linear; T (x) T in the mean over all masks and coins has the rate.

    sqrt(step mu p)/4, and p/4, is what the complexity promises for each step.
    """
    d, rng = 2, np.random.default_rng(0)
    A = []
    for _ in range(n):
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        H = Q @ np.diag(spread ** -rng.uniform(0, 1, d)) @ Q.T
        A.append((H + H.T) / 2)
    problem = quadratic(np.array(A), np.zeros((n, d)))
    method = ADiana(compressor=TwoMasks()).theory(problem)
    State = type(method.init(problem, np.zeros(d), Key(0)))
    size = (3 + n) * d
    second, draws = np.zeros((size**2, size**2)), list(itertools.product(range(d), repeat=2 * n))
    p = method.p or 0.0
    for coordinates in draws:
        compressor = TwoMasks(coordinates[:n], coordinates[n:])
        for face, chance in ((1.0, p), (1e-300, 1 - p)):
            one = replace(method, p=face, compressor=compressor)
            T = np.empty((size, size))
            for k, e in enumerate(np.eye(size)):
                y, z, w, h = e[:d], e[d : 2 * d], e[2 * d : 3 * d], e[3 * d :].reshape(n, d)
                new = one.step(problem, State(y, z, w, h), Key(0, 1))
                T[:, k] = np.concatenate([new.y, new.z, new.w, new.h.ravel()])
            second += chance / len(draws) * np.kron(T, T)
    radius = np.abs(np.linalg.eigvals(second)).max()
    assert radius <= 1 - min(math.sqrt(method.gamma * problem.constants.mu * p), p) / 4


@pytest.mark.parametrize("seed", range(3))
def test_vr_marina_with_perm_k_descends(seed: int) -> None:
    """f + step/(2p) |g - grad f|^2 decreases by step/2 |grad f|^2, over all that is drawn."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((6, 4)), rng.standard_normal(6)
    problem = least_squares(A, y, l2=0.1, split=3)
    method = VRMarina(compressor=PermK(3)).theory(problem)
    parts = [c for c in itertools.product(range(3), repeat=4) if len(set(c)) == 3]
    p, weight = method.p or 0.0, method.gamma / (2 * (method.p or 1.0))
    for _ in range(2):
        x = 2 * rng.standard_normal(4)
        g = problem.grad(x) + rng.standard_normal(4) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g)
        dense = method.step(problem, state, Draws(face=True))
        errors = []
        for draws in itertools.product((0, 2**30), repeat=3):
            for part in parts:
                one = replace(method, compressor=Shares(part))
                errors.append(squared(one.step(problem, state, Draws(draws)).g - dense.g))
        before = problem.value(x) + weight * squared(g - problem.grad(x))
        after = problem.value(dense.x) + weight * (1 - p) * float(np.mean(errors))
        assert after <= before - method.gamma / 2 * squared(problem.grad(x)) + 1e-9 * abs(before)


@dataclass(frozen=True)
class Shares(Mask):
    """PermK whose parts are given: entry k is sent by worker coordinates[k]."""

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        sent = np.array(self.coordinates) == np.arange(len(x))[:, None]
        return Message(len(x) * x * sent, np.zeros(len(x), np.int64))


def test_perm_k_in_3pcv2() -> None:
    """Its constants are of single workers, whose draws need not be independent."""
    problem, _ = random_quadratic(3, 6, 0)
    steps = [
        ThreePCv2(compressor=RandK(2), unbiased_compressor=Q).theory(problem).gamma
        for Q in (PermK(3), RandK(2))
    ]
    assert steps[0] == pytest.approx(steps[1])


HALF = RandK(1)  # omega = 1 for two entries


@pytest.mark.parametrize("method", [Diana, ADiana, COFIG, FRECON, VRDiana])
def test_steps_of_shifts_beyond_the_theorem(method: type[Diana]) -> None:
    problem, _ = random_quadratic(2, 2, 0)
    if method in (Diana, FRECON, VRDiana):
        assert method(alpha=0.1, compressor=HALF).theory(problem).alpha == 0.1
    else:
        with pytest.raises(ValueError, match=r"alpha = 0.1 is not 0.5; leave it out, or give opt"):
            method(alpha=0.1, compressor=HALF).theory(problem)
    message = "no theorem for this problem: alpha = 0.9 is not 0.[35].*; leave it out, or give opt"
    with pytest.raises(ValueError, match=message):
        method(alpha=0.9, compressor=HALF).theory(problem)
    own = method(alpha=0.9, step_size=0.01, compressor=HALF).theory(problem)
    assert (own.alpha, own.gamma) == (0.9, 0.01)
    assert own.theory(problem) == own


@pytest.mark.parametrize("method", [DASHA, DASHAPAGE, DASHAMVR])
def test_a_beyond_the_theorem(method: type[DASHA]) -> None:
    problem, _ = random_quadratic(2, 2, 0)
    best, less = (method(a=a, compressor=HALF).theory(problem).gamma for a in (None, 0.1))
    assert less < best
    with pytest.raises(ValueError, match=r"a = 0.7 is not below 0.66.*; lower it, or give optim"):
        method(a=0.7, compressor=HALF).theory(problem)
    assert method(a=0.7, step_size=0.1, compressor=HALF).theory(problem).gamma == 0.1
    assert method(a=1, compressor=Identity()).theory(parabolas()).a == 1


@pytest.mark.parametrize("problem", [logistic, least_squares])
def test_nothing_but_zeros(problem: Any) -> None:
    """No step size is 1/0: a function without curvature is refused when it is made."""
    with pytest.raises(ValueError, match=r"L = 0, .* are all data zero\?"):
        problem(np.zeros((4, 2)), np.array([1.0, -1, 1, 1]))
    ridge = problem(np.zeros((4, 2)), np.array([1.0, -1, 1, 1]), l2=0.5)
    assert pytest.approx(0.5) == ridge.constants.L


def test_a_small_server_step_does_not_lengthen_local_steps() -> None:
    problem = least_squares(np.eye(3), np.ones(3), split=3)
    steps = [Scaffold(server_step=s).theory(problem).gamma for s in (1e-3, 1, 2)]
    assert steps[0] == steps[1] == pytest.approx(2 * steps[2])
