"""Reductions over axes: values, derivatives, and their conventions at ties, zeros and NaN."""

import itertools
import math

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buropt as bo

NAN = float("nan")
INF = float("inf")


def apart(x):
    """No two elements equal: a deviation has no derivative where all are."""
    return x + np.sin(np.arange(1.0, 1 + math.prod(x.shape)).reshape(x.shape))


# Whatever autograd differentiates as well, as functions of NumPy's or its module.
REDUCTIONS = {
    "sum": lambda m, x, **kw: m.sum(x, **kw),
    "mean": lambda m, x, **kw: m.mean(x, **kw),
    "max": lambda m, x, **kw: m.max(x, **kw),
    "amax": lambda m, x, **kw: m.amax(x, **kw),
    "min": lambda m, x, **kw: m.min(x, **kw),
    "amin": lambda m, x, **kw: m.amin(x, **kw),
    "prod": lambda m, x, **kw: m.prod(1.0 + x / 50, **kw),
    "var": lambda m, x, **kw: m.var(x, **kw),
    "std": lambda m, x, **kw: m.std(apart(x), **kw),
    "ptp": lambda m, x, **kw: m.max(x, **kw) - m.min(x, **kw) if m is anp else m.ptp(x, **kw),
}


def axes_of(ndim):
    """None, every single axis and every set of axes; negative ones too."""
    yield None
    for n in range(1, ndim + 1):
        for axes in itertools.combinations(range(ndim), n):
            yield axes[0] - ndim if n == 1 and axes[0] % 2 else axes if n > 1 else axes[0]


def cases(shape):
    return [
        pytest.param(name, {"axis": axis, "keepdims": keepdims}, id=f"{name}-{axis}-{keepdims}")
        for name in REDUCTIONS
        for axis in axes_of(len(shape))
        for keepdims in (False, True)
    ]


def weighted(function, weights):
    """A number from an array, in which every element counts differently."""
    return lambda x: np.sum(weights * function(x) ** 2)


SHAPE = (2, 3, 2, 4)


@pytest.mark.parametrize(("name", "options"), cases(SHAPE))
def test_value_and_gradient(name, options):
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, SHAPE) / 4  # with ties
    function = REDUCTIONS[name]
    want = function(np, x, **options)
    weights = rng.standard_normal(np.shape(want))
    for dtype in (np.float64, np.float32):
        eps = np.finfo(dtype).eps
        value, gradient = bo.value_and_grad(
            lambda x: np.sum(weights.astype(x.dtype) * function(np, x, **options))
        )(x.astype(dtype))
        assert gradient.dtype == dtype
        np.testing.assert_allclose(value, np.sum(weights * want), rtol=20 * eps, atol=20 * eps)
        expected = autograd.grad(lambda x: anp.sum(weights * function(anp, x, **options)))(x)
        np.testing.assert_allclose(gradient, expected, rtol=20 * eps, atol=20 * eps)


def second_difference(f, x, v, h=1e-5):
    gradient = bo.grad(f)
    return (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("repeat", [1, 400])  # scalar and tile executor
def test_second_derivative(name, axis, repeat):
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal((2, 3, 2, 3 * repeat))
    function = REDUCTIONS[name]
    weights = rng.standard_normal(np.shape(function(np, x, axis=axis)))
    f = weighted(lambda x: function(np, x, axis=axis), weights)
    hvp = bo.grad(lambda x: np.sum(bo.grad(f)(x) * v))(x)
    np.testing.assert_allclose(hvp, second_difference(f, x, v), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
def test_batched_is_sample_by_sample(name, axis):
    rng = np.random.default_rng(2)
    p, data = rng.standard_normal((2, 3, 4)), rng.standard_normal((70, 2, 3, 4))
    data[::7] = np.round(data[::7])  # ties
    function = REDUCTIONS[name]

    def loss(p, a):
        return np.sum(np.sin(function(np, p * a, axis=axis)))

    oracle = bo.compile(loss, p, data=data)
    samples = [oracle.value_and_grad(p.ravel(), [i]) for i in range(len(data))]
    alone = bo.value_and_grad(loss)
    for (value, gradient), a in zip(samples, data, strict=True):
        expected = alone(p, a)
        assert value == pytest.approx(expected[0], rel=1e-13, abs=1e-13)
        np.testing.assert_allclose(gradient, expected[1].ravel(), rtol=1e-13, atol=1e-13)
    value, gradient = oracle.value_and_grad(p.ravel())
    assert value == pytest.approx(np.mean([value for value, _ in samples]), rel=1e-13)
    mean = np.mean([gradient for _, gradient in samples], axis=0)
    np.testing.assert_allclose(gradient, mean, rtol=1e-12, atol=1e-14)


@given(
    name=st.sampled_from(sorted(REDUCTIONS)),
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    data=st.data(),
)
def test_any_shape_and_axes(name, shape, data):
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True))
    options = {"axis": tuple(axes) or None, "keepdims": data.draw(st.booleans())}
    x = np.random.default_rng(data.draw(st.integers(0, 9))).integers(-2, 3, shape).astype(float)
    function = REDUCTIONS[name]
    want = function(np, x, **options)
    weights = np.arange(1.0, np.size(want) + 1).reshape(np.shape(want))
    value, gradient = bo.value_and_grad(lambda x: np.sum(weights * function(np, x, **options)))(x)
    assert value == pytest.approx(np.sum(weights * want), rel=1e-13, abs=1e-13)
    expected = autograd.grad(lambda x: anp.sum(weights * function(anp, x, **options)))(x)
    np.testing.assert_allclose(gradient, expected, rtol=1e-13, atol=1e-13)


# Extrema

BOTH_EXECUTORS = pytest.mark.parametrize("copies", [1, 3000])


def value_and_slopes(function, row, copies):
    """Of a reduction over the rows of many copies of one row, the first row's."""
    x = np.tile(np.asarray(row), (copies, 1))
    value, gradient = bo.value_and_grad(lambda x: np.sum(function(x, axis=1)[0]))(x)
    return value, gradient[0]


@BOTH_EXECUTORS
def test_equal_elements_share_the_cotangent(copies):
    value, slopes = value_and_slopes(np.max, [1.0, 3.0, 3.0, 2.0, 3.0, 3.0], copies)
    assert value == 3.0
    np.testing.assert_array_equal(slopes, [0.0, 0.25, 0.25, 0.0, 0.25, 0.25])
    value, slopes = value_and_slopes(np.min, [0.0, -0.0, 1.0], copies)
    assert value == 0.0
    np.testing.assert_array_equal(slopes, [0.5, 0.5, 0.0])


@BOTH_EXECUTORS
@pytest.mark.parametrize("function", [np.max, np.min])
def test_nan_propagates_to_the_value_and_the_slopes(function, copies):
    for place in range(3):
        row = np.array([1.0, 2.0, 3.0])
        row[place] = NAN
        value, slopes = value_and_slopes(function, row, copies)
        assert np.isnan(value)
        assert np.isnan(slopes).all()


@BOTH_EXECUTORS
def test_infinite_extremum(copies):
    value, slopes = value_and_slopes(np.max, [INF, 1.0, INF], copies)
    assert value == INF
    np.testing.assert_array_equal(slopes, [0.5, 0.0, 0.5])


@BOTH_EXECUTORS
def test_extremum_in_a_branch_that_is_not_taken(copies):
    def f(x):
        top = np.max(x, axis=1)
        return np.sum(np.where(top > 0, top, 0.0))

    x = np.tile([[NAN, 1.0]], (copies, 1))
    value, gradient = bo.value_and_grad(f)(x)
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros_like(x))


@pytest.mark.parametrize("function", [np.argmax, np.argmin])
def test_places(function):
    x = np.random.default_rng(0).integers(-3, 4, (3, 5, 4)).astype(float)
    x[1, 2, 3] = x[1, 4, 3] = NAN
    x[2, 0, 0] = INF
    for axis in (None, 0, 1, -1):
        for keepdims in (False, True):
            want = function(x, axis=axis, keepdims=keepdims)

            def loss(x, axis=axis, keepdims=keepdims, want=want):
                place = function(x, axis=axis, keepdims=keepdims)
                assert place.dtype == int
                return np.sum((place == want) * 1.0)

            value, gradient = bo.value_and_grad(loss)(x)
            assert value == np.size(want)
            np.testing.assert_array_equal(gradient, np.zeros_like(x))


def test_place_of_the_largest_as_an_index():
    def f(x):
        return np.sum(np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1))

    x = np.random.default_rng(0).standard_normal((4, 5))
    value, gradient = bo.value_and_grad(f)(x)
    assert value == pytest.approx(np.sum(x.max(axis=1)), rel=1e-15)
    np.testing.assert_array_equal(gradient, x == x.max(axis=1, keepdims=True))


def test_deviation_of_equal_elements():
    """The derivative is 0, the smallest of the subgradients, at any order."""
    x = np.full((2, 3), 0.5)
    value, gradient = bo.value_and_grad(lambda x: np.sum(np.std(x, axis=1)))(x)
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))
    hvp = bo.grad(lambda x: np.sum(bo.grad(lambda x: np.sum(np.std(x, axis=1)))(x)))(x)
    np.testing.assert_array_equal(hvp, np.zeros((2, 3)))


@pytest.mark.parametrize("options", [{"ddof": 1}, {"ddof": 1, "axis": 0}, {"ddof": 0.5, "axis": 1}])
def test_degrees_of_freedom(options):
    x = np.random.default_rng(0).standard_normal((4, 5))
    for function in (np.var, np.std):
        want = function(x, **options)
        weights = np.linspace(1, 2, np.size(want)).reshape(np.shape(want))

        def total(x, m=np, name=function.__name__, weights=weights):
            return m.sum(weights * getattr(m, name)(x, **options))

        value, gradient = bo.value_and_grad(total)(x)
        assert value == pytest.approx(total(x), rel=1e-13)
        expected = autograd.grad(lambda x, total=total: total(x, anp))(x)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="ddof and correction are one"):
            bo.grad(lambda x: np.var(x, ddof=1, correction=1))(x)


def test_weighted_means():
    rng = np.random.default_rng(0)
    x, w, v = rng.standard_normal((3, 4)), rng.uniform(1, 2, (3, 4)), rng.uniform(1, 2, 4)

    def f(x, w, v):
        mean, total = np.average(x, axis=0, weights=w, returned=True)
        return np.sum(np.sin(mean) * total) + np.average(np.average(x, axis=1, weights=v) ** 2)

    def by_hand(x, w, v):
        total = anp.sum(w, axis=0)
        mean = anp.sum(x * w, axis=0) / total
        rows = x @ v / anp.sum(v)
        return anp.sum(anp.sin(mean) * total) + anp.mean(rows**2)

    value, gradients = bo.value_and_grad(f, (0, 1, 2))(x, w, v)
    assert value == pytest.approx(by_hand(x, w, v), rel=1e-14)
    for argnum, gradient in enumerate(gradients):
        expected = autograd.grad(by_hand, argnum)(x, w, v)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match=r"weights of shape \(3,\) do not fit"):
        bo.grad(lambda x: np.sum(np.average(x, axis=1, weights=np.ones(3))))(x)


def test_what_is_left_out_gets_no_derivative():
    x = np.array([[1.0, NAN, 3.0], [NAN, 2.0, NAN]])
    expected = {
        np.nansum: [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
        np.nanmean: [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]],
        np.nanprod: [[3.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
        np.nanmax: [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
        np.nanmin: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        np.nanvar: [[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]],
        np.nanstd: [[-0.5, 0.0, 0.5], [0.0, 0.0, 0.0]],
    }
    for function, slopes in expected.items():
        value, gradient = bo.value_and_grad(lambda x, f=function: np.sum(f(x, axis=1)))(x)
        assert value == pytest.approx(np.sum(function(x, axis=1)), rel=1e-14)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-14, atol=1e-15, err_msg=str(function))


def test_questions_about_all_elements():
    def f(x, m):
        answers = [np.all(m, axis=0), np.any(m, axis=0), np.all(m[:, :0]), np.any(m[:, :0])]
        assert all(answer.dtype == bool for answer in answers)
        counts = np.count_nonzero(m, axis=0)
        assert counts.dtype == int
        return np.sum(x * sum(k * answer for k, answer in enumerate(answers, 1))) + x @ counts

    m = np.array([[True, True, False], [True, False, False]])
    np.testing.assert_array_equal(bo.grad(f)(np.ones(3), m), [8.0, 6.0, 3.0])


def test_kinds_of_results():
    def f(x, mask):
        assert np.max(mask).dtype == bool
        assert np.argmin(mask).dtype == int
        return np.sum(x * np.max(mask, axis=0))

    mask = np.array([[True, False], [False, False]])
    np.testing.assert_array_equal(bo.grad(f)(np.ones(2), mask), [1.0, 0.0])


def test_empty_axes():
    def f(x):
        return np.sum(np.max(x[:, :0], axis=0)) + np.sum(x)

    np.testing.assert_array_equal(bo.grad(f)(np.ones((2, 3))), np.ones((2, 3)))
    for function in (np.max, np.min, np.argmax, np.ptp):
        with pytest.raises(ValueError, match=r"nothing to choose .*\(0, 3\)"):
            bo.grad(lambda x, f=function: 1.0 * np.sum(f(x[:0], axis=0)))(np.ones((2, 3)))
