"""The tiny graph at 100 000 points in one call: values and both derivatives, float64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.bench import frameworks, peers
from experiments.bench.cases.tiny import graph
from experiments.bench.contest import Case, Contestant

N_POINTS = 100_000
PEERS = tuple(name for name in frameworks.FRAMEWORKS if name != "micrograd")


def of_numbers(ops: Any, a: Any, b: Any) -> Any:
    """The function, of two numbers or of two arrays element by element."""
    return graph(a, b)


def points(n: int) -> Any:
    """(n, 2)."""
    return np.random.default_rng(0).uniform(-2, 2, (n, 2))


def cases(quick: bool) -> Iterator[Case]:
    """One size."""
    n = 1000 if quick else N_POINTS
    yield Case(
        *("tiny_batch", "", "a point"),
        {
            "buropt": partial(buropt, n),
            "numpy": partial(by_hand, n),
            **frameworks.each(lambda peer: peer.pointwise(of_numbers, points(n)), PEERS),
        },
        tolerance=1e-12,
        flops=14.0 * n,
        bytes=40.0 * n,  # two numbers in, three out
        points=n,
        note=f"{N_POINTS} points in a call; numpy: derivatives by hand, array by array",
    )


def by_hand(n: int) -> Contestant:
    a, b = points(n).T.copy()

    def call() -> tuple[Any, Any, Any]:
        square = b * b
        e = (a + b) - (a * b + square * b)
        return 0.5 * e * e, e * (1.0 - b), e * (1.0 - a - 3.0 * square)

    return peers.same(call)


def buropt(n: int) -> Contestant:
    import buropt as bo

    a, b = points(n).T.copy()
    many = bo.vmap(bo.value_and_grad(graph, (0, 1)))
    out = np.empty(n), (np.empty(n), np.empty(n))

    def call() -> tuple[Any, Any, Any]:
        value, (by_a, by_b) = many(a, b, out=out)
        return value, by_a, by_b

    return peers.same(call)
