"""Conventions of integers, indices and log-sum-exp: see test_conventions.py."""

import numpy as np
import pytest
from scipy.special import logsumexp

import buropt as bo

INF, NAN = np.inf, np.nan
X = np.array([1.0, 2.0, 4.0])


def gradient(f, x=X, *args):
    return bo.grad(f)(x, *args)


def test_given_indices_are_checked():
    def loss(x, t):
        return np.sum(x[np.concatenate([t[1:].reshape(-1), [0]])])

    tokens = np.array([[9, 1, 2], [9, 0, 3]])
    with pytest.raises(IndexError, match=r"data\[0\] holds 3 at \[2\] in sample 1"):
        bo.compile(loss, X, tokens)
    with pytest.raises(IndexError, match=r"t holds 3 at \[2\]"):
        gradient(loss, X, tokens[1])
    np.testing.assert_array_equal(gradient(loss, X, tokens[0]), [1, 1, 1])


def test_computed_index_out_of_range():
    value, slope = bo.value_and_grad(lambda x, t: np.sum(x[t + 1]))(X, np.array([0, 2]))
    assert np.isnan(value)
    np.testing.assert_array_equal(slope, [0, 1, 0])


def test_repeated_indices_add():
    np.testing.assert_array_equal(gradient(lambda x: np.sum(x[[0, -1, 0]])), [2, 0, 1])
    tokens = np.array([0, -1, 0])
    np.testing.assert_array_equal(gradient(lambda x, t: np.sum(x[t]), X, tokens), [2, 0, 1])


def test_index_arrays_copy():
    def loss(x, key):
        y = x * 1.0
        part = y[key]
        part += 10.0
        return np.sum(y) + np.sum(part)

    with pytest.raises(TypeError, match="shares its memory"):
        gradient(lambda x: loss(x, slice(0, 2)))
    np.testing.assert_array_equal(gradient(lambda x: loss(x, [0, 2])), [2, 1, 2])


def test_casts_to_integers_have_slope_zero():
    np.testing.assert_array_equal(gradient(lambda x: np.sum(x.astype(int) * x)), [1, 2, 4])


def test_argmax_is_a_constant():
    np.testing.assert_array_equal(gradient(lambda x: np.argmax(x) * x[np.argmax(x)]), [0, 0, 2])


def test_logsumexp_of_infinities():
    for x, value, slope in [
        ([-INF, -INF], -INF, [0, 0]),
        ([0, -INF], 0, [1, 0]),
        ([0, INF], INF, [0, 1]),
        ([INF, INF], INF, [0.5, 0.5]),
        ([1000, 1000], 1000 + np.log(2), [0.5, 0.5]),
    ]:
        got = bo.value_and_grad(logsumexp)(np.array(x, float))
        assert got[0] == value
        np.testing.assert_array_equal(got[1], slope)


def test_logsumexp_with_weights():
    for held in (5.0, 1000.0, INF, -INF, NAN):
        a, b = np.array([held, 2.0]), np.array([0.0, 3.0])
        value, slope = bo.value_and_grad(lambda a, b=b: logsumexp(a, b=b))(a)
        assert value == pytest.approx(2.0 + np.log(3.0), rel=1e-15)
        np.testing.assert_allclose(slope, [0, 1], rtol=1e-15)
    assert np.isnan(bo.value_and_grad(lambda a: logsumexp(a, b=[1.0, -2.0]))(np.zeros(2))[0])
