"""The 3PC family, COFIG and FRECON: inequalities by enumeration, reductions, floors, costs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Draws, Mask, costs, masks, random_quadratic, run, squared

from buropt.compressors import Identity, RandK, TopK
from buropt.optim import (
    CLAG,
    COFIG,
    EF21,
    FRECON,
    GD,
    LAG,
    Diana,
    FixedStep,
    ThreePCv1,
    ThreePCv2,
    ThreePCv3,
    ThreePCv4,
    ThreePCv5,
)
from buropt.problems import Problem, nonconvex_logistic, synthetic_quadratic
from buropt.random import Key

TOP: dict[str, Any] = {"compressor": TopK(1)}
FAMILY: list[Any] = [
    LAG(zeta=0.5),
    LAG(zeta=4.0),
    CLAG(zeta=1.0, **TOP),
    CLAG(zeta=10.0, **TOP),
    ThreePCv1(**TOP),
    ThreePCv3(zeta=2.0, **TOP),
    ThreePCv4(**TOP, second_compressor=TopK(2)),
]


def problem() -> Problem:
    return random_quadratic(3, 3, 0)[0]


@pytest.mark.parametrize("method", FAMILY, ids=repr)
def test_inequality_of_deterministic_members(method: Any) -> None:
    """|C(h, y, z) - z|^2 <= (1 - A) |h - y|^2 + B |z - y|^2 for each worker's vectors."""
    rng, p = np.random.default_rng(0), problem()
    A, B = method.constants(3)
    for _ in range(200):
        h, y, z = (rng.standard_normal((3, 3)) * rng.uniform(0, 3, (3, 1)) for _ in range(3))
        error = ((method.send(p, h, y, z, Draws()) - z) ** 2).sum(axis=1)
        bound = (1 - A) * ((h - y) ** 2).sum(axis=1) + B * ((z - y) ** 2).sum(axis=1)
        assert np.all(error <= bound * (1 + 1e-12))


def test_inequality_of_v2() -> None:
    """In the mean over all masks of the unbiased message."""
    rng, p = np.random.default_rng(0), problem()
    method = ThreePCv2(**TOP, unbiased_compressor=Mask())
    A, B = method.constants(3)
    for _ in range(20):
        h, y, z = (rng.standard_normal((3, 3)) * rng.uniform(0, 3, (3, 1)) for _ in range(3))
        errors = [
            (replace(method, unbiased_compressor=Mask((c, c, c))).send(p, h, y, z, Draws()) - z)
            ** 2
            for c in range(3)
        ]
        error = np.mean(errors, axis=0).sum(axis=1)
        bound = (1 - A) * ((h - y) ** 2).sum(axis=1) + B * ((z - y) ** 2).sum(axis=1)
        assert np.all(error <= bound * (1 + 1e-12))


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_inequality_of_v5(p: float) -> None:
    rng, method = np.random.default_rng(0), ThreePCv5(p=p, **TOP)
    A, B = method.constants(3)
    for _ in range(100):
        h, y, z = (rng.standard_normal((3, 3)) * rng.uniform(0, 3, (3, 1)) for _ in range(3))
        sent = method.send(problem(), h, y, z, Draws(face=False)) if p < 1 else z
        error = (1 - p) * ((sent - z) ** 2).sum(axis=1)
        bound = (1 - A) * ((h - y) ** 2).sum(axis=1) + B * ((z - y) ** 2).sum(axis=1)
        assert np.all(error <= bound * (1 + 1e-12))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("member", FAMILY, ids=repr)
def test_deterministic_members_descend(member: Any, seed: int) -> None:
    """f + step/(2A) mean_i |g_i - grad f_i|^2, from states that the method reaches or not."""
    p, rng = random_quadratic(3, 3, seed)
    method = member.theory(p)
    A, _ = method.constants(3)
    weight = method.gamma / (2 * A)
    for _ in range(10):
        x = 2 * rng.standard_normal(3)
        grads = p.worker_grads(x)
        g_i = grads + rng.standard_normal((3, 3)) * rng.uniform(0, 2)
        state: Any = SimpleNamespace(x=x, g=g_i.mean(axis=0), g_i=g_i, grads=grads)
        new = method.step(p, state, Draws())
        before = p.value(x) + weight * squared(g_i - grads) / 3
        after = p.value(new.x) + weight * squared(new.g_i - new.grads) / 3
        assert after <= before - method.gamma / 2 * squared(p.grad(x)) + 1e-9 * abs(before)


STEP: dict[str, Any] = {"step_size": 0.05}


@pytest.mark.parametrize(
    ("special", "general"),
    [
        (LAG(zeta=0, **STEP), GD(**STEP)),
        (CLAG(zeta=0, **STEP, **TOP), EF21(dense_start=True, **STEP, **TOP)),
        (CLAG(zeta=2.0, compressor=Identity(), **STEP), LAG(zeta=2.0, **STEP)),
        (ThreePCv5(p=1, **STEP, **TOP), GD(**STEP)),
        (
            ThreePCv4(compressor=Identity(), second_compressor=TopK(1), **STEP),
            EF21(dense_start=True, compressor=Identity(), **STEP),
        ),
        (ThreePCv3(zeta=0, **STEP, **TOP), GD(**STEP)),
        (FRECON(lam=1e-12, compressor=Identity(), **STEP), GD(**STEP)),
    ],
    ids=lambda method: repr(method),
)
def test_reductions(special: FixedStep[Any], general: FixedStep[Any]) -> None:
    p = problem()
    for a, b in zip(run(special, p, 25), run(general, p, 25), strict=True):
        np.testing.assert_allclose(a.x, b.x, rtol=1e-9, atol=1e-10)


def test_cofig_with_everybody_is_diana() -> None:
    """Diana asks for the estimate at x in the round that leads to x, COFIG in the next."""
    p = problem()
    settings: Any = {"step_size": 0.05, "alpha": 0.4, "compressor": RandK(2)}
    diana = Diana(**settings).theory(p)
    state = diana.init(p, p.x0, Key(0, 1))
    for k, expected in enumerate(run(COFIG(**settings), p, 25)):
        np.testing.assert_allclose(expected.x, state.x, rtol=1e-10, atol=1e-11)
        state = diana.step(p, state, Key(0, k + 2))


def test_lazy_workers_say_nothing() -> None:
    p = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    run(LAG(zeta=10.0), p, 200)
    lazy = p.counters.bits_up
    assert 201 + 4 * 64 < lazy < 0.7 * (200 + 201 * 4 * 64)


def test_the_estimate_of_frecon_has_no_bias() -> None:
    """E g+ - grad f(x+) = (1 - lam)(g - grad f(x)), over all masks and all pairs of workers."""
    p, rng = random_quadratic(3, 2, 1)
    method = FRECON(clients=2, compressor=Mask()).theory(p)
    x, g, h = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal((3, 2))
    state: Any = SimpleNamespace(x=x, g=g, h=h)
    new = [
        variant.step(p, state, Draws((left_out,)))
        for variant in masks(method, p)
        for left_out in range(3)
    ]
    mean = np.mean([s.g for s in new], axis=0)
    expected = p.grad(new[0].x) + (1 - method.lam) * (g - p.grad(x))
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "rounds"),
    [
        (LAG(), 1000),
        (CLAG(compressor=TopK(2)), 3000),
        (ThreePCv1(compressor=TopK(2)), 1500),
        (ThreePCv2(compressor=TopK(2), unbiased_compressor=RandK(2)), 2000),
        (ThreePCv3(compressor=TopK(2)), 1500),
        (ThreePCv4(compressor=TopK(1), second_compressor=TopK(2)), 1500),
        (ThreePCv5(compressor=TopK(2)), 4000),
        (COFIG(clients=2, compressor=RandK(2)), 4000),
        (FRECON(clients=2, compressor=RandK(2)), 8000),
    ],
    ids=repr,
)
def test_linear_convergence_to_the_solution(method: Any, rounds: int) -> None:
    p = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    assert p.metrics(run(method, p, rounds)[-1].x)[1] < 1e-18


def test_steps_of_cofig() -> None:
    """Its two rules, with n = 4, omega = 1, |S| = 2."""
    p = synthetic_quadratic(4, 4)
    L = p.constants.L_max
    method = COFIG(clients=2, compressor=RandK(2))
    assert 1 / method.theory(p).gamma == pytest.approx(L * max(2 + 8 * 2 / 2, 2 * 2 / 2))
    rng = np.random.default_rng(0)
    nonconvex = nonconvex_logistic(rng.standard_normal((8, 4)), np.tile([1.0, -1.0], 4), split=4)
    L = nonconvex.constants.L_max
    slow = max(2, 5 * 2 * 4 ** (2 / 3) / 2, 5 * 2**1.5 * 2 / 2)
    assert 1 / method.theory(nonconvex).gamma == pytest.approx(L * slow)


VECTOR, TWO = 5 * 64, 2 * (64 + 3)


@pytest.mark.parametrize(
    ("method", "gradients", "up", "down"),
    [
        (LAG(zeta=0), 13 * 4, 12 + 13 * VECTOR, 12 * VECTOR),
        (CLAG(zeta=0, compressor=TopK(2)), 13 * 4, 12 + VECTOR + 12 * TWO, 12 * VECTOR),
        (ThreePCv1(compressor=TopK(2)), 13 * 4, 13 * VECTOR + 12 * TWO, 12 * VECTOR),
        (
            ThreePCv2(compressor=TopK(2), unbiased_compressor=RandK(2)),
            13 * 4,
            VECTOR + 24 * TWO,
            12 * VECTOR,
        ),
        (ThreePCv5(p=1e-12, compressor=TopK(2)), 13 * 4, VECTOR + 12 * TWO, 12 * VECTOR),
        (COFIG(clients=2, compressor=RandK(2)), 12 * 2, 6 * TWO, 12 * VECTOR),
        (FRECON(clients=2, compressor=RandK(2)), 4 + 12 * 4, VECTOR + 12 * TWO, 24 * VECTOR),
    ],
    ids=lambda item: type(item).__name__,
)
def test_costs_of_twelve_rounds(method: Any, gradients: int, up: float, down: float) -> None:
    assert costs(method, rounds=12) == (gradients, pytest.approx(up), down)


def test_wrong_settings() -> None:
    for make in (lambda: LAG(zeta=-1.0), lambda: CLAG(zeta=-1.0), lambda: ThreePCv3(zeta=-1.0)):
        with pytest.raises(ValueError, match=r"zeta must be a positive number"):
            make()
    with pytest.raises(ValueError, match="ThreePCv2 needs an unbiased"):
        ThreePCv2(unbiased_compressor=TopK(1))
