"""Stochastic methods: step sizes, schedules, floors, adaptive steps."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from methods import Draws, random_quadratic, run, solution_of, squared

from buropt.optim import (
    GD,
    SGD,
    SPS,
    AdaGrad,
    Adam,
    AdamW,
    Momentum,
    NesterovSGD,
    Optimizer,
    RMSProp,
)
from buropt.optim.sampling import solution_noise
from buropt.optim.schedules import Constant, Cosine, Decreasing
from buropt.problems import logistic, quadratic, synthetic_quadratic
from buropt.random import Key


def floor(method: Optimizer[Any], problem: Any, rounds: int = 6000) -> float:
    star = solution_of(problem)
    states = run(method, problem, rounds)[rounds // 2 :]
    return float(np.mean([squared(state.x - star) for state in states]))


@pytest.mark.parametrize("sampling", ["nice", "independent", "importance"])
@pytest.mark.parametrize("seed", range(3))
def test_one_step_of_sgd(sampling: Any, seed: int) -> None:
    """E|x+ - x*|^2 <= (1 - s mu) |x - x*|^2 + 2 s^2 E|g(x*)|^2, over all samples."""
    problem, rng = random_quadratic(4, 3, seed)
    method = SGD(sampling=sampling).theory(problem)
    star, L_j = solution_of(problem), problem.constants.L_samples
    p = L_j / L_j.sum() if sampling == "importance" else np.full(4, 1 / 4)
    noise = sum(
        p[j] * squared(problem.sample_grad(star, np.array([j])) / (4 * p[j])) for j in range(4)
    )
    for _ in range(10):
        x = star + rng.standard_normal(3) * rng.uniform(0.1, 3)
        after = 0.0
        for j in range(4):
            state: Any = method.init(problem, x, Key(0))
            after += p[j] * squared(method.step(problem, state, Draws((j,))).x - star)
        s = method.gamma
        bound = (1 - s * problem.constants.mu) * squared(x - star) + 2 * s**2 * noise
        assert after <= bound * (1 + 1e-9)


def test_floors_scale_with_the_step() -> None:
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    whole, half = floor(SGD(), problem), floor(SGD(step_size_factor=0.5), problem)
    assert 1.5 < whole / half < 3


@pytest.mark.parametrize("sampling", ["nice", "independent", "importance"])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_steps_for_an_accuracy(sampling: Any, batch_size: int) -> None:
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    longest = SGD(sampling=sampling, batch_size=batch_size).theory(problem).gamma
    noise = solution_noise(problem, sampling, batch_size)
    assert noise is not None
    accuracy = 2 * noise * longest / problem.constants.mu  # which takes half of that step
    method = SGD(sampling=sampling, batch_size=batch_size, accuracy=accuracy)
    assert method.theory(problem).gamma == pytest.approx(longest / 2)
    assert 0.01 * accuracy < floor(method, problem) <= accuracy
    assert SGD(accuracy=1e9).theory(problem) == replace(SGD().theory(problem), accuracy=1e9)


def test_noise_at_the_solution() -> None:
    """E|g(x*)|^2 over all batches of two, for each sampling."""
    problem, _ = random_quadratic(4, 3, 1)
    star, L_j = solution_of(problem), problem.constants.L_samples
    np.testing.assert_allclose(problem.constants.x_star, star, rtol=1e-10)
    p = L_j / L_j.sum()
    pairs = list(itertools.product(range(4), repeat=2))
    subsets = list(itertools.combinations(range(4), 2))
    nice = np.mean([squared(problem.sample_grad(star, np.array(b))) for b in subsets])
    independent = np.mean([squared(problem.sample_grad(star, np.array(b))) for b in pairs])
    importance = sum(
        p[i] * p[j] * squared(problem.sample_grad(star, np.array([i, j]), 1 / (4 * p[[i, j]])))
        for i, j in pairs
    )
    assert solution_noise(problem, "nice", 2) == pytest.approx(nice)
    assert solution_noise(problem, "independent", 2) == pytest.approx(independent)
    assert solution_noise(problem, "importance", 2) == pytest.approx(importance)


def test_an_accuracy_needs_the_solution() -> None:
    flat = quadratic(np.array([[1.0, 0.0]]), np.zeros((1, 2)))
    reshuffled = SGD(accuracy=0.1, sampling="reshuffled")
    for method, problem in ((SGD(accuracy=0.1), flat), (reshuffled, random_quadratic(4, 3, 1)[0])):
        with pytest.raises(ValueError, match="accuracy needs mu > 0, a known solution and an unb"):
            method.theory(problem)


def test_importance_sampling_allows_longer_steps() -> None:
    scales = np.array([1.0, 1.0, 1.0, 100.0])
    problem = quadratic(scales[:, None] * np.ones((4, 2)), np.zeros((4, 2)), x0=np.ones(2))
    uniform = SGD(sampling="nice").theory(problem).gamma
    importance = SGD(sampling="importance").theory(problem).gamma
    assert importance / uniform == pytest.approx(100 / 25.75)


def test_step_sizes_of_reshuffling() -> None:
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((10, 3)), np.sign(rng.standard_normal(10))
    strong, weak = logistic(A, y, l2=0.1), logistic(A, y)
    method = SGD(sampling="reshuffled", batch_size=3)
    assert method.theory(strong).gamma == pytest.approx(1 / strong.constants.L_sample_max)
    expected = 1 / (math.sqrt(2) * 4 * weak.constants.L_sample_max)
    assert method.theory(weak).gamma == pytest.approx(expected)


# Schedules


def test_factors() -> None:
    assert [Constant().factor(k) for k in (1, 100)] == [1, 1]
    decreasing = Decreasing(after=8)
    assert [decreasing.factor(k) for k in (1, 8)] == [1, 1]
    assert decreasing.factor(9) == pytest.approx(4 * 19 / 100)
    cosine = Cosine(iterations=10, least=0.2)
    assert [cosine.factor(k) for k in (1, 6, 11, 50)] == pytest.approx([1, 0.6, 0.2, 0.2])


def test_decreasing_steps_are_the_theorems() -> None:
    """(2k + 1) / ((k + 1)^2 mu), also where Ls / mu is no whole number."""
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    method = SGD(schedule=Decreasing()).theory(problem)
    mu = problem.constants.mu
    ratio = 1 / (2 * method.gamma * mu)
    assert ratio != math.ceil(ratio)
    for k in (4 * math.ceil(ratio) + 1, 1000):
        assert method.step_at(Key(0, k)) == pytest.approx((2 * k + 1) / ((k + 1) ** 2 * mu))
    assert floor(method, problem, 20000) < 0.02 * floor(SGD(), problem)
    no_mu = quadratic(np.array([[1.0, 0.0]]), np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"give schedule\.after"):
        SGD(schedule=Decreasing()).theory(no_mu)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Decreasing(after=0), r"Decreasing\.after must be a number >= 1, got 0"),
        (lambda: Decreasing(after=math.inf), r"Decreasing\.after must be a number >= 1, got inf"),
        (lambda: Cosine(iterations=0), r"Cosine\.iterations"),
        (lambda: Cosine(iterations=3, least=2.0), r"Cosine\.least must be between 0 and 1"),
        (lambda: Decreasing().factor(1), r"Decreasing\.after is not settled"),
        (lambda: SGD(sampling="random"), r"SGD\.sampling must be one of nice, independent, imp"),  # type: ignore[arg-type]
        (lambda: Adam(beta1=1.0), r"Adam\.beta1 must be a number from 0 up to but not including 1"),
        (lambda: Momentum(momentum=-0.1), r"Momentum\.momentum"),
        (lambda: Momentum(momentum=np.zeros(2)), r"Momentum\.momentum must be .*, got array"),  # type: ignore[arg-type]
        (lambda: SGD(batch_size=math.inf), r"SGD\.batch_size must be a whole number >= 1, got inf"),  # type: ignore[arg-type]
        (lambda: SGD(batch_size=[1]), r"SGD\.batch_size must be a whole number >= 1, got \[1\]"),  # type: ignore[arg-type]
        (lambda: SPS(c=0), r"SPS\.c must be a positive number"),
        (lambda: SGD(batch_size=9).theory(synthetic_quadratic(3, 2)), r"more than the 3 samples"),
    ],
)
def test_wrong_settings(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "method",
    [SGD(), Momentum(), NesterovSGD(), AdaGrad(), RMSProp(), Adam(), AdamW()],
    ids=lambda method: type(method).__name__,
)
def test_cosine_slows_every_method_down(method: Any) -> None:
    """The last step of the schedule has the length 0."""
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    scheduled = type(method)(schedule=Cosine(iterations=20))
    states = run(scheduled, problem, 21)
    assert np.array_equal(states[20].x, states[21].x)
    plain = run(method, problem, 1)
    np.testing.assert_array_equal(plain[1].x, states[1].x)


# Momentum and adaptive methods


def test_momentum_zero_is_sgd() -> None:
    problem = synthetic_quadratic(5, 4, seed=3)
    expected = run(SGD(step_size=0.1), problem, 40)[-1].x
    for cls in (Momentum, NesterovSGD):
        x = run(cls(step_size=0.1, momentum=0.0), problem, 40)[-1].x
        np.testing.assert_allclose(x, expected, rtol=1e-13)


def test_first_steps_have_the_length_of_the_step_size() -> None:
    problem, _ = random_quadratic(3, 4, 0)
    direction = np.sign(problem.grad(problem.x0))
    for method, length in (
        (Adam(batch_size=None), 0.001),
        (RMSProp(batch_size=None), 0.001 / math.sqrt(0.1)),
        (AdaGrad(batch_size=None), 0.1),
    ):
        x = run(method, problem, 1)[-1].x
        np.testing.assert_allclose(x, -length * direction, rtol=1e-5)


def test_adamw_decays_what_adam_keeps() -> None:
    problem, _ = random_quadratic(3, 4, 0)
    adam, adamw = Adam(batch_size=None), AdamW(batch_size=None, weight_decay=0.1)
    state = run(adam, problem, 5)[-1]
    a = adam.theory(problem).step(problem, state, Key(0, 6)).x
    b = adamw.theory(problem).step(problem, state, Key(0, 6)).x
    np.testing.assert_allclose(a - b, 0.1 * state.x, rtol=1e-10)


def test_adagrad_converges_on_a_convex_problem() -> None:
    problem, _ = random_quadratic(3, 4, 0)
    start = problem.metrics(problem.x0)[1]
    assert problem.metrics(run(AdaGrad(batch_size=None), problem, 4000)[-1].x)[1] < 1e-6 * start


# SPS


def test_sps_where_the_samples_agree() -> None:
    """E|x+ - x*|^2 <= (1 - mu min(1/(2 c Lmax), largest)) |x - x*|^2 with the exact minima."""
    scales = np.array([[1.0, 3.0], [2.0, 0.5], [4.0, 1.0]])
    problem = quadratic(scales, np.zeros((3, 2)), x0=np.ones(2))
    method = SPS().theory(problem)
    assert method.lower_bound == 0
    rate = 1 - problem.constants.mu / problem.constants.L_sample_max
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = 3 * rng.standard_normal(2)
        state = method.init(problem, x, Key(0))
        after = [squared(method.step(problem, state, Draws((j,))).x) for j in range(3)]
        assert np.mean(after) <= rate * squared(x) * (1 + 1e-9)
    assert squared(run(SPS(), problem, 300)[-1].x) < 1e-20


def test_sps_with_one_sample_is_the_polyak_step() -> None:
    problem, _ = random_quadratic(1, 3, 0)
    f_star = problem.constants.f_star
    x = run(SPS(c=1.0, largest=1e9), problem, 1)[-1].x
    g = problem.grad(problem.x0)
    np.testing.assert_allclose(x, -(problem.value(problem.x0) - f_star) / squared(g) * g)


def test_sps_needs_a_lower_bound() -> None:
    concave = quadratic(np.array([[1.0], [-0.5]]), np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"no known lower bound; give optimizer\.lower_bound"):
        SPS().theory(concave)


def test_all_samples_make_sgd_gradient_descent() -> None:
    problem, _ = random_quadratic(4, 3, 0)
    expected = run(GD(step_size=0.1), problem, 30)[-1].x
    for method in (SGD(step_size=0.1, batch_size=4), SGD(step_size=0.1, batch_size=None)):
        np.testing.assert_allclose(run(method, problem, 30)[-1].x, expected, rtol=1e-12)
    reshuffled = SGD(step_size=0.1, batch_size=4, sampling="reshuffled")
    np.testing.assert_allclose(run(reshuffled, problem, 30)[-1].x, expected, rtol=1e-12)
