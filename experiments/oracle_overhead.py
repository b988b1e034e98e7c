"""What a call of the oracle costs, beside what the same call costs in NumPy and SciPy.

    python -m experiments.oracle_overhead --data a9a --json overhead.json

1. The full logistic gradient over CSR data in one call, at one and at two threads, against the two
   passes `z = A @ x` and `g = A.T @ r`.
2. Value and gradient of one sample of the same data.
3. A bound call of a graph of two variables, value and both derivatives.
4. Gradients of plain functions, with and without `out=`: x^3 - 2x, and Rosenbrock in 10 dimensions.

Contestants of a group take turns, so that a disturbance hits all of them; a time is the median over
the turns. Before anything is timed, contestants must agree on the result.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy.special import expit

import buropt as bo
from buropt import result
from buropt.data import load_libsvm

Array = NDArray[Any]
Call = Callable[[], Any]

N_SAMPLES, N_FEATURES, N_NONZEROS = 32561, 123, 14  # a9a; nonzeros of a row
TURN_SECONDS = 0.02  # how long a contestant runs in its turn


class Target(NamedTuple):
    """At most `limit` microseconds, or times the reference when `is_ratio`."""

    limit: float
    is_ratio: bool


@dataclass(frozen=True)
class Contestant:
    """`call` is timed; `answer` is what it computes, to be compared within its group."""

    name: str
    call: Call
    answer: Callable[[], Array]
    target: Target | None = None


@dataclass(frozen=True)
class Group:
    """Contestants that compute the same; the first one is the reference."""

    name: str
    contestants: Sequence[Contestant]


@dataclass
class Row:
    """One line of the result. Times are in microseconds a call."""

    group: str
    contestant: str
    microseconds: float
    ratio: float
    target: Target | None
    turns: list[float] = field(repr=False)

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return (self.ratio if self.target.is_ratio else self.microseconds) <= self.target.limit


# --- the groups


def logistic_loss(x: Any, a: Any, b: Any) -> Any:
    return np.logaddexp(0, -b * (a @ x))


def synthetic(seed: int) -> tuple[Any, Array]:
    """A CSR matrix of a9a's size, its nonzeros ones at random columns, and labels -1 and +1."""
    rng = np.random.default_rng(seed)
    order = rng.random((N_SAMPLES, N_FEATURES), dtype=np.float32)
    columns = np.sort(np.argpartition(order, N_NONZEROS, axis=1)[:, :N_NONZEROS], axis=1)
    starts = np.arange(N_SAMPLES + 1, dtype=np.int32) * N_NONZEROS
    values = np.ones(N_SAMPLES * N_NONZEROS)
    A = sp.csr_array(
        (values, columns.astype(np.int32).ravel(), starts), shape=(N_SAMPLES, N_FEATURES)
    )
    return A, rng.choice([-1.0, 1.0], N_SAMPLES)


def full_gradient(A: Any, b: Array) -> Group:
    n, d = A.shape
    x = np.linspace(-0.5, 0.5, d)
    out = np.empty(d)

    def two_passes() -> Array:
        z = A @ x
        r = (-b / n) * expit(-b * z)
        g: Array = A.T @ r
        return g

    contestants = [Contestant("SciPy, A @ x and A.T @ r", two_passes, two_passes)]
    for threads, limit in ((1, 0.6), (2, 0.35)):
        oracle = bo.compile(logistic_loss, np.zeros(d), data=(A, b), threads=threads)

        def gradient(oracle: bo.Oracle = oracle) -> Array:
            return oracle.grad(x, out=out)

        label = f"oracle.grad(x, out=g), {threads} thread{'s' * (threads > 1)}"
        contestants.append(Contestant(label, gradient, gradient, Target(limit, True)))
    return Group(f"logistic gradient, CSR {n} x {d}", contestants)


def one_sample(A: Any, b: Array) -> Group:
    d = A.shape[1]
    x = np.linspace(-0.5, 0.5, d)
    out = np.empty(d)
    idx = np.array([A.shape[0] // 2])
    oracle = bo.compile(logistic_loss, np.zeros(d), data=(A, b))
    row = slice(A.indptr[idx[0]], A.indptr[idx[0] + 1])
    columns, values, label = A.indices[row], A.data[row], b[idx[0]]

    def by_hand() -> tuple[float, Array]:
        z = label * (values @ x[columns])
        g = np.zeros(d)
        g[columns] = -label * expit(-z) * values
        return float(np.logaddexp(0, -z)), g

    return Group(
        "value and gradient of one sample",
        [
            Contestant("NumPy by hand", by_hand, lambda: _joined(by_hand())),
            Contestant(
                "oracle.value_and_grad(x, idx)",
                partial(oracle.value_and_grad, x, idx),
                lambda: _joined(oracle.value_and_grad(x, idx)),
                Target(1.5, False),
            ),
            Contestant(
                "oracle.value_and_grad(x, idx, out=g)",
                lambda: oracle.value_and_grad(x, idx, out=out),
                lambda: _joined(oracle.value_and_grad(x, idx, out=out)),
            ),
        ],
    )


def bound_call() -> Group:
    def f(x: Any) -> Any:
        a, b = x[0], x[1]
        return ((a + b) - (a * b + b**3)) ** 2 / 2

    x, g = np.array([-4.0, 2.0]), np.empty(2)
    call = bo.compile(f, x).bind(x, g)

    def by_hand() -> tuple[float, float, float]:
        a, b = -4.0, 2.0
        u = (a + b) - (a * b + b**3)
        return u * u / 2, u * (1 - b), u * (1 - a - 3 * b**2)

    return Group(
        "((a + b) - (a b + b^3))^2 / 2, bound",
        [
            Contestant("Python floats by hand", by_hand, lambda: np.array(by_hand())),
            Contestant(
                "oracle.bind(x, g)()", call, lambda: _joined((call(), g)), Target(0.1, False)
            ),
        ],
    )


def cubic() -> Group:
    derivative = bo.grad(lambda x: x**3 - 2 * x)
    out = np.empty(())
    return Group(
        "gradient of x^3 - 2x, one number",
        [
            Contestant(
                "Python floats by hand", lambda: 3 * 1.5**2 - 2, lambda: np.array(3 * 1.5**2 - 2)
            ),
            *_with_and_without_out(derivative, 1.5, out, Target(2, False)),
        ],
    )


def rosenbrock() -> Group:
    def f(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x, out = np.linspace(-1, 1, 10), np.empty(10)

    def by_hand() -> Array:
        g = np.zeros(10)
        u = x[1:] - x[:-1] ** 2
        g[1:] = 200 * u
        g[:-1] -= 400 * x[:-1] * u + 2 * (1 - x[:-1])
        return g

    return Group(
        "gradient of Rosenbrock's function, 10-d",
        [
            Contestant("NumPy by hand", by_hand, by_hand),
            *_with_and_without_out(bo.grad(f), x, out, Target(3, False)),
        ],
    )


def _with_and_without_out(
    derivative: Callable[..., Any], x: Any, out: Array, target: Target
) -> Iterator[Contestant]:
    plain = partial(derivative, x)
    yield Contestant("bo.grad(f)(x)", plain, plain, target)
    yield Contestant(
        "bo.grad(f)(x, out=g)",
        lambda: derivative(x, out=out),
        lambda: np.array(derivative(x, out=out)),
        target,
    )


def _joined(parts: tuple[Any, ...]) -> Array:
    return np.concatenate([np.ravel(part) for part in parts])


# --- measuring


def seconds_of(call: Call, n: int) -> float:
    """Seconds a call takes, from n of them; an empty loop's share is a few nanoseconds."""
    started = time.perf_counter()
    for _ in repeat(None, n):
        call()
    return (time.perf_counter() - started) / n


def measure(group: Group, n_turns: int) -> list[Row]:
    """Median times of a group's contestants, which take turns.

    Raises
    ------
    AssertionError
        If the contestants do not agree.
    """
    reference = group.contestants[0].answer()
    counts = []
    for contestant in group.contestants:
        np.testing.assert_allclose(contestant.answer(), reference, rtol=1e-9, atol=1e-13)
        seconds_of(contestant.call, 3)
        counts.append(max(1, int(TURN_SECONDS / seconds_of(contestant.call, 3))))
    turns: list[list[float]] = [[] for _ in group.contestants]
    for _ in range(n_turns):
        for contestant, n, taken in zip(group.contestants, counts, turns, strict=True):
            taken.append(1e6 * seconds_of(contestant.call, n))
    medians = [median(taken) for taken in turns]
    return [
        Row(group.name, one.name, own, own / medians[0], one.target, taken)
        for one, own, taken in zip(group.contestants, medians, turns, strict=True)
    ]


# --- saying


def table(rows: Sequence[Row]) -> Table:
    """Times, ratios to the reference of the group, and targets."""
    view = Table("", "us/call", "ratio", "target", "", box=SIMPLE_HEAD, show_edge=False)
    for column in view.columns:
        column.no_wrap = True
    for column in view.columns[1:4]:
        column.justify = "right"
    for k, row in enumerate(rows):
        if k == 0 or rows[k - 1].group != row.group:
            view.add_section()
            view.add_row(f"[bold]{row.group}[/bold]")
        view.add_row(
            f"  {row.contestant}",
            f"{row.microseconds:.4g}",
            f"{row.ratio:.3f}",
            _target_text(row.target),
            {None: "", True: "[green]met[/green]", False: "[red]missed[/red]"}[row.is_met],
        )
    return view


def _target_text(target: Target | None) -> str:
    if target is None:
        return ""
    return f"{target.limit:g}x" if target.is_ratio else f"{target.limit:g} us"


def as_json(rows: Sequence[Row], data: str) -> dict[str, Any]:
    """Everything needed to compare with another machine or another day."""
    return {
        "experiment": "oracle_overhead",
        "data": data,
        "rows": [
            {
                "group": row.group,
                "contestant": row.contestant,
                "microseconds": row.microseconds,
                "ratio": row.ratio,
                "target": _target_text(row.target) or None,
                "is_met": row.is_met,
                "turns": row.turns,
            }
            for row in rows
        ],
        "command": result.command(),
        "versions": result.versions(),
        "machine": result.machine(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.oracle_overhead",
        description="What a call of the oracle costs, beside NumPy and SciPy.",
    )
    parser.add_argument("--data", type=Path, help="a LIBSVM file; without it, random CSR data")
    parser.add_argument("--seed", type=int, default=0, help="of the random data")
    parser.add_argument("--turns", type=int, default=15, help="how often each contestant runs")
    parser.add_argument("--json", type=Path, help="write all times to this file")
    options = parser.parse_args(arguments)

    if options.data is None:
        A, b = synthetic(options.seed)
        name = f"synthetic, seed {options.seed}"
    else:
        dataset = load_libsvm(options.data)
        A, b, name = sp.csr_array(dataset.A), dataset.y, dataset.name
    groups = [full_gradient(A, b), one_sample(A, b), bound_call(), cubic(), rosenbrock()]
    rows = [row for group in groups for row in measure(group, options.turns)]
    console = Console()
    console.print(table(rows))
    console.print(f"data: {name}; medians of {options.turns} turns")
    if options.json is not None:
        result.write_json(options.json, as_json(rows, name))


if __name__ == "__main__":
    main()
