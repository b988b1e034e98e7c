"""Rosenbrock's function: value and gradient, and a Hessian-vector product, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import rosen, rosen_der, rosen_hess_prod

from experiments.bench import frameworks, peers
from experiments.bench.contest import Case, Contestant

SIZES = (2, 10, 1000, 1_000_000)


def rosenbrock(ops: Any, x: Any) -> Any:
    """The function, in operations that every peer has."""
    return ops.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def point(n: int) -> Any:
    """A point and a direction."""
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1.5, n), rng.standard_normal(n)


def cases(quick: bool) -> Iterator[Case]:
    """Four sizes, gradient and Hessian product."""
    for n in SIZES[:3] if quick else SIZES:
        yield Case(
            *("rosen", "value+gradient", f"n={n}"),
            {
                "buropt": partial(buropt, n),
                "buropt, bound": partial(buropt_bound, n),
                "scipy": partial(scipy, n),
                **frameworks.each(partial(peer, n)),
            },
            reference="scipy",
            **_work(n, 16.0, 16.0),
            parameters={"n": n},
            note="scipy: its own rosen and rosen_der; casadi has fixed memory, as buropt, bound",
        )
    for n in SIZES[:3] if quick else SIZES:
        yield Case(
            *("rosen", "Hessian product", f"n={n}"),
            {
                "buropt": partial(buropt_hvp, n),
                "scipy": partial(scipy_hvp, n),
                **frameworks.each(partial(peer_hvp, n)),
            },
            reference="scipy",
            **_work(n, 18.0, 24.0),
            parameters={"n": n},
            note="scipy: its own rosen_hess_prod; casadi has fixed memory",
        )


def _work(n: int, flops: float, n_bytes: float) -> dict[str, Any]:
    """For the roofline; with few variables the call itself is what takes time."""
    return {"flops": flops * n, "bytes": n_bytes * n} if n >= 1000 else {}


def buropt(n: int) -> Contestant:
    import buropt as bo
    from experiments.bench import own

    x, out = point(n)[0], np.empty(n)
    value_and_grad = bo.value_and_grad(partial(rosenbrock, own.Numpy()))
    return peers.same(lambda: value_and_grad(x, out=out))


def buropt_bound(n: int) -> Contestant:
    from experiments.bench import own

    return own.bound(partial(rosenbrock, own.Numpy()), point(n)[0])


def buropt_hvp(n: int) -> Contestant:
    import buropt as bo
    from experiments.bench import own

    x, v = point(n)
    hvp, out = bo.hvp(partial(rosenbrock, own.Numpy())), np.empty(n)
    return peers.same(lambda: hvp(x, v, out=out))


def peer(n: int, framework: frameworks.Framework) -> Contestant:
    return framework.value_and_grad(rosenbrock, point(n)[0])


def peer_hvp(n: int, framework: frameworks.Framework) -> Contestant:
    return framework.hvp(rosenbrock, *point(n))


def scipy(n: int) -> Contestant:
    x = point(n)[0]
    return peers.same(lambda: (rosen(x), rosen_der(x)))


def scipy_hvp(n: int) -> Contestant:
    x, v = point(n)
    return peers.same(lambda: rosen_hess_prod(x, v))
