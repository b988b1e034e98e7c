"""Derivatives of derivatives: each is taken by its own variables, whatever else depends on them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buropt as bo
from buropt.trace import TraceError

EXACT = {"rtol": 1e-12, "atol": 1e-15}
X = np.array([0.3, -0.8, 1.1])


def test_gradient_of_a_function_of_a_gradient():
    def penalty(x):
        gradient = bo.grad(lambda y: np.sum(np.sin(y) * y))(x)
        value, inner = bo.value_and_grad(lambda g: np.sum(g**3))(gradient)
        return value + inner @ inner

    bo.check_grads(penalty, X)


@given(order=st.integers(1, 5), x=st.floats(-1, 1))
def test_derivatives_of_any_order(order, x):
    derivative = np.poly1d([1.0, -2.0, 0.5, 3.0, 1.0, 2.0])
    function = lambda x: x**5 - 2 * x**4 + 0.5 * x**3 + 3 * x**2 + x + 2  # noqa: E731
    for _ in range(order):
        function, derivative = bo.grad(function), derivative.deriv()
    assert function(x) == pytest.approx(derivative(x), rel=1e-12, abs=1e-12)


# d/dx of what an inner derivative gives: a function of x, and its derivative.
MIXED = {
    "closure over the variable": (lambda x: bo.grad(lambda y: x * y)(x), lambda x: 1.0),
    "closure over a function of it": (
        lambda x: bo.grad(lambda y: x**2 * y**2)(x),
        lambda x: 6 * x**2,
    ),
    "an argument that depends on another": (
        lambda x: bo.grad(lambda a, b: a * b)(x, x**2),
        lambda x: 2 * x,
    ),
    "by a constant": (lambda x: bo.grad(lambda y, z: y**2 * z)(3.0, x), lambda x: 6.0),
    "by a constant, x only in the closure": (
        lambda x: bo.grad(lambda y: y**2 * x)(3.0),
        lambda x: 6.0,
    ),
    "by the same value twice": (
        lambda x: sum(bo.grad(lambda a, b: a * b**2, argnums=(0, 1))(x, x)),
        lambda x: 6 * x,
    ),
    "two derivatives of one value": (
        lambda x: bo.grad(np.sin)(x) * bo.grad(np.exp)(x),
        lambda x: (np.cos(x) - np.sin(x)) * np.exp(x),
    ),
    "three deep": (
        lambda x: bo.grad(lambda y: y * bo.grad(lambda z: x * y * z**2)(y))(x),
        lambda x: 18 * x**2,
    ),
    "forward in reverse": (
        lambda x: bo.jvp(lambda y: x * y**3, (x,), (x**2,))[1],
        lambda x: 15 * x**4,
    ),
    "reverse with a cotangent that depends on x": (
        lambda x: bo.vjp(lambda y: np.sin(y) * x, 2.0)[1](x)[0],
        lambda x: 2 * x * np.cos(2.0),
    ),
    "a product with the Hessian": (
        lambda x: bo.hvp(lambda y: y**4 * x)(x, x),
        lambda x: 48 * x**3,
    ),
    "a Hessian": (lambda x: bo.hessian(lambda y: y**4)(x) * x, lambda x: 36 * x**2),
    "a Jacobian": (
        lambda x: np.sum(bo.jacobian(lambda y: np.stack([y**2, x * y]))(x)),
        lambda x: 3.0,
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_each_derivative_has_its_own_variables(name):
    function, expected = MIXED[name]
    x = 0.7
    np.testing.assert_allclose(bo.grad(function)(x), expected(x), **EXACT)
    np.testing.assert_allclose(bo.jvp(function, (x,), (2.0,))[1], 2 * expected(x), **EXACT)
    bo.check_grads(function, x, order=1)


def test_all_ways_to_a_hessian_agree():
    def f(x):
        return np.sum(np.exp(x[:-1] * x[1:])) + x[0] * np.sum(x**3)

    v = np.array([1.0, -2.0, 0.5])
    hessian = bo.hessian(f)(X)
    np.testing.assert_array_equal(hessian, hessian.T)
    for other in (
        bo.jacobian(bo.grad(f))(X),
        bo.jacobian(lambda x: bo.vjp(f, x)[1](1.0)[0])(X),
        bo.jacobian(bo.jacobian(f))(X),
        bo.grad(lambda x: np.sum(bo.grad(f)(x) * np.eye(3)[0]))(X) * np.ones((3, 1)),
    ):
        np.testing.assert_allclose(other[0], hessian[0], **EXACT)
    for product in (
        bo.hvp(f)(X, v),
        bo.grad(lambda x: bo.grad(f)(x) @ v)(X),
        bo.grad(lambda x: bo.jvp(f, (x,), (v,))[1])(X),
        bo.jvp(bo.grad(f), (X,), (v,))[1],
        bo.jvp(lambda x: bo.vjp(f, x)[1](1.0)[0], (X,), (v,))[1],
    ):
        np.testing.assert_allclose(product, hessian @ v, **EXACT)


def test_a_matrix_of_derivatives_inside_of_a_function():
    """Newton's decrement with a 2 by 2 Hessian, and its own gradient."""

    def f(x):
        return np.sum(np.exp(x) + np.exp(-2 * x)) + x[0] * x[1]

    def decrement(x):
        g, h = bo.grad(f)(x), bo.hessian(f)(x)
        determinant = h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]
        adjugate = np.stack([np.stack([h[1, 1], -h[0, 1]]), np.stack([-h[1, 0], h[0, 0]])])
        return g @ (adjugate @ g) / determinant

    bo.check_grads(decrement, np.array([0.4, -0.3]))


# ---- in the loss of a sample


@pytest.mark.parametrize("name", ["closure", "argument", "hvp", "jvp", "by data"])
def test_derivatives_in_the_loss_of_a_sample(name):
    rng = np.random.default_rng(0)
    data, x = rng.standard_normal((40, 3)), rng.standard_normal(3)

    def inner(z, a):
        return np.sum(np.sin(z * a)) * z[0]

    losses = {
        "closure": lambda x, a: np.sum(bo.grad(lambda z: inner(z, a))(x) ** 2),
        "argument": lambda x, a: np.sum(bo.grad(inner)(x, a) ** 2),
        "hvp": lambda x, a: np.sum(bo.hvp(inner)(x, x, a) * a),
        "jvp": lambda x, a: bo.jvp(lambda z: inner(z, a), (x,), (a,))[1],
        "by data": lambda x, a: np.sum(bo.grad(inner, argnums=1)(x, a) ** 2) * x[1],
    }
    loss = losses[name]
    oracle = bo.compile(loss, x, data=(data,))
    value, gradient = oracle.value_and_grad(x)
    single = bo.value_and_grad(loss)
    values, gradients = zip(*(single(x, a) for a in data), strict=True)
    np.testing.assert_allclose(value, np.mean(values), rtol=1e-12)
    np.testing.assert_allclose(gradient, np.mean(gradients, axis=0), rtol=1e-11, atol=1e-13)
    bo.check_grads(loss, x, args=(data[0],), order=1)


def test_a_derivative_of_plain_arrays_inside_of_a_function_stays_a_number():
    seen = []

    def f(x):
        slope = bo.grad(np.sin)(0.0)
        seen.append(float(slope))
        return x * slope

    assert bo.grad(f)(2.0) == 1.0
    assert seen == [1.0]


def test_a_value_of_a_recording_that_is_over_is_refused():
    kept = []
    bo.grad(lambda x: kept.append(x) or x * 1.0)(2.0)
    with pytest.raises(TraceError, match="outside of that recording"):
        bo.grad(lambda y: y * kept[0])(1.0)


def test_out_cannot_be_written_while_tracing():
    gradient = bo.grad(np.sum)
    with pytest.raises(TraceError, match=r"grad\(sum\) is traced and cannot write into out="):
        bo.grad(lambda x: np.sum(gradient(x, out=np.empty(3)) * x))(X)


def test_a_mask_cannot_be_differentiated_by():
    with pytest.raises(TraceError, match=r"the argument m is a mask.* Instead: 1.0 \* m"):
        bo.grad(lambda x: bo.grad(lambda m: np.sum(m * 1.0))(x > 0)[0])(X)


@pytest.mark.parametrize("transform", [bo.grad, bo.vmap, bo.jacobian])
def test_an_outer_value_may_stand_on_either_side(transform):
    """Inner derivatives of constants, with the outer function's value to the left and right."""
    constants, x = np.ones((2, 3)), np.array([1.0, 2.0, 3.0])
    inner = {
        "left": lambda a: np.sum(transform(lambda b: np.sum(a * np.sin(b)))(constants)),
        "right": lambda a: np.sum(transform(lambda b: np.sum(np.sin(b) * a))(constants)),
        "deep": lambda a: bo.grad(
            lambda b: np.sum(transform(lambda c: np.sum(a * (b * np.sin(c))))(constants)) * b
        )(1.0),
    }
    gradients = {name: bo.grad(f)(x) for name, f in inner.items()}
    np.testing.assert_allclose(gradients["left"], gradients["right"])
    np.testing.assert_allclose(gradients["deep"], 2 * gradients["right"])
    for f in inner.values():
        np.testing.assert_allclose(bo.vmap(f)(np.stack([x, 2 * x]))[1], f(2 * x))


def test_a_branch_not_taken_that_overflows_at_the_second_order():
    """Its value and its slope are numbers, the slope's derivative is infinite."""
    x, v = np.array([0.70894, 0.3]), np.array([1.0, 2.0])
    for f in (
        lambda x: np.sum(np.where(x < -9, np.exp(1e3 * x), x**2)),
        lambda x: np.sum(np.where(x < -9, np.exp(1e3 * x) * np.sin(x), x**2)),
        lambda x: np.where(x[0] < -9, np.sum(np.exp(1e3 * x) * x), x @ x),
        lambda x: np.where(x[0] < -9, np.sum(np.where(x < -9, np.exp(1e3 * x), 0.0)), x @ x),
    ):
        np.testing.assert_array_equal(bo.hvp(f)(x, v), 2 * v)
        np.testing.assert_array_equal(bo.hessian(f)(x), 2 * np.eye(2))
        np.testing.assert_array_equal(bo.grad(lambda x: bo.grad(f)(x) @ v)(x), 2 * v)  # noqa: B023
