"""Diagonals and triangles of matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import assert_like_numpy, assert_slopes, check, evaluate, few, numbers

import buropt as bo

VALUES = {
    "np.diag": lambda a, v, p: np.diag(a) + np.diag(v[:2]) + np.diag(p[:1], -1),
    "np.diag_indices_from": lambda a, v, p: a[:, :2] + np.diag_indices_from(a[:, :2]),
    "np.diagflat": lambda a, v, p: np.diagflat(a, 1),
    "np.diagonal": lambda a, v, p: np.diagonal(a) + np.diagonal(a, 1),
    "np.tril": lambda a, v, p: np.tril(a) + np.tril(v)[:2],
    "np.tril_indices_from": lambda a, v, p: v + np.tril_indices_from(a[:, :2])[0],
    "np.triu": lambda a, v, p: np.triu(a, 1) + np.triu(v, -1)[:2],
    "np.triu_indices_from": lambda a, v, p: v + np.triu_indices_from(a[:, :2], 0)[1],
}


@few
@given(shape=hnp.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=4), data=st.data())
def test_diagonal(shape, data):
    axis1, axis2 = data.draw(st.permutations(range(-len(shape), 0)))[:2]
    offset = data.draw(st.integers(-5, 5))
    check(lambda x: np.diagonal(x, offset, axis1, axis2), numbers(shape))


@few
@given(n=st.integers(0, 5), k=st.integers(-4, 4))
def test_matrix_of_a_diagonal(n, k):
    check(lambda x: np.diag(x, k), numbers(n))
    check(lambda x: np.diagflat(x, k), numbers((2, n)))


@few
@given(shape=hnp.array_shapes(max_dims=3, min_side=0, max_side=4), k=st.integers(-5, 5))
def test_triangles(shape, k):
    check(lambda x: np.tril(x, k), numbers(shape))
    check(lambda x: np.triu(x, k), numbers(shape))


def test_what_a_triangle_leaves_out_contributes_nothing():
    x = np.array([[1.0, np.inf], [2.0, 3.0]])
    gradient = bo.grad(lambda x: np.sum(np.tril(x) ** 2))(x)
    np.testing.assert_array_equal(gradient, [[2.0, 0.0], [4.0, 6.0]])
    np.testing.assert_array_equal(bo.grad(lambda x: np.sum(np.diag(x)))(x[0]), [1.0, 1.0])


def test_constant_matrices():
    def function(x):
        return np.eye(3) @ x + np.tri(3) @ x + np.identity(3) @ x + np.diag([1, 2, 3]) @ x

    assert_like_numpy(function, numbers(3))
    assert_slopes(function, numbers(3))


def test_mistakes():
    with pytest.raises(ValueError, match=r"has no diagonal.*np\.diag"):
        evaluate(lambda x: np.diagonal(x), numbers(3))
    with pytest.raises(ValueError, match=r"neither a vector nor a matrix.*np\.diagonal"):
        evaluate(lambda x: np.diag(x), numbers((3, 3, 3)))
    with pytest.raises(bo.UnsupportedOpError, match=r"np\.fill_diagonal cannot .*np\.where"):
        evaluate(lambda x: np.fill_diagonal(x, 0), numbers((3, 3)))
