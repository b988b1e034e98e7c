"""Conventions of linear algebra: see test_conventions.py."""

import numpy as np
import pytest

import buropt as bo

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def test_linalg_norm_at_zero():
    for x in (np.zeros(3), np.zeros(9000), np.zeros(9000, np.float32)):
        value, slope = bo.value_and_grad(np.linalg.norm)(x)
        assert value == 0.0
        np.testing.assert_array_equal(slope, np.zeros_like(x))
        gradient = bo.grad(np.linalg.norm)
        curvature = bo.grad(lambda x, f=gradient: np.sum(f(x)))(x)
        np.testing.assert_array_equal(curvature, np.zeros_like(x))


def test_singular_matrices_give_nan():
    for function in (np.linalg.inv, lambda a: np.linalg.solve(a, np.array([1.0, 2.0]))):
        value, slope = bo.value_and_grad(lambda a, f=function: np.sum(f(a)))(SINGULAR)
        assert np.isnan(value)
        assert np.isnan(slope).all()
    almost = SINGULAR + 1e-15 * np.diag([0.0, 1.0])
    inverse = bo.value_and_grad(lambda a: np.sum(np.linalg.inv(a)))(almost)[0]
    assert inverse == np.sum(np.linalg.inv(almost))


def test_det_of_singular_matrices():
    value, slope = bo.value_and_grad(np.linalg.det)(SINGULAR)
    assert value == 0.0
    np.testing.assert_array_equal(slope, [[4.0, -2.0], [-2.0, 1.0]])
    by_a00 = bo.grad(lambda a: bo.grad(np.linalg.det)(a)[0, 0])
    np.testing.assert_array_equal(by_a00(np.zeros((2, 2))), [[0.0, 0.0], [0.0, 1.0]])


def test_slogdet_of_singular_matrices():
    def both(a):
        sign, log = np.linalg.slogdet(a)
        return log + 0 * sign

    value, slope = bo.value_and_grad(both)(SINGULAR)
    assert value == -np.inf
    assert np.isnan(slope).all()
    sign = bo.value_and_grad(lambda a: np.linalg.slogdet(a)[0] + 0 * a[0, 0])
    assert sign(SINGULAR)[0] == 0.0
    np.testing.assert_array_equal(sign(np.eye(2))[1], np.zeros((2, 2)))


def test_cholesky_of_an_indefinite_matrix():
    for a in (SINGULAR - np.eye(2), -np.eye(2), np.zeros((2, 2))):
        value, slope = bo.value_and_grad(lambda a: np.linalg.cholesky(a)[0, 0])(a)
        assert np.isnan(value)
        assert np.isnan(slope[0, 0])


def test_cholesky_gradient_lies_in_one_triangle():
    a = np.array([[4.0, 2.0], [2.0, 2.0]])  # [[2, 0], [1, 1]] times its transpose
    lower = bo.grad(lambda a: np.linalg.cholesky(a)[1, 0])(a)
    np.testing.assert_array_equal(lower, [[-0.125, 0.0], [0.5, 0.0]])


def test_eigenvectors_have_a_sign():
    a = np.array([[2.0, 99.0], [-1.0, 2.0]])  # the triangle that is read has -1
    first = bo.value_and_grad(lambda a: np.linalg.eigh(a)[1][0, 0])(a)[0]
    assert first == pytest.approx(np.sqrt(0.5))
    slope = bo.grad(lambda a: np.linalg.eigvalsh(a)[0])(a)
    np.testing.assert_allclose(slope, [[0.5, 0.0], [1.0, 0.5]], rtol=1e-15)


def test_equal_eigenvalues():
    total = bo.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))
    np.testing.assert_array_equal(total(3 * np.eye(2)), 6 * np.eye(2))
    curvature = bo.hvp(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(np.eye(2), np.ones((2, 2)))
    assert not np.isfinite(curvature[1, 0])
    vector = bo.grad(lambda a: np.sum(np.linalg.eigh(a)[1][:, 0]))(np.eye(2))
    assert not np.isfinite(vector).any(where=np.tri(2, dtype=bool))


def test_one_failed_matrix_of_a_stack():
    stack = np.stack([SINGULAR, np.eye(2)])
    f = bo.value_and_grad(lambda a: np.sum(np.where([False, True], np.linalg.slogdet(a)[1], 1.0)))
    value, slope = f(stack)
    assert value == 1.0
    np.testing.assert_array_equal(slope, [np.zeros((2, 2)), np.eye(2)])
