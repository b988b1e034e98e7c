"""The graph of micrograd's README, with relu and division: value and both derivatives, float64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from experiments.bench import frameworks, peers
from experiments.bench.contest import Case, Contestant

POINT = np.array([-4.0, 2.0])
COMPILED = tuple(name for name in frameworks.FRAMEWORKS if name not in ("casadi", "micrograd"))


def of_vector(ops: Any, x: Any) -> Any:
    """The function of one vector (2,), for any kind of number."""
    a, b = x[0], x[1]
    c = a + b
    d = a * b + b**3
    c = c + (c + 1)
    c = c + (1 + c + (-a))
    d = d + (d * 2 + ops.relu(b + a))
    d = d + (3 * d + ops.relu(b - a))
    e = c - d
    f = e**2
    g = f / 2.0
    return g + 10.0 / f


def cases(quick: bool) -> Iterator[Case]:
    """A bound call, a call with an array, and a graph that is built anew for every call."""

    def build(peer: frameworks.Framework) -> Contestant:
        return peer.value_and_grad(of_vector, POINT)

    for name, own, names in (
        ("bound call", buropt_bound, ("casadi",)),
        ("value_and_grad(x)", buropt, COMPILED),
        ("eager build + backward", buropt_eager, ("micrograd",)),
    ):
        yield Case(
            *("small", "", name),
            {"buropt": own, **frameworks.each(build, names)},
            reference="autograd",
            tolerance=1e-12,
        )


def buropt_bound() -> Contestant:
    from experiments.bench import own

    return own.bound(partial(of_vector, own.Numpy()), POINT)


def buropt() -> Contestant:
    import buropt as bo
    from experiments.bench import own

    x = POINT.copy()
    value_and_grad = bo.value_and_grad(partial(of_vector, own.Numpy()))
    return peers.same(lambda: value_and_grad(x))


class _ValueOps:
    def relu(self, x: Any) -> Any:
        return x.relu()


def buropt_eager() -> Contestant:
    import buropt as bo

    a, b = POINT.tolist()
    ops = _ValueOps()

    def call() -> Any:
        x = bo.Value(a), bo.Value(b)
        result = of_vector(ops, x)
        result.backward()
        return result.data, x[0].grad, x[1].grad

    return peers.same(call)
