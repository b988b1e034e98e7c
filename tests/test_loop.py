"""The loop around a method: when it measures, and what its clock counts."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from buropt.budget import Budget
from buropt.history import History
from buropt.loop import minimize
from buropt.optim import GD, SGD
from buropt.problems import quadratic, synthetic_quadratic


def iterations_of(method: Any, **arguments: Any) -> list[int]:
    problem = synthetic_quadratic(10, 4)
    history = History()
    minimize(problem, method.theory(problem), Budget(iterations=25), history=history, **arguments)
    return history["iteration"].tolist()


def test_how_often_a_run_is_measured() -> None:
    assert iterations_of(GD()) == list(range(26))
    assert iterations_of(GD(), log_every=10) == [0, 10, 20, 25]
    assert iterations_of(SGD(batch_size=2)) == [0, 5, 10, 15, 20, 25]
    assert iterations_of(SGD(batch_size=3)) == [0, 4, 8, 12, 16, 20, 24, 25]
    assert iterations_of(SGD(batch_size=2), log_every=20) == [0, 20, 25]


def test_distance_from_the_solution() -> None:
    problem, history = synthetic_quadratic(3, 4), History()
    outcome = minimize(problem, GD().theory(problem), Budget(iterations=3), history=history)
    x_star = problem.constants.x_star
    assert x_star is not None
    assert history["distance_sq"][0] == pytest.approx(x_star @ x_star)
    difference = outcome.x - x_star
    assert history["distance_sq"][-1] == pytest.approx(difference @ difference)


def test_no_distance_where_there_is_more_than_one_solution() -> None:
    problem = quadratic(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]))
    outcome = minimize(problem, GD().theory(problem), Budget(iterations=3))
    assert outcome.record.f_gap is not None
    assert outcome.record.distance_sq is None


def test_clock_of_the_method_excludes_measuring_and_logging() -> None:
    problem = synthetic_quadratic(3, 4)
    history = History()
    minimize(
        problem,
        GD().theory(problem),
        Budget(iterations=3),
        history=history,
        on_record=lambda record: time.sleep(0.1),
    )
    assert history["seconds"][-1] < 0.2


def test_the_oracle_is_warm_before_the_clock_starts() -> None:
    problem = synthetic_quadratic(3, 4)
    oracle, asked = problem.oracle, []

    class Spy:
        def __getattr__(self, name: str) -> Any:
            return getattr(oracle, name)

        def worker_values_and_grads(self, x: Any) -> Any:
            asked.append("all that methods ask for")
            return oracle.worker_values_and_grads(x)

    class Method(GD):
        def init(self, *arguments: Any) -> Any:
            asked.append("init")
            return super().init(*arguments)

    problem.oracle = Spy()  # type: ignore[assignment]
    minimize(problem, Method(step_size=0.1), Budget(iterations=1))
    assert asked[:2] == ["all that methods ask for", "init"]


def test_every_run_begins_to_count_at_zero() -> None:
    """A problem may be given to one method after the other."""
    problem, last = synthetic_quadratic(3, 4), []
    for method in (GD(), GD(), SGD(batch_size=1)):
        last.append(minimize(problem, method.theory(problem), Budget(epochs=5)).record)
    assert last[0]._replace(seconds=0) == last[1]._replace(seconds=0)
    assert [record.epochs for record in last] == [5, 5, 5]
    assert problem.counters.sample_grads == 5 * problem.n_samples
