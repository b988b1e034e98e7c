"""buropt.Value: micrograd's examples with the import changed, numbers and special points."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import buropt as bo
from buropt import Value

INF, NAN = math.inf, math.nan


def slopes(f, *point):
    """The value of f and the derivatives by its arguments."""
    arguments = [Value(number) for number in point]
    result = f(*arguments)
    result.backward()
    return result.data, *(argument.grad for argument in arguments)


# micrograd's own examples


def readme_graph(a, b, relu):
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + relu(b + a)
    d += 3 * d + relu(b - a)
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    return g


def test_readme_of_micrograd():
    a, b = Value(-4.0), Value(2.0)
    g = readme_graph(a, b, lambda v: v.relu())
    assert f"{g.data:.4f}" == "24.7041"
    g.backward()
    assert f"{a.grad:.4f}" == "138.8338"
    assert f"{b.grad:.4f}" == "645.5773"
    compiled = bo.value_and_grad(
        lambda a, b: readme_graph(a, b, lambda x: np.maximum(x, 0)), argnums=(0, 1)
    )
    value, gradients = compiled(-4.0, 2.0)
    np.testing.assert_allclose([g.data, a.grad, b.grad], [value, *gradients], rtol=1e-14)


def test_sanity_check_of_micrograd():
    x = Value(-4.0)
    z = 2 * x + 2 + x
    q = z.relu() + z * x
    h = (z * z).relu()
    y = h + q + q * x
    y.backward()
    assert (y.data, x.grad) == (-20.0, 46.0)


def test_several_calls_of_backward_accumulate_as_in_micrograd():
    """Its numbers: gradients of what lies between are not cleared by a second call."""
    a, b = Value(3.0), Value(-2.0)
    c, d = a - b, a / (b * b)
    e, f = 1 - c, 2 / (d + 1)
    g = (-e * f + c**2 - d).relu() + 4.0 / c - c / 8
    expected = [
        (9.954795918367346, -13.56704081632653, 10.857857142857142, 4.0),
        (82.05275510204082, -134.06367346938777, 80.12857142857143, 28.0),
        (380.091530612245, -744.0735714285715, 339.2071428571429, 112.0),
    ]
    for numbers in expected:
        g.backward()
        np.testing.assert_allclose([v.grad for v in (a, b, c, f)], numbers, rtol=1e-14)
        assert g.grad == 1


class Neuron:
    def __init__(self, n_inputs, nonlinear):
        self.weights = [Value(random.uniform(-1, 1)) for _ in range(n_inputs)]
        self.bias = Value(0)
        self.nonlinear = nonlinear

    def __call__(self, x):
        activation = sum((w * xi for w, xi in zip(self.weights, x, strict=True)), self.bias)
        return activation.relu() if self.nonlinear else activation


class MLP:
    def __init__(self, n_inputs, sizes):
        widths = [n_inputs, *sizes]
        self.layers = [
            [Neuron(widths[k], k + 1 < len(sizes)) for _ in range(widths[k + 1])]
            for k in range(len(sizes))
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0]

    def parameters(self):
        return [
            p for layer in self.layers for neuron in layer for p in [*neuron.weights, neuron.bias]
        ]


def moons(n):
    """Two interleaved half circles, labelled -1 and 1."""
    angles = np.linspace(0, np.pi, n)
    upper = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([upper, [1, 0.5] - upper]), np.repeat([-1, 1], n)


def test_a_network_of_neurons_learns_the_moons():
    random.seed(3)
    model = MLP(2, [8, 8, 1])
    X, y = moons(16)
    for step in range(80):
        inputs = [list(map(Value, row)) for row in X]
        scores = list(map(model, inputs))
        losses = [(1 + -yi * score).relu() for yi, score in zip(y, scores, strict=True)]
        data_loss = sum(losses) * (1.0 / len(losses))
        loss = data_loss + 1e-4 * sum(p * p for p in model.parameters())
        for p in model.parameters():
            p.grad = 0
        loss.backward()
        for p in model.parameters():
            p.data -= (0.5 - 0.4 * step / 80) * p.grad
    accuracy = [(yi > 0) == (score.data > 0) for yi, score in zip(y, scores, strict=True)]
    assert sum(accuracy) / len(accuracy) > 0.95
    assert loss.data < 0.3


def test_the_graph_can_be_drawn():
    """What micrograd's notebook walks through: every operand is there, constants as well."""
    x = Value(1.0, label="x")
    y = (x * 2 + 1).relu()
    y.backward()
    nodes, edges = set(), set()

    def build(v):
        if v not in nodes:
            nodes.add(v)
            for child in v._prev:
                edges.add((child, v))
                build(child)

    build(y)
    assert sorted((n.data, n.grad, n._op, n.label) for n in nodes) == [
        (1.0, 1.0, "", ""),
        (1.0, 2.0, "", "x"),
        (2.0, 1.0, "", ""),
        (2.0, 1.0, "*", ""),
        (3.0, 1.0, "+", ""),
        (3.0, 1.0, "ReLU", ""),
    ]
    assert len(edges) == 5
    assert y._prev == y._prev  # the same objects each time
    y.backward()  # constants that have been looked at go on collecting
    assert sorted(child.grad for child in next(iter(y._prev))._prev) == [3.0, 3.0]


def test_operations_have_micrograds_names():
    v = Value(2.0)
    shown = [v + 1, v - 1, 1 - v, v * v, v / 2, 2 / v, -v, v**3, v**0.5, v**v, v.exp(), abs(v)]
    names = ["+", "+", "+", "*", "*", "*", "*", "**3", "**0.5", "**", "exp", "abs"]
    assert [result._op for result in shown] == names
    assert (v**3)._prev == {v}
    assert sorted(child.data for child in (v - 7)._prev) == [-7.0, 2.0]
    for name in ("tanh", "exp", "log", "sqrt", "sin", "cos", "sigmoid"):
        assert getattr(v, name)()._op == name


def test_constructor_of_micrograd():
    a, b = Value(1.0), Value(2)
    made = Value(3.0, (a, b), "max", label="m")
    assert (made.data, made._prev, made._op, made.label) == (3.0, {a, b}, "max", "m")
    made.backward()  # operands given for show receive nothing
    assert (made.grad, a.grad, b.grad) == (1, 0, 0)
    a.label = "a"
    assert (a.label, b.label, b._prev, b._op) == ("a", "", set(), "")
    assert repr(b) == "Value(data=2.0, grad=0.0)"


# Numbers


def test_both_sides_take_numbers_of_python_and_numpy():
    numbers = [3, True, 2.5, np.float64(2.5), np.float32(0.5), np.int64(3), np.uint8(7), np.True_]
    for number in numbers:
        v = Value(5.0)
        results = [v + number, number + v, v - number, number - v, v * number, number * v]
        results += [v / number, number / v, v**number, number**v]
        c, x = float(number), 5.0
        expected = [x + c, c + x, x - c, c - x, x * c, c * x, x / c, c / x, x**c, c**x]
        assert [type(result) for result in results] == [Value] * 10
        np.testing.assert_allclose([float(result) for result in results], expected, rtol=1e-15)


def test_sums_start_at_an_integer():
    values = [Value(k) for k in range(5)]
    total = sum(values)
    total.backward()
    assert total.data == 10
    assert [v.grad for v in values] == [1] * 5


def test_quotients_and_differences_are_correctly_rounded():
    assert (Value(49) / Value(49)).data == (Value(49) / 49).data == (49 / Value(49)).data == 1
    for x, y in [(1.0, 3.0), (-7.0, 0.1), (1e300, 3e-5)]:
        assert (Value(x) / Value(y)).data == x / y
        assert (Value(x) - Value(y)).data == x - y


def test_order_is_that_of_the_data_and_equality_that_of_the_object():
    one, two, other = Value(1), Value(2), Value(2)
    assert one < two <= other
    assert two > 1.5 >= one
    assert np.float64(3) > two
    assert max(one, two) is two
    assert sorted([two, one]) == [one, two]
    assert not Value(NAN) < 1
    assert two == two
    assert two != other
    assert two != 2
    assert len({one, two, other, one}) == 3


def test_branches_follow_the_data():
    def collatz(v):
        steps = 0
        while v > 1:
            v = v / 2 if float(v) % 2 == 0 else 3 * v + 1
            steps += 1
        return v * steps

    assert slopes(collatz, 6.0) == (8.0, 8 * 9 / 2**6)


def test_data_and_grad_can_be_set():
    v, w = Value(2.0), Value(3.0)
    product = v * w
    w.data += 1
    product.backward()
    assert (v.grad, w.grad) == (4.0, 2.0)  # what the operands hold when backward() is called
    v.grad = 0
    w.zero_grad()
    assert (v.grad, w.grad, product.grad) == (0, 0, 1)


def test_one_step_by_hand():
    v = Value(3.0)
    square = v**2
    square.grad = 10
    square._backward()
    assert v.grad == 60


def test_numpy_functions_take_values():
    v, w = Value(0.5), Value(-1.0)
    assert np.tanh(v).data == pytest.approx(math.tanh(0.5), rel=1e-15)
    assert np.maximum(v, w) is v
    products = np.array([1.0, 2.0]) * v
    assert [product.data for product in products] == [0.5, 1.0]
    total = np.sum(np.array([v, w]) * np.array([3.0, 4.0]))
    total.backward()
    assert (v.grad, w.grad) == (3.0, 4.0)


# Special points: docs/conventions.md


@pytest.mark.parametrize(
    ("f", "x", "value", "slope"),
    [
        (lambda v: v.relu(), 0.0, 0, 0),
        (lambda v: v.relu(), NAN, NAN, 0),
        (abs, 0.0, 0, 0),
        (abs, -2.0, 2, -1),
        (lambda v: v**0, 0.0, 1, 0),
        (lambda v: v**0, NAN, 1, 0),
        (lambda v: v**0.0, INF, 1, 0),
        (lambda v: v**1, 0.0, 0, 1),
        (lambda v: v**2, -3.0, 9, -6),
        (lambda v: v**2.0, -3.0, 9, -6),
        (lambda v: v**3, -2.0, -8, 12),
        (lambda v: v**-2, -2.0, 0.25, 0.25),
        (lambda v: v**1.5, 0.0, 0, 0),
        (lambda v: v**0.5, 0.0, 0, INF),
        (lambda v: v**1.5, -1.0, NAN, NAN),
        (lambda v: v**65, -1.0, -1, 65),
        (lambda v: v.sqrt(), 0.0, 0, INF),
        (lambda v: v.sqrt() ** 2, 0.0, 0, 0),  # no cotangent, no slope
        (lambda v: 0 * v.log(), 0.0, NAN, 0),
        (lambda v: v.log(), 0.0, -INF, INF),
        (lambda v: 1 / v, 0.0, INF, -INF),
        (lambda v: v / 0, 1.0, INF, INF),
        (lambda v: v.exp(), 800.0, INF, INF),
        (lambda v: v.sigmoid(), 50.0, 1, math.exp(-50)),
        (lambda v: v.sigmoid(), -800.0, 0, 0),
        (lambda v: v.tanh(), 30.0, 1, 4 * math.exp(-60)),
        (lambda v: v**v, 2.0, 4, 4 * (1 + math.log(2))),
        (lambda v: v / v, 7.0, 1, 0),
        (lambda v: 2**v, 3.0, 8, 8 * math.log(2)),
        (lambda v: 0**v, 1.0, 0, 0),
    ],
)
def test_special_points(f, x, value, slope):
    np.testing.assert_allclose(slopes(f, x), (value, slope), rtol=1e-14, atol=0)


def test_traced_exponents():
    assert slopes(lambda a, b: a**b, 0.0, 1.0) == (0, 1, 0)
    assert slopes(lambda a, b: a**b, 0.0, 0.0) == (1, 0, 0)
    expected = (2, 1, 2 * math.log(2))
    np.testing.assert_allclose(slopes(lambda a, b: a**b, 2.0, 1.0), expected, rtol=1e-15)


def test_derivatives_of_a_quotient_neither_underflow_nor_overflow():
    np.testing.assert_allclose(
        slopes(lambda a, b: a / b, 1e200, 1e200), (1, 1e-200, -1e-200), rtol=1e-14
    )
    np.testing.assert_allclose(
        slopes(lambda a, b: a / b, 1e-200, 1e-200), (1, 1e200, -1e200), rtol=1e-14
    )


def test_shared_intermediates():
    x, y = Value(3.0), Value(-2.0)
    c, d = x * y, x + y
    out = (c - d) * c + d**2
    out.backward()
    assert (out.data, x.grad, y.grad) == (43, 34, -31)
    assert slopes(lambda a: (b := a * a) * b + b, 2.0) == (20, 36)
