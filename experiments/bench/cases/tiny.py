"""The tiny graph of the BurTorch paper (arXiv 2503.13795): value and both derivatives.

a = -41, b = 2: c = a + b, d = a b + b^3, e = c - d, f = e^2, g = f / 2, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import buropt as bo
from experiments.bench import peers
from experiments.bench.contest import Case, Contestant

A, B = -41.0, 2.0


def graph(a: Any, b: Any) -> Any:
    """The function, for any kind of number."""
    c = a + b
    d = a * b + b**3
    e = c - d
    f = e**2
    return f / 2


def of_vector(x: Any) -> Any:
    """The function of one vector (2,)."""
    return graph(x[0], x[1])


def cases(quick: bool) -> Iterator[Case]:
    """A bound call, where peers have one, and a call with a NumPy array."""
    yield Case(
        "tiny",
        "bound call",
        {"buropt": buropt_bound, "numpy": numpy, "casadi": casadi},
        tolerance=1e-14,
    )
    yield Case(
        "tiny",
        "value_and_grad(x)",
        {
            "buropt": buropt,
            "numpy": numpy,
            "jax": jax,
            "torch": torch,
            "tensorflow": tensorflow,
            "autograd": autograd,
            "micrograd": micrograd,
            "mlx": mlx,
            "heyoka": heyoka,
        },
        tolerance=1e-14,
    )


def numpy() -> Contestant:
    """Derivatives by hand, in plain Python floats."""

    def call() -> tuple[float, float, float]:
        a, b = A, B
        e = (a + b) - (a * b + b * b * b)
        return 0.5 * e * e, e * (1.0 - b), e * (1.0 - a - 3.0 * b * b)

    return peers.same(call)


def buropt_bound() -> Contestant:
    x, g = np.array([A, B]), np.empty(2)
    call = bo.compile(of_vector, x).bind(x, g)
    return Contestant(call, lambda: peers.flat(call(), g))


def buropt() -> Contestant:
    x = np.array([A, B])
    value_and_grad = bo.value_and_grad(of_vector)
    return peers.same(lambda: value_and_grad(x))


def casadi() -> Contestant:
    ca = peers.need("casadi")
    x = ca.SX.sym("x", 2)
    f = of_vector(x)
    function = ca.Function("tiny", [x], [f, ca.gradient(f, x)])
    buffered = peers.CasadiCall(function, np.array([A, B]))
    return Contestant(buffered.call, buffered.answer)


def jax() -> Contestant:
    module, _ = peers.jax(x64=True)
    value_and_grad = module.jit(module.value_and_grad(of_vector))
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
        value = of_vector(x)
        value.backward()
        return value.detach(), x.grad

    return peers.same(call)


def tensorflow() -> Contestant:
    tf = peers.need("tensorflow")
    x = tf.constant([A, B], tf.float64)

    @tf.function  # type: ignore[untyped-decorator]
    def value_and_grad(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = of_vector(x)
        return value, tape.gradient(value, x)

    return peers.same(lambda: tuple(value_and_grad(x)))


def autograd() -> Contestant:
    value_and_grad = peers.need("autograd").value_and_grad(of_vector)
    x = np.array([A, B])
    return peers.same(lambda: value_and_grad(x))


def micrograd() -> Contestant:
    value = peers.need("micrograd.engine").Value

    def call() -> Any:
        a, b = value(A), value(B)
        result = graph(a, b)
        result.backward()
        return result.data, a.grad, b.grad

    return peers.same(call)


def mlx() -> Contestant:
    mx = peers.need("mlx.core")
    mx.set_default_device(mx.cpu)
    value_and_grad = mx.compile(mx.value_and_grad(of_vector))
    x = mx.array([A, B], mx.float64)

    def call() -> Any:
        value, gradient = value_and_grad(x)
        mx.eval(value, gradient)
        return value, gradient

    return peers.same(call)


def heyoka() -> Contestant:
    hy = peers.need("heyoka")
    a, b = hy.make_vars("a", "b")
    value = graph(a, b)
    function = hy.cfunc([value, hy.diff(value, a), hy.diff(value, b)], vars=[a, b])
    x, out = np.array([A, B]), np.empty(3)
    return peers.same(lambda: function(x, outputs=out))
