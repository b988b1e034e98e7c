"""Conventions of reductions and of order: see test_conventions.py."""

import numpy as np
import pytest
from pointwise import INF, NAN

import buropt as bo

COPIES = 3000  # rows: more than the scalar executor takes


def check_rows(function, row, value, slopes):
    """Of `function(x)`, which reduces the rows of x, for one row and for many."""
    for copies in (1, COPIES):
        for dtype in (np.float64, np.float32):
            x = np.tile(np.array(row, dtype), (copies, 1))
            total, gradient = bo.value_and_grad(lambda x: np.sum(function(x)))(x)
            np.testing.assert_array_equal(total, copies * value)
            np.testing.assert_array_equal(gradient, np.tile(slopes, (copies, 1)))


def test_extrema_share_equally():
    check_rows(lambda x: np.max(x, axis=1), [1, 3, 3, 2, 3, 3], 3, [0, 0.25, 0.25, 0, 0.25, 0.25])
    check_rows(lambda x: np.min(x, axis=1), [0.0, -0.0, 1], 0, [0.5, 0.5, 0])
    check_rows(lambda x: np.max(x, axis=1), [INF, 1, INF], INF, [0.5, 0, 0.5])
    check_rows(lambda x: np.ptp(x, axis=1), [1, 3, 1, 3], 2, [-0.5, 0.5, -0.5, 0.5])
    x = np.array([[[1.0, 0.0], [2.0, 2.0]], [[1.0, 1.0], [2.0, 0.0]]])
    gradient = bo.grad(lambda x: np.sum(np.max(x, axis=(0, 2))))(x)
    expected = np.array([[[1, 0], [1, 1]], [[1, 1], [1, 0]]]) / 3
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("place", range(3))
def test_extrema_propagate_nan(place):
    row = np.array([1.0, 2.0, 3.0])
    row[place] = NAN
    for function in (np.max, np.min):
        check_rows(lambda x, f=function: f(x, axis=1), row, NAN, [NAN] * 3)


def test_products_with_zeros():
    check_rows(lambda x: np.prod(x, axis=1), [2, 0, 3], 0, [0, 6, 0])
    check_rows(lambda x: np.prod(x, axis=1), [0, 2, 0], 0, [0, 0, 0])
    check_rows(lambda x: np.sum(np.cumprod(x, axis=1), axis=1), [2, 0, 3], 2, [1, 8, 0])
    hessian = bo.hessian(np.prod)(np.array([0.0, 2.0, 0.0]))
    np.testing.assert_array_equal(hessian, [[0, 0, 2], [0, 0, 0], [2, 0, 0]])


def test_subnormals_in_products():
    A = np.ones((32, 8), np.float32)
    A[::2] = 1e-40  # subnormal

    def loss(W, a):
        return np.sum((W @ a) ** 2)

    W = np.ones((4, 8), np.float32)
    oracle = bo.compile(loss, W, (A,))
    exact = np.mean([2 * np.outer(W @ a, a) for a in A.astype(np.float64)], axis=0)
    np.testing.assert_allclose(oracle.grad(W), exact, rtol=1e-6)
    for row in (0, 1):
        forward = np.float64(A[row].sum())
        assert 0 <= oracle.value(W, [row]) <= 4 * forward**2 * (1 + 1e-6)
    # Beside them everything else is as precise as ever.
    tiny = oracle.value(np.full((4, 8), 2e-19, np.float32), [1])
    np.testing.assert_allclose(tiny, 4 * (8 * 2e-19) ** 2, rtol=1e-6)


def test_std_of_equal_elements():
    check_rows(lambda x: np.std(x, axis=1), [0.5, 0.5, 0.5], 0, [0, 0, 0])


def test_sort_is_stable():
    x = np.array([2.0, NAN, 1.0, 2.0, 1.0, -INF])
    weights = np.arange(1.0, 7.0)
    gradient = bo.grad(lambda x: weights @ np.sort(x))(x)
    np.testing.assert_array_equal(gradient, [4, 6, 2, 5, 3, 1])
    order = bo.value_and_grad(lambda x: weights @ np.argsort(x, kind="quicksort") + 0 * x[0])(x)[0]
    assert order == weights @ [5, 2, 4, 0, 3, 1]


def test_quantiles_propagate_nan():
    for function in (
        lambda x: np.median(x, axis=1),
        lambda x: np.quantile(x, 0.25, axis=1),
        lambda x: np.percentile(x, 0, axis=1),
    ):
        value, _ = bo.value_and_grad(lambda x, f=function: f(x)[0])(np.array([[1.0, NAN, 3.0]]))
        assert np.isnan(value)
