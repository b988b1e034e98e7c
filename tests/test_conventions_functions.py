"""Conventions of everyday functions and of eager values: see test_conventions.py."""

import math

import numpy as np
import pytest

import buropt as bo

KNOTS, VALUES = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 1.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_interp_at_knots(dtype):
    x = np.array([-1.0, 0.0, 0.5, 1.0, 3.0, 4.0], dtype)
    gradient = bo.grad(lambda x: np.sum(np.interp(x, KNOTS, VALUES)))
    np.testing.assert_array_equal(gradient(x), [0.0, 2.0, 2.0, -0.5, 0.0, 0.0])
    np.testing.assert_array_equal(gradient(np.tile(x, 2000)), np.tile(gradient(x), 2000))


def test_positions_have_derivative_zero():
    for position in (
        lambda x: np.searchsorted(KNOTS, x),
        lambda x: np.digitize(x, KNOTS),
        lambda x: np.isin(x, KNOTS),
        lambda x: np.isclose(x, KNOTS),
    ):
        gradient = bo.grad(lambda x, f=position: np.sum(x * f(x)))
        x = np.array([0.0, 0.5, 3.0])
        np.testing.assert_array_equal(gradient(x), position(x))


def test_what_is_not_chosen_contributes_zero():
    x = np.array([0.0, 4.0])
    for function in (
        lambda x: np.select([x > 0], [np.log(x)], 3.0),
        lambda x: np.piecewise(x, [x > 0], [np.log]),
    ):
        gradient = bo.grad(lambda x, f=function: np.sum(f(x)))
        np.testing.assert_array_equal(gradient(x), [0.0, 0.25])
    matrix = np.array([[4.0, 0.0], [1.0, 1.0]])
    gradient = bo.grad(lambda x: np.sum(np.tril(np.log(x))))(matrix)
    np.testing.assert_array_equal(gradient, [[0.25, 0.0], [1.0, 1.0]])
    gradient = bo.grad(lambda x: np.sum(np.triu(np.log(x.T))))(matrix)
    np.testing.assert_array_equal(gradient, [[0.25, 0.0], [1.0, 1.0]])


def test_piecewise_functions_work_element_by_element():
    with pytest.raises(bo.UnsupportedOpError, match="element by element"):
        bo.grad(lambda x: np.sum(np.piecewise(x, [x > 0], [lambda x: x - np.mean(x)])))(KNOTS)


def test_corrcoef_on_its_border():
    """Equal variables: the coefficient cannot rise further, and its gradient is 0 to rounding."""
    x = np.array([1.0, 2.0, 4.0])
    value, slope = bo.value_and_grad(lambda x, y: np.corrcoef(x, y)[0, 1])(x, 2 * x)
    assert value == pytest.approx(1, rel=1e-15)
    np.testing.assert_allclose(slope, np.zeros(3), atol=1e-15)


def test_values_follow_the_conventions():
    def slope(f, x):
        v = bo.Value(x)
        f(v).backward()
        return v.grad

    assert slope(lambda v: v.relu(), 0.0) == 0
    assert slope(abs, 0.0) == 0
    assert slope(lambda v: v**0, 0.0) == 0
    assert slope(lambda v: v.sqrt(), 0.0) == math.inf
    assert slope(lambda v: 0 * v.sqrt(), 0.0) == 0
    assert slope(lambda v: v**2.0, -3.0) == -6


def test_values_accumulate():
    x = bo.Value(3.0)
    double = x * 2
    result = double * 5
    result.backward()
    assert (double.grad, x.grad) == (5, 10)
    result.backward()
    assert (double.grad, x.grad) == (10, 10 + 20)
