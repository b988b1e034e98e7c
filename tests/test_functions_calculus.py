"""Ranges, differences, integrals and polynomials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import assert_like_numpy, assert_slopes, evaluate, few, numbers

import buropt as bo

trapezoid = getattr(np, "trapezoid" if hasattr(np, "trapezoid") else "trapz")

VALUES = {
    "np.geomspace": lambda a, v, p: np.geomspace(p, 2 * p, 4) + np.geomspace(p[0], 9.0, 3),
    "np.gradient": lambda a, v, p: np.gradient(v) + np.gradient(a)[0] + np.gradient(a)[1],
    "np.linspace": lambda a, v, p: np.linspace(v, p, 4) + np.linspace(v[0], 2.0, 3),
    "np.logspace": lambda a, v, p: np.logspace(v, p, 4),
    "np.polyadd": lambda a, v, p: np.polyadd(v, a[0, :2]),
    "np.polyder": lambda a, v, p: np.polyder(v) + np.polyder(a[0], 2),
    "np.polyint": lambda a, v, p: np.polyint(v) + np.polyint(v[:2], 2),
    "np.polysub": lambda a, v, p: np.polysub(v[:1], p),
    "np.polyval": lambda a, v, p: np.polyval(v, a) + np.polyval([1, 2, 0], a),
    "np.vander": lambda a, v, p: np.vander(v) + np.vander(p, increasing=True),
}


def check(function, *values):
    """The same values for floats and integers, and the slopes."""
    assert_like_numpy(function, *values, rtol=1e-12, atol=1e-13)
    assert_slopes(function, *values)
    integers = [np.trunc(10 * value).astype(int) for value in values]
    assert_like_numpy(function, *integers, rtol=1e-12, atol=1e-13)


@few
@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3),
    num=st.integers(0, 6),
    endpoint=st.booleans(),
    data=st.data(),
)
def test_linspace(shapes, num, endpoint, data):
    axis = data.draw(st.integers(-1, len(shapes.result_shape)))
    values = [numbers(shape, k) for k, shape in enumerate(shapes.input_shapes)]
    check(lambda a, b: np.linspace(a, b, num, endpoint, axis=axis), *values)
    check(lambda a: np.linspace(a, 2.0, num, endpoint), values[0])
    check(lambda b: np.linspace(3, b, num, endpoint), values[1])


def test_linspace_gives_its_step():
    check(lambda a: np.linspace(a, 2.0, 5, retstep=True), numbers(3))
    check(lambda a: np.linspace(a, 2.0, 5, endpoint=False, retstep=True), numbers(3))


def test_logspace():
    check(lambda a: np.logspace(a, 1.5, 5), numbers(3))
    check(lambda a: np.logspace(a, 1.5, 5, endpoint=False, base=2), numbers(()))
    check(lambda a: np.logspace(a, 1.5, 3, base=np.array([2.0, 3.0])), numbers((2,)))


def test_geomspace():
    a = np.abs(numbers((2, 1))) + 0.1
    for options in ({}, {"endpoint": False}, {"axis": -1}, {"num": 1}, {"num": 0}):
        options = {"num": 5} | options
        assert_like_numpy(lambda a, o=options: np.geomspace(a, [1.5, 30.0], **o), a, rtol=1e-12)
        assert_like_numpy(
            lambda a, o=options: np.geomspace(-a, np.full((2, 1), -3.0), **o), a, rtol=1e-12
        )


@few
@given(shape=hnp.array_shapes(min_side=0, max_side=4), ends=st.booleans())
def test_ediff1d(shape, ends):
    extra = {"to_end": [1, 2], "to_begin": 7} if ends else {}
    check(lambda x: np.ediff1d(x, **extra), numbers(shape))


@few
@given(shape=hnp.array_shapes(max_dims=3, max_side=4), data=st.data())
def test_trapezoid(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    at = np.cumsum(np.abs(numbers(shape[axis], 1)))
    check(lambda y: trapezoid(y, dx=0.5, axis=axis), numbers(shape))
    check(lambda y, x: trapezoid(y, x, axis=axis), numbers(shape), at)
    check(lambda y, x: trapezoid(y, x, axis=axis), numbers(shape), numbers(shape, 2))


@few
@given(
    shape=hnp.array_shapes(max_dims=3, min_side=3, max_side=5),
    edge_order=st.sampled_from([1, 2]),
    data=st.data(),
)
def test_gradient(shape, edge_order, data):
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    spacings = [
        data.draw(st.sampled_from([2, 0.25, np.cumsum(0.5 + np.arange(n) % 3)]))
        for n in np.take(shape, axes)
    ]
    x = numbers(shape)
    check(lambda x: np.gradient(x, edge_order=edge_order), x)
    check(lambda x: np.gradient(x, 0.5, axis=axes[0], edge_order=edge_order), x)
    check(lambda x: np.gradient(x, *spacings, axis=tuple(axes), edge_order=edge_order), x)


def test_gradient_of_two_points_and_traced_coordinates():
    check(lambda x: np.gradient(x), numbers(2))
    x, at = numbers((2, 5)), np.cumsum(1 + np.abs(numbers(5, 1)))
    function = lambda x, at: np.gradient(x, at, axis=1, edge_order=2)  # noqa: E731
    assert_slopes(lambda x: function(x, at), x)
    gradient = bo.grad(lambda at: np.sum(function(x, at) ** 2))(at)
    step = 1e-6 * numbers(5, 2)
    ends = [np.sum(function(x, at + sign * step) ** 2) for sign in (1, -1)]
    np.testing.assert_allclose(gradient @ step, (ends[0] - ends[1]) / 2, rtol=1e-6)


@few
@given(p=st.integers(1, 5), shape=hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
def test_polyval(p, shape):
    check(lambda p, x: np.polyval(p, x), numbers(p, 1), numbers(shape))
    check(lambda x: np.polyval([2, 0, -1.5], x), numbers(shape))
    check(lambda p: np.polyval(p, 2), numbers(p))


@few
@given(n=st.integers(0, 4), N=st.none() | st.integers(0, 5), increasing=st.booleans())
def test_vander(n, N, increasing):
    check(lambda x: np.vander(x, N, increasing), numbers(n))
    assert_like_numpy(lambda m: np.vander(m, N, increasing), numbers(n) > 0)


@few
@given(n=st.integers(1, 4), m=st.integers(0, 3))
def test_derivatives_and_antiderivatives_of_polynomials(n, m):
    check(lambda p: np.polyder(p, m), numbers(n))
    check(lambda p: np.polyint(p, m), numbers(n))
    if m:
        check(lambda p: np.polyint(p, m, 2.0), numbers(n))
        check(lambda p: np.polyint(p, m, [1.0, 2.0, 3.0]), numbers(n))


@few
@given(n=st.integers(1, 4), m=st.integers(1, 4))
def test_sums_of_polynomials(n, m):
    check(lambda a, b: np.polyadd(a, b), numbers(n), numbers(m, 1))
    check(lambda a, b: np.polysub(a, b), numbers(n), numbers(m, 1))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.linspace(x, 1, -1), ValueError, "num must not be negative"),
        (lambda x: np.linspace(x, 1, 3, dtype=int), bo.UnsupportedOpError, "dtype="),
        (lambda x: np.gradient(x, 1.0, 2.0), TypeError, "2 steps for 1 axes"),
        (lambda x: np.gradient(x[:1]), ValueError, "has fewer than 2 elements"),
        (lambda x: np.gradient(x, edge_order=3), ValueError, "edge_order must be 1 or 2"),
        (lambda x: np.gradient(x, [1.0, 2.0]), ValueError, "coordinates of shape"),
        (lambda x: np.vander(x[None]), ValueError, "not a vector"),
        (lambda x: np.polyint(x, 3, [1.0, 2.0]), ValueError, "2 constants for 3 integrations"),
        (lambda x: np.linspace(x, np.ones(2), 3), ValueError, "do not broadcast"),
    ],
)
def test_mistakes(function, error, text):
    with pytest.raises(error, match=text):
        evaluate(function, numbers(3))
