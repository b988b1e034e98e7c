"""Local methods: drift, its repair, client sampling, and the gradients at points of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Draws, random_quadratic, run, solution_of, squared

import buropt as bo
from buropt.optim import GD, FedAvg, Optimizer, ProxSkip, Scaffold
from buropt.optim.sampling import participants, worker_batches
from buropt.problems import least_squares, logistic, quadratic, synthetic_quadratic
from buropt.random import Key

UNEVEN = [np.array([0, 3, 4]), np.array([1]), np.array([2, 5, 6, 7])]


def samples(n: int = 8, d: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0)


# Gradients at points of their own


def test_local_grads() -> None:
    problem = logistic(*samples(), l2=0.3, split=UNEVEN)
    x = np.random.default_rng(1).standard_normal((3, 3))
    everywhere = [problem.oracle.worker_grads(row) for row in x]
    expected = np.stack([everywhere[i][i] for i in range(3)])
    np.testing.assert_allclose(problem.local_grads(x), expected, rtol=1e-13)
    some = problem.local_grads(x[[2, 0]], np.array([2, 0]))
    np.testing.assert_allclose(some, expected[[2, 0]], rtol=1e-13)
    assert problem.counters.sample_grads == 8 + 7
    every_sample = np.array([[2, 5, 6, 7]])
    from_batch = problem.local_grads(x[[2]], np.array([2]), every_sample)
    np.testing.assert_allclose(from_batch, expected[[2]], rtol=1e-13)
    assert problem.counters.sample_grads == 8 + 7 + 4


def test_local_grads_of_weighted_samples() -> None:
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2, 8)
    oracle = bo.compile(
        lambda x, a: 0.5 * (a @ x) ** 2,
        np.zeros(3),
        data=(rng.standard_normal((8, 3)),),
        weights=weights,
        workers=UNEVEN,
    )
    x = rng.standard_normal(3)
    np.testing.assert_allclose(
        oracle.local_grads(np.tile(x, (3, 1))), oracle.worker_grads(x), rtol=1e-13
    )
    idx = np.array([[0, 4], [1, 1], [7, 2]])
    np.testing.assert_allclose(
        oracle.local_grads(np.tile(x, (3, 1)), idx=idx), oracle.worker_grads(x, idx=idx), rtol=1e-13
    )


def test_local_grads_need_data() -> None:
    oracle = bo.compile(lambda x: x @ x, np.zeros(2))
    with pytest.raises(ValueError, match="this oracle was compiled without"):
        oracle.local_grads(np.zeros((1, 2)))


def test_worker_batches_are_unbiased() -> None:
    problem = logistic(*samples(), split=UNEVEN)
    draws = worker_batches(problem, 4000, Key(0, 1))
    for shard, row in zip(UNEVEN, draws, strict=True):
        counts = np.array([(row == j).sum() for j in shard])
        assert counts.sum() == 4000
        p = 1 / len(shard)
        assert np.all(np.abs(counts - 4000 * p) <= 6 * math.sqrt(4000 * p * (1 - p)))


def test_participants() -> None:
    problem = synthetic_quadratic(5, 2)
    assert participants(problem, None, Key(0)).tolist() == [0, 1, 2, 3, 4]
    counts = np.zeros(5)
    for k in range(1000):
        S = participants(problem, 2, Key(0, k))
        assert len(set(S.tolist())) == 2
        assert list(S) == sorted(S)
        counts[S] += 1
    assert np.all(np.abs(counts - 400) < 6 * math.sqrt(1000 * 0.4 * 0.6))


# Reductions


@pytest.mark.parametrize(
    "method",
    [
        FedAvg(step_size=0.1, local_steps=1),
        Scaffold(step_size=0.1, local_steps=1),
        Scaffold(step_size=0.1, local_steps=1, option="I"),
        ProxSkip(step_size=0.1, p=1),
    ],
    ids=repr,
)
def test_one_local_step_is_gradient_descent(method: Optimizer[Any]) -> None:
    problem, _ = random_quadratic(4, 3, 0)
    for a, b in zip(run(method, problem, 30), run(GD(step_size=0.1), problem, 30), strict=True):
        np.testing.assert_allclose(a.x, b.x, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("h", [np.zeros((4, 3)), np.arange(12.0).reshape(4, 3)])
def test_proxskip_with_a_certain_coin_for_any_shifts_of_sum_zero(h: Any) -> None:
    problem, _ = random_quadratic(4, 3, 0)
    method = ProxSkip(step_size=0.1, p=1).theory(problem)
    state = method.init(problem, problem.x0, Key(0))._replace(h=h - h.mean(axis=0))
    x = problem.x0
    for k in range(1, 20):
        state = method.step(problem, state, Key(0, k))
        x = x - 0.1 * problem.grad(x)
        np.testing.assert_allclose(state.x, x, rtol=1e-11, atol=1e-12)


def test_fedavg_where_the_workers_agree() -> None:
    A = np.repeat(np.array([[[2.0, 0.5], [0.5, 1.0]]]), 3, axis=0)
    problem = quadratic(A, np.ones((3, 2)))
    local = run(FedAvg(step_size=0.2, local_steps=5), problem, 6)
    descent = run(GD(step_size=0.2), problem, 30)
    for k in range(7):
        np.testing.assert_allclose(local[k].x, descent[5 * k].x, rtol=1e-12, atol=1e-14)


@dataclass(frozen=True)
class Periodic(Draws):
    """A coin that shows 1 in every K-th round."""

    period: int = 1

    def coin(self, p: float) -> bool:
        return self.round % self.period == 0


@pytest.mark.parametrize("K", [1, 2, 5])
def test_proxskip_with_a_fixed_period_is_scaffold(K: int) -> None:
    problem, _ = random_quadratic(4, 3, 1)
    skip = ProxSkip(step_size=0.05, p=1 / K).theory(problem)
    scaffold = run(Scaffold(step_size=0.05, local_steps=K), problem, 12)
    state = skip.init(problem, problem.x0, Key(0))
    for k in range(1, 12 * K + 1):
        state = skip.step(problem, state, Periodic(round=k, period=K))
        if k % K == 0:
            expected = scaffold[k // K]
            np.testing.assert_allclose(state.x, expected.x, rtol=1e-10, atol=1e-11)
            np.testing.assert_allclose(state.h, expected.c_i - expected.c, rtol=1e-9, atol=1e-10)


# What they converge to


@pytest.mark.parametrize("K", [2, 10])
def test_client_drift_of_fedavg(K: int) -> None:
    """Its fixed point solves sum_i (I - (I - s A_i)^K) (x - x_i*) = 0."""
    problem, _ = random_quadratic(3, 2, 0)
    method = FedAvg(local_steps=K).theory(problem)
    zero = np.zeros(2)
    hessians = problem.oracle.worker_hessians(zero)
    b = -problem.worker_grads(zero)
    drift = [np.eye(2) - np.linalg.matrix_power(np.eye(2) - method.gamma * H, K) for H in hessians]
    ends = [np.linalg.solve(H, b_i) for H, b_i in zip(hessians, b, strict=True)]
    right = sum(D @ end for D, end in zip(drift, ends, strict=True))
    fixed = np.linalg.solve(sum(drift), right)
    x = run(method, problem, 3000)[-1].x
    np.testing.assert_allclose(x, fixed, rtol=1e-9)
    assert squared(x - solution_of(problem)) > 1e-4


@pytest.mark.parametrize(
    ("method", "rounds"),
    [
        (Scaffold(step_size=0.02), 3000),
        (Scaffold(step_size=0.02, option="I"), 3000),
        (Scaffold(clients=3, step_size=0.02), 3000),
        (ProxSkip(), 1500),
    ],
    ids=repr,
)
def test_the_drift_is_repaired(method: Optimizer[Any], rounds: int) -> None:
    problem = synthetic_quadratic(5, 4, L=1.0, mu=0.2, seed=3)
    assert problem.metrics(run(method, problem, rounds)[-1].x)[1] < 1e-20


@pytest.mark.parametrize("seed", range(5))
def test_proxskip_contracts(seed: int) -> None:
    """In expectation over the coin, from a random state whose shifts sum to 0."""
    problem, rng = random_quadratic(4, 3, seed)
    method = ProxSkip().theory(problem)
    gamma, p = method.gamma, method.p
    assert p == pytest.approx(math.sqrt(problem.constants.mu_worker / problem.constants.L_max))
    star = solution_of(problem)
    optimal = problem.worker_grads(star)
    rate = 1 - min(gamma * problem.constants.mu_worker, p**2)

    def potential(x_i: Any, h: Any) -> float:
        return squared(x_i - star) + (gamma / p) ** 2 * squared(h - optimal)

    for _ in range(10):
        x_i = star + rng.standard_normal((4, 3)) * rng.uniform(0.1, 3)
        h = optimal + rng.standard_normal((4, 3)) * rng.uniform(0, 3)
        h -= h.mean(axis=0)
        state: Any = SimpleNamespace(x_i=x_i, h=h)
        heads, tails = (method.step(problem, state, Draws(face=face)) for face in (True, False))
        after = p * potential(heads.x_i, heads.h) + (1 - p) * potential(tails.x_i, tails.h)
        assert after <= rate * potential(x_i, h) * (1 + 1e-9)


def test_stochastic_local_steps() -> None:
    problem = least_squares(*samples(40), l2=0.1, split=4)
    start = problem.metrics(problem.x0)[1]
    for method in (FedAvg(batch_size=2), FedAvg(batch_size=2, clients=2), Scaffold(batch_size=2)):
        assert problem.metrics(run(method, problem, 400)[-1].x)[1] < 0.5 * start


def test_proxskip_refuses_workers_without_strong_convexity() -> None:
    problem = logistic(*samples(), split=2)
    with pytest.raises(ValueError, match=r"not every worker's function .* give optimizer\.p"):
        ProxSkip().theory(problem)
    assert ProxSkip(p=0.5).theory(problem).p == 0.5


@pytest.mark.parametrize("cls", [FedAvg, Scaffold])
def test_too_many_clients(cls: Any) -> None:
    with pytest.raises(ValueError, match=rf"{cls.__name__}\.clients=9 is more than the 5 workers"):
        cls(clients=9).theory(synthetic_quadratic(5, 2))


# Costs


def test_costs_of_twelve_rounds() -> None:
    """Local gradients, floats up for a worker (mean), floats down."""
    d, n = 5, 4
    for method, gradients, up, down in (
        (FedAvg(local_steps=3), 12 * 3 * n, 12 * d, 12 * d),
        (FedAvg(local_steps=3, clients=2), 12 * 3 * 2, 6 * d, 12 * d),
        (Scaffold(local_steps=3), 12 * 3 * n, 24 * d, 24 * d),
        (Scaffold(local_steps=3, option="I", clients=2), 12 * 4 * 2, 12 * d, 24 * d),
        (ProxSkip(p=1), 12 * n, 12 * d, 12 * d),
        (ProxSkip(p=1e-12), 12 * n, 0, 0),
    ):
        problem = synthetic_quadratic(n, d)
        run(method, problem, 12)
        assert problem.counters.sample_grads == gradients
        assert problem.counters.bits_up == 64 * up
        assert problem.counters.bits_down == 64 * down


def test_proxskip_communicates_with_probability_p() -> None:
    problem = synthetic_quadratic(3, 2)
    run(ProxSkip(p=0.2), problem, 2000)
    rounds = problem.counters.bits_up / (64 * 2)
    assert abs(rounds - 400) < 6 * math.sqrt(2000 * 0.2 * 0.8)
