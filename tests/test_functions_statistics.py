"""np.cov, np.corrcoef and np.bincount."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing import assert_like_numpy, evaluate, few, numbers

import buropt as bo

VALUES = {
    "np.bincount": lambda a, v, p: np.bincount([0, 2, 0], weights=v) * p,
    "np.corrcoef": lambda a, v, p: np.corrcoef(a) + np.corrcoef(v, p),
    "np.cov": lambda a, v, p: np.cov(a) + np.cov(v, p, bias=True) + np.cov(v),
}


def check(function, *values):
    """Values like NumPy's, and slopes like central differences of them."""
    assert_like_numpy(function, *values, rtol=1e-11, atol=1e-13)
    weights = np.random.default_rng(1).normal(size=np.shape(function(*values)))
    for k, value in enumerate(values):
        gradient = bo.grad(lambda *x: np.sum(weights * function(*x)), argnums=k)(*values)
        direction = np.random.default_rng(2).normal(size=value.shape)
        step = 1e-5 * direction
        ends = [
            np.sum(weights * function(*values[:k], value + sign * step, *values[k + 1 :]))
            for sign in (1, -1)
        ]
        np.testing.assert_allclose(
            np.sum(gradient * direction), (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-7
        )


@few
@given(
    variables=st.integers(1, 3),
    observations=st.integers(3, 5),
    rowvar=st.booleans(),
    bias=st.booleans(),
    ddof=st.sampled_from([None, 0, 2]),
)
def test_cov(variables, observations, rowvar, bias, ddof):
    m = numbers((variables, observations))
    x = m if rowvar else m.T
    options = {"rowvar": rowvar, "bias": bias, "ddof": ddof}
    check(lambda x: np.cov(x, **options), x)
    check(lambda x: np.cov(x, x[:1] if rowvar else x[:, :1], **options), x)
    check(lambda v: np.cov(v, **options), m[0])
    check(lambda x, v: np.cov(x, v, **options), x, m[0] + 1.0)


def test_weights_of_observations():
    m, weights = numbers((2, 5)), np.array([0.5, 1.0, 2.0, 0.25, 1.5])
    counts = np.array([1, 2, 1, 0, 3])
    for options in ({}, {"bias": True}, {"ddof": 2}):
        check(lambda m, o=options: np.cov(m, fweights=counts, **o), m)
        check(lambda m, w, o=options: np.cov(m, aweights=w, **o), m, weights)
        check(lambda m, w, o=options: np.cov(m, fweights=counts, aweights=w, **o), m, weights)


@few
@given(variables=st.integers(1, 3), rowvar=st.booleans())
def test_corrcoef(variables, rowvar):
    m = numbers((variables, 6))
    x = m if rowvar else m.T
    weights = np.random.default_rng(3).normal(size=np.shape(np.corrcoef(x, rowvar=rowvar)))
    check(lambda x: np.sum(weights * np.corrcoef(x, rowvar=rowvar)), x)
    check(lambda x, v: np.corrcoef(x, v, rowvar=rowvar), x, m[0] ** 2)


def test_integers_are_converted():
    assert_like_numpy(lambda t: np.cov(t) + np.corrcoef(t), np.array([[1, 2, 4], [0, -1, 1]]))


def test_too_few_observations():
    x = numbers((2, 1))
    with pytest.warns(RuntimeWarning):
        expected = np.cov(x)
    np.testing.assert_array_equal(evaluate(np.cov, x), expected)


@few
@given(x=st.lists(st.integers(0, 5), min_size=1, max_size=8), minlength=st.integers(0, 9))
def test_bincount_sums_over_segments(x, minlength):
    segments = np.array(x, int)
    w = numbers(len(x))
    assert_like_numpy(lambda w: np.bincount(segments, w, minlength), w, rtol=1e-12, atol=1e-14)
    check(lambda w: np.bincount(segments, weights=w) ** 2, w)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.cov(x[None, None]), ValueError, "has more than 2 axes"),
        (lambda x: np.cov(x, aweights=[1.0]), ValueError, "weights of shape"),
        (lambda x: np.cov(x, dtype=np.float32), bo.UnsupportedOpError, "dtype="),
        (lambda x: np.bincount([0, -1, 2], x), ValueError, "negative"),
        (lambda x: np.bincount([0, 1], x), ValueError, "not vectors of one length"),
        (lambda x: np.bincount([0.0, 1.0, 1.0], x), ValueError, "x of integers"),
        (lambda x: np.bincount(x), bo.TraceError, "unknown length.*np.arange"),
    ],
)
def test_mistakes(function, error, text):
    with pytest.raises(error, match=text):
        evaluate(function, numbers(3))
