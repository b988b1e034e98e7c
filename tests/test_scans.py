"""Products over axes, cumulative sums and products: derivatives of any order, zeros included."""

import math

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

import buropt as bo

INF = float("inf")

# Rows without, with one, with two and with three zeros.
ROWS = np.array(
    [
        [1.5, -0.5, 2.0, 0.25, -3.0],
        [1.5, 0.0, 2.0, 0.25, -3.0],
        [0.0, -0.5, 2.0, 0.25, 0.0],
        [0.0, 0.0, 2.0, -0.0, -3.0],
    ]
)
DIRECTIONS = np.linspace(-1, 1, ROWS.size).reshape(ROWS.shape)
BOTH_EXECUTORS = pytest.mark.parametrize("copies", [1, 500])


def product_along(x, v):
    """The product of the elements of x + t v, a polynomial in t."""
    result = Polynomial([1.0])
    for a, b in zip(x, v, strict=True):
        result = result * Polynomial([a, b])
    return result


def cumulated_along(x, v, weights):
    parts = [w * product_along(x[: k + 1], v[: k + 1]) for k, w in enumerate(weights)]
    return sum(parts, Polynomial([0.0]))


def derivative_along(f, v, order):
    """x -> the derivative of that order of t -> f(x + t v) at t = 0, by nested gradients."""
    for _ in range(order):
        f = (lambda inner: lambda x: np.sum(bo.grad(inner)(x) * v))(f)
    return f


@BOTH_EXECUTORS
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_a_product_at_zeros(order, copies):
    x, v = np.tile(ROWS, (copies, 1)), np.tile(DIRECTIONS, (copies, 1))
    lines = [product_along(*line) for line in zip(ROWS, DIRECTIONS, strict=True)]
    expected = copies * math.factorial(order) * sum(line.coef[order] for line in lines)
    along = derivative_along(lambda x: np.sum(np.prod(x, axis=1)), v, order - 1)
    gradient = bo.grad(along)(x)
    assert np.sum(gradient * v) == pytest.approx(expected, rel=1e-12)


@BOTH_EXECUTORS
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_cumulative_products_at_zeros(order, copies):
    x, v = np.tile(ROWS, (copies, 1)), np.tile(DIRECTIONS, (copies, 1))
    weights = np.array([0.5, -1.0, 2.0, 1.5, 1.0])
    lines = [cumulated_along(*line, weights) for line in zip(ROWS, DIRECTIONS, strict=True)]
    expected = copies * math.factorial(order) * sum(line.coef[order] for line in lines)
    along = derivative_along(lambda x: np.sum(weights * np.cumprod(x, axis=1)), v, order - 1)
    assert np.sum(bo.grad(along)(x) * v) == pytest.approx(expected, rel=1e-12)


@BOTH_EXECUTORS
def test_slopes_of_a_product(copies):
    x = np.tile(ROWS, (copies, 1))
    gradient = bo.grad(lambda x: np.sum(np.prod(x, axis=1)))(x)
    expected = np.array([[np.prod(np.delete(row, k)) for k in range(5)] for row in ROWS])
    np.testing.assert_allclose(gradient, np.tile(expected, (copies, 1)), rtol=1e-14)


def test_a_product_in_a_branch_that_is_not_taken():
    x = np.array([[INF, 0.0, 1.0], [2.0, 3.0, 4.0]])
    taken = np.array([False, True])
    for function in (lambda x: np.prod(x, axis=1), lambda x: np.cumprod(x, axis=1)[:, -1]):
        gradient = bo.grad(lambda x, f=function: np.sum(np.where(taken, f(x), 0.0)))(x)
        np.testing.assert_array_equal(gradient, [[0.0, 0.0, 0.0], [12.0, 8.0, 6.0]])


SCANS = {
    "prod": lambda m, x, axis: m.prod(x, axis=axis),
    "cumsum": lambda m, x, axis: m.cumsum(x, axis=axis),
    "cumprod": lambda m, x, axis: m.cumprod(x, axis=axis) if m is np else anp_cumprod(x, axis),
}


def anp_cumprod(x, axis):
    """Of nonzero elements, which is all that is needed here."""
    signs = np.cumprod(np.sign(np.asarray(getattr(x, "_value", x))), axis=axis)
    if axis is None:
        x = anp.reshape(x, -1)
    return anp.exp(anp.cumsum(anp.log(anp.abs(x)), axis=axis)) * signs


@given(
    name=st.sampled_from(sorted(SCANS)),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    data=st.data(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_value_and_gradient_over_any_axis(name, shape, data, dtype):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    x = (rng.choice([-1, 1], shape) * rng.uniform(0.5, 1.5, shape)).astype(dtype)
    function = SCANS[name]
    want = function(np, x.astype(float), axis)
    weights = np.linspace(-1, 1, np.size(want)).reshape(np.shape(want)).astype(dtype)
    value, gradient = bo.value_and_grad(lambda x: np.sum(weights * function(np, x, axis)))(x)
    tolerance = 500 * np.finfo(dtype).eps
    np.testing.assert_allclose(value, np.sum(weights * want), rtol=tolerance, atol=tolerance)
    expected = autograd.grad(lambda x: anp.sum(weights * function(anp, x, axis)))(x.astype(float))
    np.testing.assert_allclose(gradient, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axes", [(0, 2), (0, 1), None, (1,)])
def test_product_over_several_axes(axes):
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4))
    value, gradient = bo.value_and_grad(lambda x: np.sum(np.prod(x, axis=axes) ** 2))(x)
    total = np.prod(x, axis=axes, keepdims=True)
    assert value == pytest.approx(np.sum(total**2), rel=1e-13)
    np.testing.assert_allclose(gradient, 2 * total**2 / x, rtol=1e-13)


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_batched_is_sample_by_sample(name, axis):
    rng = np.random.default_rng(1)
    p, data = rng.standard_normal((3, 4)), rng.standard_normal((40, 3, 4))
    data[::5, 1, 2] = 0.0
    data[::10, 2, 1] = 0.0

    def loss(p, a):
        return np.sum(np.sin(SCANS[name](np, p * a, axis)))

    alone = [bo.value_and_grad(loss)(p, a) for a in data]
    value, gradient = bo.compile(loss, p, data=data).value_and_grad(p.ravel())
    assert value == pytest.approx(np.mean([value for value, _ in alone]), rel=1e-12)
    expected = np.mean([gradient for _, gradient in alone], axis=0).ravel()
    np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-13)


def test_cumulative_sum_of_parameters_alone_is_summed_first():
    def loss(p, a):
        return a * np.sum(np.cumsum(p) ** 2)

    p, data = np.arange(4.0), np.array([1.0, 2.0, 3.0])
    expected = 2 * np.cumsum(np.cumsum(p)[::-1])[::-1] * 2
    np.testing.assert_allclose(bo.compile(loss, p, data=data).grad(p), expected)


def test_forward_mode():
    x, v = ROWS, np.linspace(-1, 1, ROWS.size).reshape(ROWS.shape)

    def function(x):
        return np.cumprod(x, axis=1) * np.cumsum(x, axis=0)

    tangent = bo.jvp(function, (x,), (v,))[1]
    h = 1e-6
    np.testing.assert_allclose(
        tangent, (function(x + h * v) - function(x - h * v)) / (2 * h), rtol=1e-8, atol=1e-8
    )
    hvp = bo.jvp(bo.grad(lambda x: np.sum(function(x))), (x,), (v,))[1]
    reverse = bo.grad(lambda x: np.sum(bo.grad(lambda x: np.sum(function(x)))(x) * v))(x)
    np.testing.assert_allclose(hvp, reverse, rtol=1e-12, atol=1e-13)


def test_empty_axes():
    def f(x):
        empty = x[:0]
        product = np.prod(empty, axis=0)
        return np.sum(product * x) + np.sum(np.cumprod(empty, axis=0)) + np.sum(np.cumsum(empty, 0))

    value, gradient = bo.value_and_grad(f)(np.full((2, 3), 2.0))
    assert value == 12.0
    np.testing.assert_array_equal(gradient, np.ones((2, 3)))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.cumsum(x, axis=2), ValueError, "axis 2 is out of bounds"),
        (lambda x: np.diff(x, n=-1), ValueError, "n=-1 is negative"),
        (lambda x: np.gradient(x, 1.0, 2.0, 3.0)[0], TypeError, "3 steps for 2 axes"),
        (lambda x: np.gradient(x, edge_order=3)[0], ValueError, "edge_order must be 1 or 2"),
        (lambda x: np.gradient(x[:1], axis=0), ValueError, "fewer than 2 elements"),
    ],
)
def test_refused(function, error, text):
    with pytest.raises(error, match=text):
        bo.grad(lambda x: np.sum(function(x)))(np.ones((2, 3)))


def smooth(x):
    """Differences and integrals of a matrix, all in one number."""
    a, b = np.gradient(x, 0.5, edge_order=2)
    integral = np.trapezoid if hasattr(np, "trapezoid") else np.trapz  # noqa: NPY201
    return (
        np.sum(np.sin(a) * b)
        + np.sum(np.diff(x, n=2, axis=1, append=1.0) ** 3)
        + np.sum(np.ediff1d(x, to_end=x[0]) ** 2)
        + np.sum(integral(x, x**2, axis=1))
    )


def test_slopes_of_differences_and_integrals():
    x = np.random.default_rng(0).standard_normal((4, 5))
    step = 1e-20
    expected = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        moved = x.astype(complex)
        moved[place] += 1j * step
        expected[place] = smooth(moved).imag / step
    np.testing.assert_allclose(bo.grad(smooth)(x), expected, rtol=1e-12, atol=1e-12)
