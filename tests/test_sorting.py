"""Values in order: sort, argsort, median and quantiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buropt as bo

NAN = float("nan")


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    data=st.data(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_sort_along_any_axis(shape, data, dtype):
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    # Equal elements, infinities and NaN among them.
    values = [-np.inf, -1.5, -0.0, 0.0, 1.0, 2.0, np.inf, NAN]
    x = np.random.default_rng(data.draw(st.integers(0, 99))).choice(values, shape).astype(dtype)
    places = np.argsort(x, axis=axis, kind="stable")

    def f(x):
        order = np.argsort(x, axis=axis)
        assert order.dtype == int
        return np.sum((order == places) * 1.0)

    assert bo.value_and_grad(f)(x)[0] == x.size
    weights = np.arange(1.0, x.size + 1).reshape(places.shape).astype(dtype)
    gradient = bo.grad(lambda x: np.sum(weights * np.sort(x, axis=axis)))(x)
    # Each weight goes back to where its element came from.
    expected = np.empty_like(weights)
    np.put_along_axis(expected, places, weights, axis=0 if axis is None else axis)
    np.testing.assert_array_equal(gradient, expected.reshape(shape))


def test_sorted_values():
    x = np.array([[3.0, NAN, 1.0], [2.0, -np.inf, 2.0]])
    value = bo.value_and_grad(lambda x: np.sum(np.where(x == x, np.sort(x), 0.0)[:, :2]))(x)[0]
    assert value == -np.inf
    for axis in (0, 1, None):
        want = np.sort(x, axis=axis)

        def same(x, axis=axis, want=want):
            got = np.sort(x, axis=axis)
            return np.sum(((got == want) | (got != got)) * 1.0)

        assert bo.value_and_grad(same)(x)[0] == want.size


def test_order_of_a_sample_does_not_depend_on_others():
    rng = np.random.default_rng(0)
    data = np.round(rng.standard_normal((50, 7)), 1)
    p = rng.standard_normal(7)

    def loss(p, a):
        return np.arange(1.0, 8.0) @ np.sort(a * p) + np.median(a + p) ** 2

    value, gradient = bo.compile(loss, p, data=data).value_and_grad(p)
    samples = [bo.value_and_grad(loss)(p, a) for a in data]
    assert value == pytest.approx(np.mean([v for v, _ in samples]), rel=1e-13)
    expected = np.mean([g for _, g in samples], axis=0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)


def central_differences(f, x, h=1e-6):
    slopes = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = h
        slopes[place] = (f(x + step) - f(x - step)) / (2 * h)
    return slopes


QUANTILES = {
    "median": lambda x, **kw: np.median(x, **kw),
    "quantile": lambda x, **kw: np.quantile(x, 0.3, **kw),
    "quantiles": lambda x, **kw: np.quantile(x, [[0.0, 0.25], [0.71, 1.0]], **kw),
    "percentile": lambda x, **kw: np.percentile(x, [10, 50], **kw),
    "lower": lambda x, **kw: np.quantile(x, 0.4, method="lower", **kw),
    "higher": lambda x, **kw: np.quantile(x, [0.4, 1.0], method="higher", **kw),
    "midpoint": lambda x, **kw: np.quantile(x, [0.4, 0.0], method="midpoint", **kw),
}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1)])
@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles(name, axis, keepdims):
    x = np.random.default_rng(1).permutation(24).reshape(2, 3, 4) / 4
    function = QUANTILES[name]
    want = function(x, axis=axis, keepdims=keepdims)
    weights = np.linspace(-1, 1, np.size(want)).reshape(np.shape(want))

    def f(x):
        return np.sum(weights * function(x, axis=axis, keepdims=keepdims) ** 2)

    value, gradient = bo.value_and_grad(f)(x)
    assert value == pytest.approx(f(x), rel=1e-13)
    np.testing.assert_allclose(gradient, central_differences(f, x), rtol=1e-6, atol=1e-7)


def test_nan_in_a_quantile():
    x = np.array([[1.0, NAN, 3.0], [1.0, 2.0, 5.0]])
    for function in (lambda x: np.median(x, axis=1), lambda x: np.quantile(x, 0.5, axis=1)):
        values = [bo.value_and_grad(lambda x, k=k, f=function: f(x)[k])(x) for k in (0, 1)]
        assert np.isnan(values[0][0])
        assert values[1][0] == 2.0
        np.testing.assert_array_equal(values[1][1], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.sort(x, axis=2), ValueError, "axis 2 is out of bounds"),
        (lambda x: np.sort(x, order="a"), TypeError, "argument order="),
        (lambda x: np.median(x[:0], axis=0), ValueError, "there are no elements"),
        (lambda x: np.quantile(x, 1.5), ValueError, "q must be between 0 and 1"),
        (lambda x: np.percentile(x, -1), ValueError, "q must be between 0 and 100"),
        (lambda x: np.quantile(x, x[0, 0]), TypeError, "a traced q"),
        (lambda x: np.quantile(x, 0.5, method="weibull"), TypeError, "argument method="),
        (lambda x: np.quantile(x, 0.5, weights=x), TypeError, "argument .?weights"),
    ],
)
def test_refused(function, error, text):
    with pytest.raises(error, match=text):
        bo.grad(lambda x: np.sum(function(x)))(np.ones((2, 3)))
