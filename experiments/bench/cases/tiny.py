"""The tiny graph of the BurTorch paper (arXiv 2503.13795): value and both derivatives.

a = -41, b = 2: c = a + b, d = a b + b^3, e = c - d, f = e^2, g = f / 2, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.bench import frameworks, peers
from experiments.bench.contest import Case, Contestant

A, B = -41.0, 2.0
POINT = np.array([A, B])
OTHERS = tuple(name for name in frameworks.FRAMEWORKS if name != "casadi")


def graph(a: Any, b: Any) -> Any:
    """The function, for any kind of number."""
    c = a + b
    d = a * b + b**3
    e = c - d
    f = e**2
    return f / 2


def of_vector(ops: Any, x: Any) -> Any:
    """The function of one vector (2,)."""
    return graph(x[0], x[1])


def cases(quick: bool) -> Iterator[Case]:
    """A bound call, where peers have one, and a call with a NumPy array."""
    yield Case(
        *("tiny", "", "bound call"),
        {
            "buropt": buropt_bound,
            "python": by_hand,
            **frameworks.each(lambda peer: peer.value_and_grad(of_vector, POINT), ["casadi"]),
        },
        reference="python",
        tolerance=1e-14,
    )
    yield Case(
        *("tiny", "", "value_and_grad(x)"),
        {
            "buropt": buropt,
            "python": by_hand,
            **frameworks.each(lambda peer: peer.value_and_grad(of_vector, POINT), OTHERS),
        },
        reference="python",
        tolerance=1e-14,
        note="python: derivatives by hand, in its floats",
    )


def by_hand() -> Contestant:
    def call() -> tuple[float, float, float]:
        a, b = A, B
        e = (a + b) - (a * b + b * b * b)
        return 0.5 * e * e, e * (1.0 - b), e * (1.0 - a - 3.0 * b * b)

    return peers.same(call)


def buropt_bound() -> Contestant:
    from experiments.bench import own

    return own.bound(partial(of_vector, None), POINT)


def buropt() -> Contestant:
    import buropt as bo

    x = POINT.copy()
    value_and_grad = bo.value_and_grad(partial(of_vector, None))
    return peers.same(lambda: value_and_grad(x))
