"""np.select, np.piecewise, np.isin and np.isclose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import assert_like_numpy, evaluate, few, numbers

import buropt as bo

VALUES = {
    "np.isclose": lambda a, v, p: np.isclose(a, 2.0 + 1e-9),
    "np.isin": lambda a, v, p: np.isin(a, [2.0, -0.25]),
    "np.piecewise": lambda a, v, p: np.piecewise(a, [a < 0, a > 1], [np.negative, np.sin, 7]),
    "np.select": lambda a, v, p: np.select([a < 0, v > 1], [v, a * p], default=-1.0),
}


@few
@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=4, max_dims=2, max_side=3, min_side=0),
    default=st.sampled_from([0, -1.5, True]),
    kinds=st.tuples(*[st.sampled_from("fib")] * 2),
)
def test_select(shapes, default, kinds):
    c, d, x, y = (numbers(shape, k) for k, shape in enumerate(shapes.input_shapes))
    x, y = (
        {"f": value, "i": np.trunc(9 * value).astype(int), "b": value > 0}[kind]
        for value, kind in zip((x, y), kinds, strict=True)
    )
    assert_like_numpy(lambda c, d, x, y: np.select([c > 0, d > 0], [x, y], default), c, d, x, y)


def test_select_takes_the_first_condition_that_holds():
    x = np.array([-2.0, 0.5, 3.0])
    gradient = bo.grad(lambda x: np.sum(np.select([x > 2, x > 0], [x**3, np.sqrt(x)], 1 / x)))(x)
    np.testing.assert_allclose(gradient, [-0.25, 0.5 / np.sqrt(0.5), 27.0], rtol=1e-14)


def test_a_choice_that_is_not_taken_contributes_nothing():
    gradient = bo.grad(lambda x: np.sum(np.select([x > 0], [np.log(x)], x)))
    np.testing.assert_array_equal(gradient(np.array([0.0, -1.0, 2.0])), [1.0, 1.0, 0.5])
    gradient = bo.grad(lambda x: np.sum(np.piecewise(x, [x > 0], [np.log, lambda x: -x])))
    np.testing.assert_array_equal(gradient(np.array([0.0, -1.0, 2.0])), [-1.0, -1.0, 0.5])


PIECES = [
    lambda x: np.piecewise(x, [x < 0, x >= 0], [-1, 1]),
    lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: x]),
    lambda x: np.piecewise(x, [x < 0], [lambda x: x**2]),
    lambda x: np.piecewise(x, [x < 1, x < 0], [lambda x: 2 * x, 3.0, np.sin]),  # the last one wins
    lambda x: np.piecewise(x, [x < 1, x < 0], [lambda x, a, b: a * x + b, 3.0], 2.0, 1.0),
    lambda x: np.piecewise(x, [x > 0], [lambda x: np.where(x > 1, x, 5.0), 2.0]),
    lambda x: np.piecewise(x, [x > 0], [lambda x: 4.0]),
]


@pytest.mark.parametrize("function", PIECES)
def test_piecewise(function):
    x = numbers((3, 4))
    assert_like_numpy(function, x)
    assert_like_numpy(function, x[0])
    assert_like_numpy(function, x[0, 0])
    assert_like_numpy(function, np.trunc(3 * x))


def test_a_single_condition_needs_no_list():
    assert_like_numpy(lambda x: np.piecewise(x, x > 0, [np.sin, 2.0]), numbers(4))
    assert_like_numpy(lambda x: np.piecewise(x, x > 0, [np.sin, 2.0]), 1.5)
    assert_like_numpy(lambda x: np.piecewise(x, [True, False], [np.sin, 2.0]), numbers(2))


def test_piecewise_keeps_the_kind_of_its_argument():
    t = np.array([-2, 0, 3])
    assert_like_numpy(lambda t: np.piecewise(t, [t < 0, t > 0], [lambda t: -t, 2.7]), t)
    assert_like_numpy(lambda m: np.piecewise(m, [m], [0, 3]), t > 0)
    assert_like_numpy(lambda x, m: np.piecewise(x, [m], [1, 3]), 1.0 * t, t > 0)


@pytest.mark.parametrize(
    "piece", [lambda x: x - np.mean(x), lambda x: x[0], lambda x: x @ x, lambda x: np.sum(x) * x]
)
def test_a_piece_that_mixes_elements_is_refused(piece):
    """NumPy would give it the selected elements only."""
    with pytest.raises(bo.UnsupportedOpError, match=r"must work element by element.*np\.where"):
        evaluate(lambda x: np.piecewise(x, [x > 0], [piece]), numbers(3))
    # ... and elsewhere such functions are as welcome as before.
    assert_like_numpy(lambda x: np.piecewise(x, [x > 0], [1.0]) - np.mean(x), numbers(3))


def test_isin():
    t = np.array([[1, -2, 3], [4, 0, 2]])
    for function in (
        lambda t: np.isin(t, [3, 0, 7]),
        lambda t: np.isin([3, 0, 7], t, invert=True),
        lambda t: np.isin(t, [[3], [0]], kind="sort"),
        lambda t: np.isin(t, []),
    ):
        assert_like_numpy(function, t)
        assert_like_numpy(function, 1.0 * t)


def test_isclose():
    values = np.array([0.0, 1.0, 1.0 + 1e-6, -np.inf, np.inf, np.nan, 1e-9])
    for options in ({}, {"equal_nan": True}, {"rtol": 0}, {"atol": 0.5}, {"rtol": 0, "atol": 0}):
        assert_like_numpy(lambda x, o=options: np.isclose(x[:, None], x, **o), values)
    assert_like_numpy(lambda t: np.isclose(t, 2), np.array([1, 2]))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.select([x > 0], [x, x]), ValueError, "1 conditions and 2 choices"),
        (lambda x: np.select([x > 0], []), ValueError, "1 conditions and 0 choices"),
        (lambda x: np.select([x], [x]), TypeError, "condition number 0 is not a mask.*x != 0"),
        (lambda x: np.piecewise(x, [x > 0], [1, 2, 3]), ValueError, "3 functions for 1 conditions"),
        (lambda x: np.piecewise(x, [x > 0], [lambda x: np.ones(2)]), ValueError, "gave shape"),
        (lambda x: np.piecewise(x, [x > 0], [abs], a=1), TypeError, "the argument a="),
    ],
)
def test_mistakes(function, error, text):
    with pytest.raises(error, match=text):
        evaluate(function, numbers(3))
