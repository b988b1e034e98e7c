"""The graph of micrograd's README, with relu and division: value and both derivatives, float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import buropt as bo
from experiments.bench import peers
from experiments.bench.contest import Case, Contestant

A, B = -4.0, 2.0


def graph(a: Any, b: Any, relu: Any) -> Any:
    """The function, for any kind of number."""
    c = a + b
    d = a * b + b**3
    c = c + (c + 1)
    c = c + (1 + c + (-a))
    d = d + (d * 2 + relu(b + a))
    d = d + (3 * d + relu(b - a))
    e = c - d
    f = e**2
    g = f / 2.0
    return g + 10.0 / f


def of_vector(x: Any) -> Any:
    """The function of one vector (2,)."""
    return graph(x[0], x[1], lambda t: np.maximum(t, 0.0))


def cases(quick: bool) -> Iterator[Case]:
    """A compiled graph, and a graph that is built for every call."""
    yield Case("small", "bound call", {"buropt": buropt_bound, "casadi": casadi}, tolerance=1e-12)
    yield Case(
        "small",
        "value_and_grad(x)",
        {"buropt": buropt, "jax": jax, "torch": torch, "autograd": autograd},
        reference="autograd",
        tolerance=1e-12,
    )
    yield Case(
        "small",
        "eager build + backward",
        {"buropt": buropt_value, "micrograd": micrograd},
        tolerance=1e-12,
    )


def buropt_bound() -> Contestant:
    x, g = np.array([A, B]), np.empty(2)
    call = bo.compile(of_vector, x).bind(x, g)
    return Contestant(call, lambda: peers.flat(call(), g))


def buropt() -> Contestant:
    x = np.array([A, B])
    value_and_grad = bo.value_and_grad(of_vector)
    return peers.same(lambda: value_and_grad(x))


def buropt_value() -> Contestant:
    return _eager(bo.Value)


def micrograd() -> Contestant:
    return _eager(peers.need("micrograd.engine").Value)


def _eager(value: Any) -> Contestant:
    def call() -> Any:
        a, b = value(A), value(B)
        result = graph(a, b, lambda t: t.relu())
        result.backward()
        return result.data, a.grad, b.grad

    return peers.same(call)


def casadi() -> Contestant:
    ca = peers.need("casadi")
    x = ca.SX.sym("x", 2)
    f = graph(x[0], x[1], lambda t: ca.fmax(t, 0))
    function = ca.Function("small", [x], [f, ca.gradient(f, x)])
    buffered = peers.CasadiCall(function, np.array([A, B]))
    return Contestant(buffered.call, buffered.answer)


def jax() -> Contestant:
    module, jnp = peers.jax(x64=True)
    value_and_grad = module.jit(
        module.value_and_grad(lambda x: graph(x[0], x[1], lambda t: jnp.maximum(t, 0.0)))
    )
    x = np.array([A, B])

    def call() -> Any:
        value, gradient = value_and_grad(x)
        gradient.block_until_ready()
        return value, gradient

    return peers.same(call)


def torch() -> Contestant:
    module = peers.torch()
    x = module.tensor([A, B], dtype=module.float64, requires_grad=True)

    def call() -> Any:
        x.grad = None
        value = graph(x[0], x[1], module.relu)
        value.backward()
        return value.detach(), x.grad

    return peers.same(call)


def autograd() -> Contestant:
    autograd_numpy = peers.need("autograd.numpy")
    value_and_grad = peers.need("autograd").value_and_grad(
        lambda x: graph(x[0], x[1], lambda t: autograd_numpy.maximum(t, 0.0))
    )
    x = np.array([A, B])
    return peers.same(lambda: value_and_grad(x))
