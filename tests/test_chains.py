"""Long graphs: compiled in a time about proportional to their length, without recursion."""

import time

import numpy as np
import pytest
from threads import on_a_small_stack

import buropt as bo
from buropt import _core


def chain(n):
    """N scalar operations, one after the other, and the derivative 0.999 ** (n / 2)."""

    def f(x):
        for _ in range(n // 2):
            x = x * 0.999 + 0.001
        return x

    return f


def test_a_hundred_thousand_operations_in_a_thread_with_a_small_stack():
    n = 100_000
    value, slope = on_a_small_stack(lambda: bo.value_and_grad(chain(n))(2.0), 256)
    assert slope == pytest.approx(0.999 ** (n // 2), rel=1e-9)
    assert value == pytest.approx(1 + 0.999 ** (n // 2), rel=1e-9)


def million(n=1_000_000):
    """A graph of that many operations, written without Python's own cost."""
    builder = _core.Builder("float64")
    x = builder.input("x", ())
    factor = builder.constant(np.asarray(1 - 1e-6))
    node = x
    for _ in range(n):
        node = builder.emit("multiply", [node, factor])
    (slope,) = builder.grad(node, [x])
    return _core.Program(builder.build([node, slope], ["value", "slope"]))(2.0)


def test_a_million_operations_in_a_thread_with_a_small_stack():
    value, slope = on_a_small_stack(million, 256)
    assert slope == pytest.approx(np.exp(-1), rel=1e-6)
    assert value == pytest.approx(2 * slope, rel=1e-9)


def seconds(function):
    begin = time.process_time()
    function()
    return time.process_time() - begin


def test_the_time_to_compile_is_about_proportional_to_the_length():
    """Ten times as long takes at most 25 times the time, where quadratic would take 100."""
    short = min(seconds(lambda: bo.grad(chain(3000))(2.0)) for _ in range(3))
    long = seconds(lambda: bo.grad(chain(30000))(2.0))
    assert long < 25 * short + 0.5


def test_a_recurrence_of_a_thousand_steps():
    matrix = np.array([[0.9, 0.1], [-0.1, 0.9]])

    def f(x):
        for _ in range(1000):
            x = np.tanh(matrix @ x) + 0.01 * x
        return np.sum(x)

    x = np.array([0.3, -0.2])
    gradient = bo.grad(f)(x)
    h = 1e-6
    for k in range(2):
        e = h * np.eye(2)[k]
        assert gradient[k] == pytest.approx((f(x + e) - f(x - e)) / (2 * h), rel=1e-5, abs=1e-8)


def test_a_network_of_a_hundred_layers():
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((16, 16)) * 0.2 for _ in range(100)]
    v = rng.standard_normal(16)

    def f(weights):
        h = v
        for w in weights:
            h = h + np.tanh(w @ h)
        return np.sum(h**2)

    gradients = bo.grad(f)(weights)
    direction = [rng.standard_normal(w.shape) for w in weights]
    h = 1e-6

    def along(t):
        return f([w + t * d for w, d in zip(weights, direction, strict=True)])

    up, down = along(h), along(-h)
    slope = sum(np.vdot(g, d) for g, d in zip(gradients, direction, strict=True))
    assert slope == pytest.approx((up - down) / (2 * h), rel=1e-6)


def test_many_single_elements_of_a_long_array():
    n = 20_000
    gradient = bo.grad(lambda x: sum(x[i] * x[i] for i in range(n)))(np.ones(n))
    assert np.array_equal(gradient, np.full(n, 2.0))
