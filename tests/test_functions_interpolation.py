"""np.interp, np.searchsorted and np.digitize: positions in sorted vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import assert_like_numpy, assert_slopes, evaluate, few

import buropt as bo

VALUES = {
    "np.digitize": lambda a, v, p: np.digitize(a, [-1.0, 0.5, 2.0]),
    "np.interp": lambda a, v, p: np.interp(a, [-1.0, 0.0, 2.0], v),
    "np.searchsorted": lambda a, v, p: np.searchsorted([-1.0, 0.5, 2.0], a),
}

# Points that often meet a knot, and lie beyond the ends.
POINTS = hnp.arrays(
    float,
    hnp.array_shapes(min_dims=0, max_dims=2, max_side=4),
    elements=st.sampled_from(np.arange(-4, 9) / 2),
)
KNOTS = st.lists(st.integers(-2, 3), min_size=1, max_size=5, unique=True).map(sorted)
ENDS = st.sampled_from([None, -7.5, 3])


@few
@given(x=POINTS, knots=KNOTS, left=ENDS, right=ENDS, seed=st.integers(0, 99))
def test_interp(x, knots, left, right, seed):
    xp = np.array(knots, float)
    fp = np.random.default_rng(seed).normal(size=len(knots))
    assert_like_numpy(
        lambda x, fp: np.interp(x, xp, fp, left, right), x, fp, rtol=1e-12, atol=1e-13
    )
    # It is linear in fp ...
    assert_slopes(lambda fp: np.interp(x, xp, fp, left, right), fp)
    # ... and the slope by x is that of the piece, at a knot of the one after it.
    gradient = np.asarray(bo.grad(lambda x: np.sum(np.interp(x, xp, fp, left, right) + 0 * x))(x))
    inside = (x >= xp[0]) & (x < xp[-1])
    after = np.interp(x + 1e-3, xp, fp) - np.interp(x, xp, fp)
    np.testing.assert_allclose(gradient, np.where(inside, after / 1e-3, 0.0), rtol=1e-9, atol=1e-9)


@few
@given(x=POINTS, knots=KNOTS, period=st.sampled_from([2.5, 7, -3.0]))
def test_periodic_interp(x, knots, period):
    fp = np.cos(np.array(knots))
    knots = np.array(knots) * 0.4
    assert_like_numpy(
        lambda x, fp: np.interp(x, knots, fp, period=period), x, fp, rtol=1e-11, atol=1e-12
    )
    assert_slopes(lambda fp: np.interp(x, knots, fp, period=period), fp)


def test_special_points_of_interp():
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert_like_numpy(lambda x: np.interp(x, [0.0, 1.0], [2.0, 3.0], right=np.nan), x)
    jump = np.array([0.5, 1.0, 1.0, 2.0])
    at = np.array([0.75, 1.0, 1.5])
    assert_like_numpy(lambda x: np.interp(x, jump, [0.0, 1.0, 5.0, 6.0]), at)
    gradient = bo.grad(lambda x: np.sum(np.interp(x, jump, [0.0, 1.0, 5.0, 6.0])))
    np.testing.assert_array_equal(gradient(at), [2.0, 1.0, 1.0])
    assert_like_numpy(lambda t: np.interp(t, [0, 2], [0, 4]), np.array([1, 3]))


@few
@given(x=POINTS, knots=st.lists(st.integers(-2, 3), max_size=6).map(sorted), data=st.data())
def test_searchsorted_and_digitize(x, knots, data):
    bins = np.array(knots, float)
    side = data.draw(st.sampled_from(["left", "right"]))
    assert_like_numpy(lambda x: np.searchsorted(bins, x, side), x)
    assert_like_numpy(lambda bins: np.searchsorted(bins, x, side), bins)
    order = np.array(data.draw(st.permutations(range(len(bins)))), int)
    assert_like_numpy(
        lambda x, s: np.searchsorted(s, x, side, sorter=np.argsort(order)), x, bins[order]
    )
    assert_like_numpy(lambda x: np.digitize(x, bins, right=side == "left"), x)
    assert_like_numpy(lambda x: np.digitize(x, bins[::-1], right=side == "left"), x)


def test_a_nan_comes_last():
    x = np.array([np.nan, 1.0])
    for side in ("left", "right"):
        assert_like_numpy(lambda x, side=side: np.searchsorted([0.0, 1.0], x, side), x)


def test_positions_pick_elements():
    table = np.array([10.0, 20.0, 30.0, 40.0])

    def function(x):
        return table[0] * x + np.take_along_axis(table, np.searchsorted([0.0, 1.0, 2.0], x), 0)

    assert_like_numpy(function, np.array([-1.0, 0.5, 5.0]))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: np.interp(x, x, [1.0, 2.0, 3.0]), bo.TraceError, "order of a traced xp"),
        (lambda x: np.interp(x, [2.0, 1.0], [0.0, 1.0]), ValueError, "xp must be increasing"),
        (lambda x: np.interp(x, [1.0, 2.0], [0.0]), ValueError, "not vectors of one length"),
        (lambda x: np.interp(x, [1.0], [0.0], period=0), ValueError, "period must not be 0"),
        (lambda x: np.searchsorted([1.0], x, "middle"), ValueError, "side must be 'left' or"),
        (lambda x: np.searchsorted([[1.0]], x), ValueError, r"shape \(1, 1\) is not a vector"),
        (lambda x: np.digitize(x, [1.0, 3.0, 2.0]), ValueError, "increases or decreases"),
        (lambda x: np.digitize(x, x), bo.TraceError, "order of a traced bins"),
    ],
)
def test_mistakes(function, error, text):
    with pytest.raises(error, match=text):
        evaluate(function, np.array([0.5, 1.0, 2.0]))
