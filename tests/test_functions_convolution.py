"""np.convolve and np.correlate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing import assert_like_numpy, assert_slopes, evaluate, few

import buropt as bo

VALUES = {
    "np.convolve": lambda a, v, p: np.convolve(v, p) + np.convolve(a[0], p),
    "np.correlate": lambda a, v, p: np.correlate(v, p) + np.correlate(a[0], p, "same"),
}


@few
@given(
    n=st.integers(1, 6),
    m=st.integers(1, 6),
    mode=st.sampled_from(["valid", "same", "full"]),
    function=st.sampled_from([np.convolve, np.correlate]),
)
def test_any_lengths(n, m, mode, function):
    rng = np.random.default_rng(n)
    a, v = rng.normal(size=n), rng.normal(size=m)
    assert_like_numpy(lambda a, v: function(a, v, mode), a, v, rtol=1e-12, atol=1e-14)
    assert_slopes(lambda a: function(a, v, mode), a)
    # NumPy conjugates the second operand of a correlation.
    conjugate = np.conj if function is np.correlate else np.positive
    assert_slopes(lambda v: function(a, conjugate(v), mode), v)
    t, u = np.trunc(9 * a).astype(int), np.trunc(9 * v).astype(int)
    assert_like_numpy(lambda a, v: function(a, v, mode), t, u)
    assert_like_numpy(lambda a, v: function(a, v, mode), t > 0, u > 0)
    assert_like_numpy(lambda a, v: function(a, v, mode), a, u, rtol=1e-12, atol=1e-14)


def test_scalars_are_vectors_of_one_element():
    assert_like_numpy(lambda x: np.convolve(x, 2.0) + np.convolve(3.0, x), np.array([1.0, 2.0]))


def test_a_long_signal():
    rng = np.random.default_rng(0)
    signal, kernel = rng.normal(size=500), rng.normal(size=25)
    assert_like_numpy(lambda v: np.convolve(signal, v, "same"), kernel, rtol=1e-11, atol=1e-12)
    energy = bo.value_and_grad(lambda v: np.sum(np.convolve(signal, v, "valid") ** 2))
    value, gradient = energy(kernel)
    filtered = np.convolve(signal, kernel, "valid")
    np.testing.assert_allclose(value, np.sum(filtered**2), rtol=1e-12)
    expected = 2 * np.correlate(signal, filtered, "valid")[::-1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: np.convolve(x, x[:0]), r"shape \(0,\) is not a vector with elements"),
        (lambda x: np.convolve(x, x[None]), r"shape \(1, 3\) is not a vector"),
        (lambda x: np.correlate(x, x, "middle"), "mode must be one of valid, same, full"),
    ],
)
def test_mistakes(function, text):
    with pytest.raises(ValueError, match=text):
        evaluate(function, np.ones(3))
