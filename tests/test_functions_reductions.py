"""Reductions that can be traced: NumPy's values, kinds, shapes and refusals."""

import numpy as np
import pytest
from tracing import assert_like_numpy, assert_slopes

import buropt as bo

# See tracing.rooms.
VALUES = {
    "np.all": lambda a, v, p: np.all(a > 0, axis=1) & np.all(p, keepdims=True)[0],
    "np.any": lambda a, v, p: np.any(a > 2, axis=1) | np.any(v < -5, keepdims=True)[0],
    "np.argsort": lambda a, v, p: np.argsort(a, axis=0) + v.argsort(kind="stable"),
    "np.average": lambda a, v, p: (
        np.average(a, axis=0) + np.average(a, axis=1, weights=p, keepdims=True) + np.average(v)
    ),
    "np.count_nonzero": lambda a, v, p: np.count_nonzero(a > 0, axis=1) + np.count_nonzero(v - 1.5),
    "np.amax": lambda a, v, p: np.amax(a, axis=0) + np.amax(v),
    "np.amin": lambda a, v, p: np.amin(a, axis=0) + np.amin(v),
    "np.argmax": lambda a, v, p: np.argmax(a, axis=1) + np.argmax(v) + np.argmax(a > 0),
    "np.argmin": lambda a, v, p: np.argmin(a, axis=0, keepdims=True) + v.argmin(),
    "np.cumprod": lambda a, v, p: np.cumprod(a, axis=0) + np.cumprod(v) + np.cumprod(a > 0)[:3],
    "np.cumsum": lambda a, v, p: np.cumsum(a, axis=1) + v.cumsum() + np.cumsum(a > 0)[:3],
    "np.diff": lambda a, v, p: [np.diff(a, 2), np.diff(a, axis=0, prepend=0, append=a), np.diff(v)],
    "np.ediff1d": lambda a, v, p: np.ediff1d(a) + np.ediff1d(v, to_begin=1, to_end=[2.0, 3.0])[0],
    "np.gradient": lambda a, v, p: [*np.gradient(a), np.gradient(v, 0.5, edge_order=2)],
    "np.max": lambda a, v, p: np.max(a, axis=(0, 1), keepdims=True) + np.max(a > v) + a.max(0),
    "np.median": lambda a, v, p: np.median(a, axis=0, keepdims=True) + np.median(v) + np.median(a),
    "np.min": lambda a, v, p: np.min(a) + np.minimum.reduce(a, axis=-1, keepdims=True),
    "np.percentile": lambda a, v, p: np.percentile(a, [0, 25, 90], axis=0) + np.percentile(v, 40),
    "np.prod": lambda a, v, p: a.prod() + np.prod(a, axis=0) + np.prod(a > 0, axis=0),
    "np.ptp": lambda a, v, p: np.ptp(a) + np.ptp(a, axis=1, keepdims=True),
    "np.quantile": lambda a, v, p: np.quantile(a, 0.3, axis=1) * np.quantile(v, 0.6),
    "np.sort": lambda a, v, p: np.sort(a) + np.sort(a, axis=0) + np.sort(a, axis=None)[:3],
    "np.std": lambda a, v, p: a.std() + np.std(a, axis=0) + np.std(a > 0, ddof=1),
    "np.var": lambda a, v, p: a.var() + np.var(a, axis=0) + np.var(a, axis=(0, 1), ddof=1),
}
if hasattr(np, "cumulative_sum"):
    VALUES |= {
        "np.cumulative_prod": lambda a, v, p: (
            np.cumulative_prod(a, axis=1, include_initial=True)[:, 1:] + np.cumulative_prod(v)
        ),
        "np.cumulative_sum": lambda a, v, p: (
            np.cumulative_sum(a, axis=0, include_initial=True)[1:] + np.cumulative_sum(v)
        ),
    }
if hasattr(np, "trapezoid"):
    VALUES["np.trapezoid"] = lambda a, v, p: (
        np.trapezoid(a) + np.trapezoid(a, v) + np.trapezoid(v, dx=0.5) + np.trapezoid(a, a * a)
    )
if hasattr(np, "trapz"):
    VALUES["np.trapz"] = lambda a, v, p: np.trapz(a) + np.trapz(a, v)  # noqa: NPY201

MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, True, False]])
CHOSEN = [
    lambda x: np.sum(x, where=MASK),
    lambda x: np.sum(x, axis=1, initial=2, where=MASK[0]),
    lambda x: x.prod(axis=0, where=x > 0, initial=3),
    lambda x: np.mean(x, axis=1, keepdims=True, where=MASK),
    lambda x: x.max(axis=0, initial=-1, where=MASK),
    lambda x: np.min(x, initial=1, where=x > 0),
    lambda x: np.max(x, axis=1, initial=0),
    lambda x: np.max(x[:0], axis=0, initial=7),
    lambda x: np.maximum.reduce(x, axis=None, initial=2),
    lambda x: np.add.reduce(x, initial=2),
    lambda x: np.sum(x > 0, axis=0, where=MASK),
    lambda x: np.any(x > 1, axis=1, where=MASK),
    lambda x: np.all(x > -1, axis=0, where=MASK),
]


@pytest.mark.parametrize("k", range(len(CHOSEN)))
def test_elements_that_count_and_where_a_reduction_begins(k):
    floats = np.random.default_rng(0).standard_normal((3, 4))
    assert_like_numpy(CHOSEN[k], floats)
    assert_like_numpy(CHOSEN[k], (3 * floats).astype(int))
    if k in (0, 1, 3):  # the others compare, which complex numbers do not
        assert_slopes(CHOSEN[k], floats)


def test_an_element_that_does_not_count_contributes_zero():
    def f(x):
        return np.sum(np.log(x), where=x > 0) + np.max(1 / x, initial=0, where=x > 0)

    slope = bo.grad(f)
    np.testing.assert_allclose(slope(np.array([0.0, 2.0, -1.0])), [0, 1 / 2 - 1 / 4, 0])
