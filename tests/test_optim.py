"""Methods: reductions to gradient descent, step sizes, convergence, cost of a round."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import parabolas, run

from buropt.compressors import Identity, RandK, TopK
from buropt.optim import DASHA, DCGD, EF21, GD, PAGE, SGD, Diana, Marina, Optimizer
from buropt.problems import Problem, nonconvex_logistic, quadratic, synthetic_quadratic
from buropt.random import Key

COMPRESSED = (DCGD, Diana, Marina, EF21)


# --- reductions ---


@pytest.mark.parametrize(
    "method",
    [
        *(cls(compressor=Identity()) for cls in COMPRESSED),
        *(cls(compressor=RandK(7)) for cls in COMPRESSED),
        EF21(compressor=TopK(7)),
        EF21(compressor=TopK(7), dense_start=True),
        Diana(alpha=0.3),
        Marina(p=1, compressor=RandK(2)),
        SGD(batch_size=4),
    ],
    ids=repr,
)
def test_special_cases_follow_gradient_descent(method: Optimizer[Any]) -> None:
    """A compressor that keeps all 7 coordinates, a certain coin, a batch of all samples."""
    problem = synthetic_quadratic(4, 7, L=3.0, mu=0.2, seed=1)
    expected = run(GD(step_size=0.3), problem, 60)
    actual = run(replace(method, step_size=0.3), problem, 60)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a.x, b.x, rtol=1e-12, atol=1e-12)


# --- step sizes and other hyperparameters ---


def constants_of_a_problem() -> SimpleNamespace:
    """n = 4, d = 10, N = 20, with constants that are all different."""
    constants = SimpleNamespace(
        L=2.0,
        L_max=5.0,
        L_plus=3.0,
        L_pm=2.5,
        L_tilde=4.0,
        L_sample_max=7.0,
        L_sample_mean=6.0,
        L_sample_tilde=6.5,
        L_samples=np.ones(20),
        mu=0.5,
        mu_sample=0.25,
        convex=True,
    )
    return SimpleNamespace(constants=constants, n_workers=4, dim=10, n_samples=20, psi=None)


def test_theoretical_step_sizes() -> None:
    problem: Any = constants_of_a_problem()
    omega, alpha = 10 / 2 - 1, 2 / 10
    root = (1 + math.sqrt(1 - alpha)) / alpha - 1
    p = 1 / (1 + omega)

    def step_size(method: Optimizer[Any]) -> Any:
        return method.theory(problem).step_size

    assert step_size(GD()) == pytest.approx(1 / 2)
    assert step_size(SGD(batch_size=5)) == pytest.approx(
        1 / (2 * (20 * 4 / (5 * 19) * 2 + 15 / (5 * 19) * 7))
    )
    assert step_size(SGD(batch_size=5, sampling="independent")) == pytest.approx(
        1 / (2 * (4 / 5 * 2 + 7 / 5))
    )
    assert step_size(DCGD(compressor=RandK(2))) == pytest.approx(1 / (2 + 2 * omega * 5 / 4))
    assert step_size(Marina(compressor=RandK(2))) == pytest.approx(
        1 / (2 + 3 * math.sqrt((1 - p) * omega / (p * 4)))
    )
    assert step_size(EF21(compressor=TopK(2))) == pytest.approx(1 / (2 + 4 * root))
    # RandK divided by 1 + omega contracts with the same alpha as TopK.
    assert step_size(EF21(compressor=RandK(2))) == pytest.approx(1 / (2 + 4 * root))


def test_marina_without_l_plus_takes_l_tilde() -> None:
    problem: Any = constants_of_a_problem()
    problem.constants.L_plus = None
    method = Marina(p=0.5, compressor=RandK(2)).theory(problem)
    assert method.step_size == pytest.approx(1 / (2 + 4 * math.sqrt(0.5 * 4 / (0.5 * 4))))
    assert method.p == 0.5


@pytest.mark.parametrize("cls", [Marina, EF21, PAGE, DASHA])
def test_rates_under_polyak_lojasiewicz_need_mu(cls: Any) -> None:
    problem = quadratic(np.array([[1.0, 0.0]]), np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"mu = 0; write optimizer\.polyak_lojasiewicz=false"):
        cls(polyak_lojasiewicz=True).theory(problem)


def test_diana_chooses_its_theorem() -> None:
    problem: Any = constants_of_a_problem()
    strong = 1 / (5 * (1 + 6 * 4 / 4))
    weak = 1 / (5 * (1 + 4 * 4 / 4))
    none = 1 / (10 * 5 * math.sqrt(1 + 4 / 4) * (2 + 4))
    method = Diana(compressor=RandK(2))
    assert method.theory(problem).step_size == pytest.approx(strong)
    assert method.theory(problem).alpha == pytest.approx(1 / 5)
    assert replace(method, convexity="weak").theory(problem).step_size == pytest.approx(weak)
    assert replace(method, convexity="none").theory(problem).step_size == pytest.approx(none)
    problem.constants.mu = 0.0
    assert method.theory(problem).step_size == pytest.approx(weak)
    problem.constants.convex = False
    assert method.theory(problem).step_size == pytest.approx(none)
    problem.constants.mu = 0.5  # f may be strongly convex though some f_i is not even convex
    assert method.theory(problem).step_size == pytest.approx(none)
    assert replace(method, convexity="strong").theory(problem).step_size == pytest.approx(strong)


@pytest.mark.parametrize("cls", [DCGD, Diana, Marina])
def test_biased_compressors_are_refused(cls: Any) -> None:
    with pytest.raises(ValueError, match=rf"{cls.__name__} needs an unbiased .*TopK\(k=3\).* EF21"):
        cls(compressor=TopK(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GD(step_size=0.0), r"GD\.step_size must be a positive number, got 0\.0"),
        (lambda: GD(step_size=math.nan), r"GD\.step_size"),
        (lambda: GD(step_size=math.inf), r"GD\.step_size"),
        (lambda: GD(step_size="1e-3"), r"GD\.step_size must be a positive number, got '1e-3'"),
        (lambda: EF21(step_size_factor=-1), r"EF21\.step_size_factor"),
        (lambda: Marina(p=1.5), r"Marina\.p must be a positive number of at most 1, got 1\.5"),
        (lambda: Diana(alpha=0), r"Diana\.alpha"),
        (lambda: Diana(convexity="yes"), r"Diana\.convexity must be one of auto, strong, weak"),
        (lambda: SGD(batch_size=0), r"SGD\.batch_size must be a whole number >= 1, got 0"),
        (lambda: SGD(batch_size=2.5), r"SGD\.batch_size"),
        (lambda: SGD(batch_size=21).theory(constants_of_a_problem()), "more than the 20 samples"),
    ],
)
def test_wrong_hyperparameters(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_method_must_be_settled_first() -> None:
    problem = parabolas()
    for method in (GD(), GD(step_size=0.1, step_size_factor=2.0)):
        state = method.init(problem, problem.x0, Key(0))
        with pytest.raises(ValueError, match=r"GD\.step_size is not settled: write .*theory"):
            method.step(problem, state, Key(0, 1))
    with pytest.raises(ValueError, match=r"Diana\.alpha is not settled"):
        Diana(step_size=0.1).init(problem, problem.x0, Key(0))
    marina = Marina(step_size=0.1)
    with pytest.raises(ValueError, match=r"Marina\.p is not settled"):
        marina.step(problem, marina.init(problem, problem.x0, Key(0)), Key(0, 1))


# --- convergence ---


@pytest.mark.parametrize(
    "method",
    [
        GD(),
        Diana(compressor=RandK(2)),
        Marina(compressor=RandK(2)),
        EF21(compressor=TopK(2)),
        EF21(compressor=RandK(2)),
    ],
    ids=repr,
)
def test_linear_convergence_to_the_solution(method: Optimizer[Any]) -> None:
    problem = synthetic_quadratic(5, 8, L=1.0, mu=0.2, seed=3)
    x = run(method, problem, 1200)[-1].x
    assert problem.metrics(x)[1] < 1e-24


def test_dcgd_stops_at_a_floor_that_scales_with_the_step() -> None:
    problem = synthetic_quadratic(5, 8, L=1.0, mu=0.2, seed=3)

    def floor(factor: float) -> float:
        states = run(DCGD(compressor=RandK(2), step_size_factor=factor), problem, 1500)
        gaps = [problem.value(s.x) - problem.constants.f_star for s in states[500::2]]
        return float(np.mean(gaps))

    whole, half = floor(1.0), floor(0.5)
    assert whole > 1e-3
    assert 1.5 < whole / half < 3


def test_sgd_stops_at_a_floor_unless_the_samples_agree() -> None:
    heterogeneous = synthetic_quadratic(5, 8, L=1.0, mu=0.2, seed=3)
    agreeing = synthetic_quadratic(5, 8, L=1.0, mu=0.2, gradient_heterogeneity=0.0, seed=3)
    assert agreeing.metrics(run(SGD(), agreeing, 1500)[-1].x)[1] < 1e-24
    assert heterogeneous.metrics(run(SGD(), heterogeneous, 1500)[-1].x)[1] > 1e-6


def test_ef21_where_compressed_descent_with_top1_grows() -> None:
    """f_i = (a_i'x)^2 + |x|^2 / 4: x - step mean_i Top1(grad f_i(x)) grows from (1, 1, 1)."""
    a = np.array([[-3.0, 2.0, 2.0], [2.0, -3.0, 2.0], [2.0, 2.0, -3.0]])
    A = 2 * np.einsum("ij,ik->ijk", a, a) + 0.5 * np.eye(3)
    problem = quadratic(A, np.zeros((3, 3)), x0=np.ones(3))
    direction = TopK(1).compress(problem.worker_grads(problem.x0), Key(0)).values.mean(axis=0)
    np.testing.assert_allclose(direction, -11 / 6 * problem.x0)
    x = run(EF21(compressor=TopK(1)), problem, 4500)[-1].x
    assert problem.metrics(x)[1] < 1e-24


def test_nonconvex_problem_without_a_known_mu() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 6))
    y = np.where(A @ rng.standard_normal(6) > 0, 1.0, -1.0)
    problem = nonconvex_logistic(A, y, split=4)
    start = problem.metrics(problem.x0)[1]
    for method in (
        GD(),
        SGD(batch_size=5),
        DCGD(compressor=RandK(2)),
        Diana(compressor=RandK(2)),
        Marina(compressor=RandK(2)),
        EF21(compressor=TopK(2)),
    ):
        x = run(method, problem, 400)[-1].x
        assert problem.metrics(x)[1] < 0.1 * start


# --- what a round costs ---

BITS_OF_A_VECTOR, BITS_OF_RAND2 = 8 * 64, 2 * (64 + 3)


@pytest.mark.parametrize(
    ("method", "bits_up"),
    [
        (GD(), 21 * BITS_OF_A_VECTOR),
        (DCGD(compressor=RandK(2)), 21 * BITS_OF_RAND2),
        (Diana(compressor=RandK(2)), 21 * BITS_OF_RAND2),
        (EF21(compressor=TopK(2)), 21 * BITS_OF_RAND2),
        (EF21(compressor=TopK(2), dense_start=True), BITS_OF_A_VECTOR + 20 * BITS_OF_RAND2),
        (Marina(compressor=RandK(2), p=1), 21 * BITS_OF_A_VECTOR),
        (Marina(compressor=RandK(2), p=1e-9), BITS_OF_A_VECTOR + 20 * BITS_OF_RAND2),
    ],
    ids=repr,
)
def test_costs_of_twenty_rounds(method: Optimizer[Any], bits_up: int) -> None:
    """One evaluation of all workers a round, at the new point, and none for the metrics."""
    problem = synthetic_quadratic(5, 8)
    evaluations = count_evaluations(problem)
    method = method.theory(problem)
    state = method.init(problem, problem.x0, Key(0, 0))
    problem.metrics(state.x)
    for number in range(1, 21):
        state = method.step(problem, state, Key(0, number))
        problem.metrics(state.x)
    assert problem.counters.oracle_calls == 21
    assert problem.counters.sample_grads == 21 * problem.n_samples
    assert problem.counters.bits_up == bits_up
    assert problem.counters.bits_down == 20 * BITS_OF_A_VECTOR
    assert len(evaluations) == 21


def count_evaluations(problem: Problem) -> list[Any]:
    """Makes the problem note every evaluation of all the workers."""
    evaluations: list[Any] = []
    oracle = problem.oracle

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(oracle, name)

        def worker_values_and_grads(self, x: Any) -> Any:
            evaluations.append(x)
            return oracle.worker_values_and_grads(x)

    problem.oracle = Counting()  # type: ignore[assignment]
    return evaluations


def test_sgd_counts_its_batches() -> None:
    problem = synthetic_quadratic(5, 8)
    run(SGD(batch_size=3), problem, 10)
    assert problem.counters.oracle_calls == 10
    assert problem.counters.sample_grads == 30
    assert problem.counters.bits_up == problem.counters.bits_down == 10 * BITS_OF_A_VECTOR


# --- reproducibility ---

RANDOM = [
    SGD(batch_size=2),
    DCGD(compressor=RandK(2)),
    Diana(compressor=RandK(2)),
    Marina(compressor=RandK(2)),
    EF21(compressor=RandK(2)),
]


@pytest.mark.parametrize("method", RANDOM, ids=repr)
def test_a_run_is_a_function_of_the_seed(method: Optimizer[Any]) -> None:
    problem = synthetic_quadratic(5, 8)
    first = run(method, problem, 30, seed=1)[-1]
    assert first.x.tobytes() == run(method, problem, 30, seed=1)[-1].x.tobytes()
    assert first.x.tobytes() != run(method, problem, 30, seed=2)[-1].x.tobytes()
