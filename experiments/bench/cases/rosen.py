"""Rosenbrock's function: value and gradient, and a Hessian-vector product, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import rosen, rosen_der, rosen_hess_prod

import buropt as bo
from experiments.bench import peers
from experiments.bench.contest import Case, Contestant

SIZES = (2, 10, 1000, 1_000_000)


def rosenbrock(x: Any) -> Any:
    """The function, in operations that every peer has."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def point(n: int) -> Any:
    """A point and a direction."""
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1.5, n), rng.standard_normal(n)


def cases(quick: bool) -> Iterator[Case]:
    """Four sizes, gradient and Hessian product."""
    for n in SIZES[:3] if quick else SIZES:
        builds: dict[str, Callable[[int], Contestant]] = {
            "buropt": buropt,
            "numpy": scipy,
            "jax": jax,
            "torch": torch,
            "autograd": autograd,
        }
        yield Case(
            "rosen",
            f"value+gradient n={n}",
            {peer: partial(build, n) for peer, build in builds.items()},
            bytes=16.0 * n,
            parameters={"n": n},
        )
        builds = {
            "buropt": buropt_hvp,
            "numpy": scipy_hvp,
            "jax": jax_hvp,
            "torch": torch_hvp,
            "autograd": autograd_hvp,
        }
        yield Case(
            "rosen",
            f"Hessian product n={n}",
            {peer: partial(build, n) for peer, build in builds.items()},
            bytes=24.0 * n,
            parameters={"n": n},
        )


def buropt(n: int) -> Contestant:
    x, out = point(n)[0], np.empty(n)
    value_and_grad = bo.value_and_grad(rosenbrock)
    return peers.same(lambda: value_and_grad(x, out=out))


def buropt_hvp(n: int) -> Contestant:
    x, v = point(n)
    hvp = bo.hvp(rosenbrock)
    return peers.same(lambda: hvp(x, v))


def scipy(n: int) -> Contestant:
    x = point(n)[0]
    return peers.same(lambda: (rosen(x), rosen_der(x)))


def scipy_hvp(n: int) -> Contestant:
    x, v = point(n)
    return peers.same(lambda: rosen_hess_prod(x, v))


def jax(n: int) -> Contestant:
    module, _ = peers.jax(x64=True)
    value_and_grad = module.jit(module.value_and_grad(rosenbrock))
    x = point(n)[0]

    def call() -> Any:
        value, gradient = value_and_grad(x)
        gradient.block_until_ready()
        return value, gradient

    return peers.same(call)


def jax_hvp(n: int) -> Contestant:
    module, _ = peers.jax(x64=True)
    gradient = module.grad(rosenbrock)
    hvp = module.jit(lambda x, v: module.jvp(gradient, (x,), (v,))[1])
    x, v = point(n)
    return peers.same(lambda: hvp(x, v).block_until_ready())


def torch(n: int) -> Contestant:
    module = peers.torch()
    x = module.tensor(point(n)[0], requires_grad=True)

    def call() -> Any:
        x.grad = None
        value = rosenbrock(x)
        value.backward()
        return value.detach(), x.grad

    return peers.same(call)


def torch_hvp(n: int) -> Contestant:
    module = peers.torch()
    x, v = (module.tensor(part) for part in point(n))
    return peers.same(lambda: module.autograd.functional.hvp(rosenbrock, x, v)[1])


def autograd(n: int) -> Contestant:
    value_and_grad = peers.need("autograd").value_and_grad(rosenbrock)
    x = point(n)[0]
    return peers.same(lambda: value_and_grad(x))


def autograd_hvp(n: int) -> Contestant:
    hvp = peers.need("autograd").hessian_vector_product(rosenbrock)
    x, v = point(n)
    return peers.same(lambda: hvp(x, v))
