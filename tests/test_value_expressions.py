"""buropt.Value: any expression agrees with the compiled graph of the same function."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

import buropt as bo
from buropt import Value

BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / (b * b + 0.5),
    "**": lambda a, b: (a * a + 0.5) ** b,
    "+1": lambda a, b: 1.5 + a - 0.25 * b,
    "1-": lambda a, b: (1 - a) / 2 + 3 / (1 + b**2),
}
UNARY = {
    "relu": (lambda v: v.relu(), lambda x: np.maximum(x, 0)),
    "tanh": (lambda v: v.tanh(), np.tanh),
    "exp": (lambda v: (-v * v).exp(), lambda x: np.exp(-x * x)),
    "log": (lambda v: (1 + v**2).log(), lambda x: np.log(1 + x**2)),
    "sqrt": (lambda v: (1 + v * v).sqrt(), lambda x: np.sqrt(1 + x * x)),
    "sin": (lambda v: v.sin(), np.sin),
    "cos": (lambda v: v.cos(), np.cos),
    "sigmoid": (lambda v: v.sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    "abs": (abs, np.abs),
    "cube": (lambda v: v**3, lambda x: x**3),
    "reciprocal": (lambda v: (2 + abs(v)) ** -1, lambda x: (2 + np.abs(x)) ** -1),
    "real power": (lambda v: (1 + v**2) ** 1.25, lambda x: (1 + x**2) ** 1.25),
    "base": (lambda v: 1.5**v, lambda x: 1.5**x),
}


def evaluate(instructions, inputs, which):
    """The last of the values that a list of instructions makes, each of the last few before it."""
    values = list(inputs)
    for name, i, j in instructions:
        a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
        values.append(BINARY[name](a, b) if name in BINARY else UNARY[name][which](a))
    return values[-1], values


@given(
    st.lists(
        st.tuples(st.sampled_from([*BINARY, *UNARY]), st.integers(0, 3), st.integers(0, 5)),
        min_size=1,
        max_size=14,
    ),
    st.lists(st.floats(-2, 2), min_size=3, max_size=3),
)
@example([("relu", 0, 0), ("*", 0, 1)], [0.0, 1.0, -1.0])
def test_any_expression_agrees_with_the_compiled_graph(instructions, point):
    arguments = [Value(number) for number in point]
    result, values = evaluate(instructions, arguments, 0)
    assume(all(abs(value.data) < 1e3 for value in values))
    # At a kink two implementations may round to different sides of it.
    assume(all(abs(value.data) > 1e-6 or value in arguments for value in values))
    result.backward()
    assume(all(abs(value.grad) < 1e6 for value in values))

    def traced(*x):
        return evaluate(instructions, x, 1)[0] + 0 * (x[0] + x[1] + x[2])

    value, gradients = bo.value_and_grad(traced, argnums=(0, 1, 2))(*point)
    kinks = {"relu", "abs", "reciprocal"} & {name for name, _, _ in instructions}
    assume(not kinks or 0.0 not in point)  # relu of micrograd: 0 at 0; maximum: a half
    np.testing.assert_allclose(result.data, value, rtol=1e-11, atol=1e-11)
    got = [argument.grad for argument in arguments]
    np.testing.assert_allclose(got, gradients, rtol=1e-8, atol=1e-8)
