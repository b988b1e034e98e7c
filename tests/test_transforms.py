"""Graph transforms: reverse against forward mode, several cotangents at once, copied variables."""

import numpy as np
import pytest
import scipy.special

import buropt as bo
from buropt import _core
from buropt.trace import Trace

RNG = np.random.default_rng(0)
A, B, C = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 2)), RNG.standard_normal(4)

FUNCTIONS = {
    "matmul": (lambda a, b: np.tanh(a @ b), (A, B)),
    "broadcast": (lambda a, c: np.exp(a * c) / (1 + c**2), (A, C)),
    "where": (lambda a, c: np.where(a > 0, a * c, np.sqrt(np.abs(c))), (A, C)),
    "concatenate": (lambda a, c: np.concatenate([a.T @ a[:, 0], c[::-1], [1.0, 2.0]]), (A, C)),
    "slices": (lambda a: np.logaddexp(a[0], a[1]) * a[2, 1] + a[0] ** 3, (A,)),
    "expit": (lambda c: scipy.special.expit(c) * np.sum(c), (C,)),
    "ties": (lambda a: np.maximum(a, a.T[:, :1].T) + np.abs(a), (A,)),
}


def transforms(function, arrays):
    """(jvp, vjps) as a function of the arrays, tangents and the cotangent."""
    with Trace() as trace:
        inputs = [trace.input(f"x{k}", a.shape) for k, a in enumerate(arrays)]
        tangents = [trace.input(f"t{k}", a.shape) for k, a in enumerate(arrays)]
        output = trace.lift(function(*inputs))
        cotangent = trace.input("u", output.shape)
        builder = trace.builder
        wrt = [x.node for x in inputs]
        forward = builder.jvp([output.node], wrt, [t.node for t in tangents])
        reverse = builder.vjp([output.node], [cotangent.node], wrt)
        graph = builder.build(forward + reverse, ["jvp"] + ["vjp"] * len(reverse))
    return _core.Program(graph), output.shape


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_is_the_transpose_of_reverse(name):
    function, arrays = FUNCTIONS[name]
    program, shape = transforms(function, arrays)
    tangents = [RNG.standard_normal(a.shape) for a in arrays]
    cotangent = RNG.standard_normal(shape)
    forward, *reverse = program(*arrays, *tangents, cotangent)
    expected = sum(np.vdot(r, t) for r, t in zip(reverse, tangents, strict=True))
    assert np.vdot(forward, cotangent) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_against_differences(name):
    function, arrays = FUNCTIONS[name]
    program, shape = transforms(function, arrays)
    tangents = [RNG.standard_normal(a.shape) for a in arrays]
    forward = program(*arrays, *tangents, np.zeros(shape))[0]
    h = 1e-6
    up, down = (
        function(*[a + s * h * t for a, t in zip(arrays, tangents, strict=True)]) for s in (1, -1)
    )
    np.testing.assert_allclose(forward, (up - down) / (2 * h), rtol=1e-7, atol=1e-8)


def test_a_cotangent_of_another_shape_is_refused():
    with Trace() as trace:
        x = trace.input("x", (3,))
    with pytest.raises(ValueError, match=r"an output of shape \(3,\) has shape \(2,\)"):
        trace.builder.vjp([x.node], [trace.builder.constant(np.ones(2))], [x.node])
    with pytest.raises(ValueError, match=r"a value of shape \(3,\) has shape \(2,\)"):
        trace.builder.jvp([x.node], [x.node], [trace.builder.constant(np.ones(2))])


def test_a_copy_of_a_variable_is_differentiated_by_alone():
    """d/dy of x * y at y = x is x, not 2 x; the built graph has one variable again."""
    with Trace() as trace:
        x = trace.input("x", (3,))
        builder = trace.builder
        y = builder.emit("independent", [x.node])
        product = builder.emit("multiply", [x.node, y])
        total = builder.emit("sum", [product], {"axes": [0], "keepdims": 0})
        (by_y,) = builder.grad(total, [y])
        both = builder.emit("independent", [x.node])
        assert both != y  # never merged
        graph = builder.build([by_y, total], ["by_y", "total"])
    by_y, total = _core.Program(graph)(np.array([1.0, 2.0, 3.0]))
    assert by_y.tolist() == [1, 2, 3]
    assert total == 14
    assert "independent" not in str(graph)


def test_an_array_read_in_many_pieces_gets_its_gradient_in_one_pass():
    with Trace() as trace:
        x = trace.input("x", (200,))
        total = trace.call(lambda x: sum(x[i] * x[i + 1] for i in range(199)), x)
        graph = trace.builder.build(trace.builder.grad(total.node, [x.node]), ["gradient"])
    assert str(graph).count("slices_vjp") == 1
    assert "slice_vjp" not in str(graph)
    values = RNG.standard_normal(200)
    expected = np.zeros(200)
    expected[:-1] += values[1:]
    expected[1:] += values[:-1]
    np.testing.assert_allclose(_core.Program(graph)(values)[0], expected, rtol=1e-15)


def test_pieces_that_overlap_add_and_have_second_derivatives():
    def f(x):
        return x[0] * x[1] + np.sum(x[1:] ** 3) + np.sum(x[::2] * x[::-2])

    x = np.array([0.5, -1.0, 2.0, 3.0])
    gradient = bo.grad(f)
    for k in range(4):
        h = 1e-6 * np.eye(4)[k]
        difference = (f(x + h) - f(x - h)) / 2e-6
        assert gradient(x)[k] == pytest.approx(difference, rel=1e-8)
        row = bo.grad(lambda x, k=k: gradient(x)[k])(x)
        np.testing.assert_allclose(
            row, (gradient(x + h) - gradient(x - h)) / 2e-6, rtol=1e-8, atol=1e-8
        )
