"""Compressed methods: reductions, where they converge to and where they stop, costs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Draws, costs, random_quadratic, run, shared_hessian

from buropt.compressors import Compressor, Identity, Message, RandK, TopK
from buropt.optim import (
    DASHA,
    DASHAMVR,
    DASHAPAGE,
    EF14,
    EF21,
    EF21BC,
    EF21HB,
    EF21PAGE,
    EF21PP,
    EF21SGD,
    EF21SGDM,
    EF21W,
    GD,
    PAGE,
    ADiana,
    Diana,
    Marina,
    Optimizer,
    PPMarina,
    VRDiana,
    VRMarina,
)
from buropt.optim.contractive import theta_beta
from buropt.problems import Problem, least_squares, quadratic, synthetic_quadratic
from buropt.random import Key


@dataclass(frozen=True)
class Scale(Compressor):
    """C(x) = 3x/4: contractive, additive and homogeneous."""

    unbiased = False

    def omega(self, d: int) -> None:
        return None

    def alpha(self, d: int) -> float:
        return 15 / 16

    def bits(self, d: int, dtype: Any) -> int:
        return 0

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        return Message(0.75 * x, np.zeros(len(x), np.int64))


def follow(a: Optimizer[Any], b: Optimizer[Any], problem: Problem, rounds: int = 25) -> None:
    for first, second in zip(run(a, problem, rounds), run(b, problem, rounds), strict=True):
        np.testing.assert_allclose(first.x, second.x, rtol=1e-10, atol=1e-11)


def data() -> Problem:
    rng = np.random.default_rng(0)
    return least_squares(rng.standard_normal((24, 4)), rng.standard_normal(24), l2=0.1, split=4)


# Reductions

TOP, RAND = {"step_size": 0.05, "compressor": TopK(1)}, {"step_size": 0.05, "compressor": RandK(2)}


@pytest.mark.parametrize(
    ("special", "general"),
    [
        (EF21PP(p=1, **TOP), EF21(**TOP)),
        (EF21PAGE(p=1, **TOP), EF21(**TOP)),
        (EF21HB(momentum=0, **TOP), EF21(**TOP)),
        (EF21BC(**TOP), EF21(**TOP)),
        (EF21W(**TOP), EF21(**TOP)),
        (EF21SGDM(eta=1, batch_size=None, **TOP), EF21(**TOP)),
        (EF21SGD(batch_size=3, **TOP), EF21SGDM(eta=1, batch_size=3, **TOP)),
        (PPMarina(clients=4, p=0.3, **RAND), Marina(p=0.3, **RAND)),
        (DASHAPAGE(p=1, **RAND), DASHA(**RAND)),
        (
            EF14(step_size=0.05, compressor=Scale()),
            EF21(step_size=0.05, compressor=Scale()),
        ),
    ],
    ids=lambda method: type(method).__name__,
)
def test_special_cases(special: Optimizer[Any], general: Optimizer[Any]) -> None:
    follow(special, general, data())


def test_ef21_w_with_equal_smoothness() -> None:
    problem = shared_hessian()
    compressed: Any = {"step_size": 0.05, "compressor": RandK(2)}
    follow(EF21W(**compressed), EF21(**compressed), problem)


IDENTITY: dict[str, Any] = {"step_size": 0.05, "compressor": Identity()}


@pytest.mark.parametrize(
    "method",
    [EF14(**IDENTITY), DASHA(**IDENTITY), PPMarina(clients=4, **IDENTITY), EF21W(**IDENTITY)],
    ids=repr,
)
def test_nothing_lost_is_gradient_descent(method: Optimizer[Any]) -> None:
    follow(method, GD(step_size=0.05), data())


@pytest.mark.parametrize(
    ("method", "general"),
    [
        (VRMarina(p=0.3, **RAND), Marina(p=0.3, **RAND)),
        (DASHAPAGE(p=0.3, **RAND), DASHA(**RAND)),
        (DASHAMVR(b=0.3, **RAND), DASHA(**RAND)),
        (EF21PAGE(p=0.3, **TOP), EF21(**TOP)),
        (EF21SGD(**TOP), EF21(**TOP)),
    ],
    ids=lambda method: type(method).__name__,
)
def test_workers_with_one_sample(method: Optimizer[Any], general: Optimizer[Any]) -> None:
    """Every batch holds all of a worker's samples, the same one as often as is asked."""
    follow(method, general, random_quadratic(4, 3, 0)[0])


def test_vr_diana_on_workers_with_one_sample() -> None:
    """Diana asks for the estimate at x in the round that leads to x, VR-DIANA in the next."""
    problem, _ = random_quadratic(4, 3, 0)
    diana = Diana(alpha=0.3, **RAND).theory(problem)
    state = diana.init(problem, problem.x0, Key(0, 1))
    for k, expected in enumerate(run(VRDiana(alpha=0.3, p=0.4, **RAND), problem, 25)):
        np.testing.assert_allclose(expected.x, state.x, rtol=1e-10, atol=1e-11)
        state = diana.step(problem, state, Key(0, k + 2))


def test_vr_marina_on_one_worker_is_page() -> None:
    rng = np.random.default_rng(0)
    problem = least_squares(rng.standard_normal((6, 3)), rng.standard_normal(6), l2=0.1)
    state: Any = SimpleNamespace(x=np.ones(3), g=np.arange(3.0))
    a = VRMarina(step_size=0.1, p=0.5).theory(problem)
    b = PAGE(step_size=0.1, p=0.5, batch_size=1).theory(problem)
    for face, j in ((True, 0), (False, 2), (False, 5)):
        # A worker's sample is the part of 2**31 into which the draw falls.
        first = a.step(problem, state, Draws(((2 * j + 1) * 2**31 // 12,), face))
        second = b.step(problem, state, Draws((j,), face))
        np.testing.assert_allclose(first.g, second.g, rtol=1e-12)


# Where they end


@pytest.mark.parametrize(
    ("method", "rounds"),
    [
        (EF21HB(compressor=TopK(2)), 4000),
        (EF21PP(compressor=TopK(2)), 4000),
        (EF21PAGE(compressor=TopK(2)), 4000),
        (EF21W(compressor=RandK(2)), 3000),
        (EF21SGDM(batch_size=None, eta=0.5, compressor=TopK(2)), 6000),
        (EF21BC(compressor=TopK(2), server_compressor=TopK(2), step_size_factor=5), 6000),
        (VRMarina(compressor=RandK(2)), 2000),
        (PPMarina(clients=2, compressor=RandK(2)), 2000),
        (VRDiana(compressor=RandK(2)), 6000),
        (ADiana(compressor=RandK(2)), 4000),
        (DASHA(compressor=RandK(2)), 2000),
        (DASHAPAGE(compressor=RandK(2)), 3000),
    ],
    ids=repr,
)
def test_linear_convergence_to_the_solution(method: Optimizer[Any], rounds: int) -> None:
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    assert problem.metrics(run(method, problem, rounds)[-1].x)[1] < 1e-20


@pytest.mark.parametrize("cls", [VRDiana, DASHAPAGE, VRMarina, EF21PAGE])
def test_variance_reduction_over_many_samples(cls: Any) -> None:
    problem = data()
    compressor = TopK(2) if cls is EF21PAGE else RandK(2)
    rounds = 30000 if cls is VRDiana else 8000
    assert problem.metrics(run(cls(compressor=compressor), problem, rounds)[-1].x)[1] < 1e-15


def test_error_compensation_stops_at_a_floor() -> None:
    """Where workers differ; half the step quarters |grad f|^2."""
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, heterogeneity=0.9, seed=3)

    def floor(factor: float) -> float:
        states = run(EF14(compressor=TopK(1), step_size_factor=factor), problem, 6000)[3000:]
        return float(np.mean([problem.metrics(state.x)[1] for state in states]))

    whole, half = floor(1.0), floor(0.5)
    assert whole > 1e-8
    assert 2.5 < whole / half < 6.5


def test_the_invariant_of_error_compensation() -> None:
    problem = data()
    method = EF14(compressor=TopK(1)).theory(problem)
    states = run(method, problem, 20)
    for old, new in itertools.pairwise(states):
        expected = old.x - old.e_i.mean(axis=0) - method.gamma * problem.grad(old.x)
        np.testing.assert_allclose(new.x - new.e_i.mean(axis=0), expected, atol=1e-13)


def test_momentum_lets_small_batches_come_closer() -> None:
    problem = data()

    def floor(method: Any) -> float:
        states = run(method, problem, 6000)[3000::10]
        return float(np.mean([problem.metrics(state.x)[1] for state in states]))

    step = 0.02
    plain = floor(EF21SGD(batch_size=1, step_size=step, compressor=TopK(2)))
    assert floor(EF21SGDM(step_size=step, eta=0.05, compressor=TopK(2))) < 0.9 * plain


# Costs

VECTOR, TWO = 5 * 64, 2 * (64 + 3)


@pytest.mark.parametrize(
    ("method", "gradients", "up", "down"),
    [
        (EF14(compressor=TopK(2)), 12 * 4, 12 * TWO, 12 * VECTOR),
        (EF14(batch_size=3, compressor=TopK(2)), 12 * 12, 12 * TWO, 12 * VECTOR),
        (EF21HB(compressor=TopK(2)), 13 * 4, 13 * TWO, 12 * VECTOR),
        (EF21BC(compressor=TopK(2), server_compressor=TopK(2)), 52, 13 * TWO, 13 * TWO),
        (EF21PP(p=1, compressor=TopK(2)), 13 * 4, 13 * TWO, 12 * VECTOR),
        (EF21PP(p=1e-12, compressor=TopK(2)), 4, TWO, 12 * VECTOR),
        (EF21PAGE(p=1e-12, compressor=TopK(2)), 4 + 12 * 8, 13 * TWO, 12 * VECTOR),
        (EF21W(compressor=TopK(2)), 13 * 4, 13 * TWO, 12 * VECTOR),
        (EF21SGDM(batch_size=2, compressor=TopK(2)), 13 * 8, 13 * TWO, 12 * VECTOR),
        (VRMarina(p=1e-12, compressor=RandK(2)), 4 + 12 * 8, VECTOR + 12 * TWO, 12 * VECTOR),
        (VRMarina(p=1, compressor=RandK(2)), 13 * 4, 13 * VECTOR, 12 * VECTOR),
        (
            PPMarina(p=1e-12, clients=2, compressor=RandK(2)),
            4 + 12 * 4,
            VECTOR + 6 * TWO,
            12 * VECTOR,
        ),
        (VRDiana(p=1e-12, compressor=RandK(2)), 4 + 12 * 8, 12 * TWO, 12 * VECTOR),
        (ADiana(p=1, compressor=RandK(2)), 12 * 8, 24 * TWO, 24 * VECTOR),
        (DASHA(compressor=RandK(2)), 13 * 4, VECTOR + 12 * TWO, 12 * VECTOR),
        (DASHAPAGE(p=1e-12, compressor=RandK(2)), 4 + 96, VECTOR + 12 * TWO, 12 * VECTOR),
        (DASHAMVR(compressor=RandK(2)), 4 + 96, VECTOR + 12 * TWO, 12 * VECTOR),
    ],
    ids=lambda item: type(item).__name__,
)
def test_costs_of_twelve_rounds(method: Any, gradients: int, up: float, down: float) -> None:
    assert costs(method, rounds=12) == (gradients, pytest.approx(up), down)


@pytest.mark.parametrize("cls", [VRMarina, PPMarina, VRDiana, ADiana, DASHA, DASHAPAGE, DASHAMVR])
def test_biased_compressors_are_refused(cls: Any) -> None:
    with pytest.raises(ValueError, match=rf"{cls.__name__} needs an unbiased .*TopK\(k=3\).* EF21"):
        cls(compressor=TopK(3))


def test_workers_of_very_different_smoothness() -> None:
    """The example of the paper: L_i = (1, 1, 1, 100) has the mean 25.75 and the root 50.01."""
    scales = np.array([1.0, 1.0, 1.0, 100.0])
    problem = quadratic(scales[:, None] * np.ones((4, 2)), np.ones((4, 2)))
    root = theta_beta(1 / 2)
    ratio = math.sqrt(root[1] / root[0])
    L = problem.constants.L
    assert 1 / EF21W(compressor=TopK(1)).theory(problem).gamma == pytest.approx(L + 25.75 * ratio)
    plain = 1 / EF21(compressor=TopK(1)).theory(problem).gamma
    assert plain == pytest.approx(L + 50.0074994 * ratio)
