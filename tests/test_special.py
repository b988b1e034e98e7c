"""Functions of scipy.special: errors in ulps, and derivatives up to the third, against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special as sp
from accuracy import DTYPES, call, finite, sample, worst
from mpmath import mp, mpf
from pointwise import INF, NAN, check

import buropt as bo


def erfc(x):
    return mpf(0) if x > 1e5 else mpf(2) if x < -1e5 else mp.erfc(x)


def ndtr(x):
    return erfc(-x / mp.sqrt(2)) / 2


def erfcinv(p):
    """Newton's method from SciPy's value."""
    y = mpf(sp.erfcinv(float(p)))
    for _ in range(3):
        y += (mp.erfc(y) - p) * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
    return y


class Case:
    """A function of one variable: SciPy's name, mpmath's function, where it is tried."""

    def __init__(self, reference, low=-INF, high=INF, slopes=(-3, 3), ulps=4):
        self.reference = reference
        self.domain = (low, high)
        self.slopes = slopes
        self.ulps = ulps


CASES = {
    "cosm1": Case(lambda x: -2 * mp.sin(x / 2) ** 2, -1e8, 1e8),
    "erf": Case(mp.erf, slopes=(-5, 5), ulps=2),
    "erfc": Case(erfc, slopes=(-5, 20)),
    "erfcinv": Case(erfcinv, 1e-290, 2 - 1e-15, slopes=(1e-5, 1.99)),
    "erfcx": Case(lambda x: mp.exp(x * x) * mp.erfc(x), -26, 1e4, slopes=(-4, 60)),
    "erfinv": Case(mp.erfinv, -1 + 1e-7, 1 - 1e-7, slopes=(-0.99, 0.99)),
    "exp10": Case(lambda x: mpf(10) ** x, -1e6, 1e6, ulps=2),
    "log_ndtr": Case(lambda x: mp.log(ndtr(x)), -1e4, 5, slopes=(-60, 5)),
    "logit": Case(lambda x: mp.log(x / (1 - x)), 0, 1, slopes=(0.01, 0.99)),
    "ndtr": Case(ndtr, slopes=(-20, 5)),
    "ndtri": Case(lambda p: -mp.sqrt(2) * erfcinv(2 * p), 1e-290, 1 - 1e-15, slopes=(1e-5, 0.99)),
}


@pytest.fixture(autouse=True)
def _precision():
    with mpmath.workdps(40):
        yield


def values(name, x):
    """By the traced function: some have attributes, which the tile kernel alone does not get."""
    run = bo.value_and_grad(lambda x, w: np.sum(w * getattr(sp, name)(x)), argnums=1)
    return run(x, np.ones_like(x))[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_error(name, dtype):
    case = CASES[name]
    rng = np.random.default_rng(len(name))
    x = np.concatenate([sample(name, dtype, case.domain)[::5], rng.uniform(*case.slopes, 200)])
    x = finite(x, dtype)
    x = x[(x > case.domain[0]) & (x < case.domain[1])]
    references = [case.reference(mpf(float(v))) for v in x]
    assert worst(values(name, x), references) <= case.ulps


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    """Three orders at once, in float64; the error of the last is measured by its neighbours."""
    case = CASES[name]
    x = np.random.default_rng(len(name)).uniform(*case.slopes, 16)
    f = lambda x: np.sum(getattr(sp, name)(x))  # noqa: E731
    g = bo.grad(f)
    h = bo.grad(lambda x: np.sum(g(x)))
    third = bo.grad(lambda x: np.sum(h(x)))
    orders = [np.array([mp.diff(case.reference, mpf(v), n) for v in x], float) for n in range(5)]
    for n, derivative in enumerate((g, h, third), start=1):
        scale = np.abs(orders[n]) + 1e-3 * (np.abs(orders[n - 1]) + np.abs(orders[n + 1]))
        error = np.abs(derivative(x) - orders[n]) / scale
        assert error.max() < 1e-12, (name, n, x[error.argmax()])


@pytest.mark.parametrize("name", CASES)
def test_first_derivative_in_float32(name):
    case = CASES[name]
    x = np.random.default_rng(len(name)).uniform(*case.slopes, 12).astype(np.float32)
    slopes = np.array([mp.diff(case.reference, mpf(float(v))) for v in x], float)
    gradient = bo.grad(lambda x: np.sum(getattr(sp, name)(x)))(x)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, slopes, rtol=3e-5, atol=1e-30)


# A point, the value there and, where it is a number of either dtype, the slope.
POINTS = [
    (sp.erf, [0], 0),
    (sp.erf, [INF], 1, 0),
    (sp.erf, [-INF], -1, 0),
    (sp.erf, [NAN], NAN, NAN),
    (sp.erfc, [INF], 0, 0),
    (sp.erfc, [-INF], 2, 0),
    (sp.erfc, [30], 0, 0),
    (sp.erfcx, [INF], 0, 0),
    (sp.erfcx, [-30], INF, -INF),
    (sp.erfinv, [1], INF, INF),
    (sp.erfinv, [-1], -INF, INF),
    (sp.erfinv, [1.5], NAN, NAN),
    (sp.erfcinv, [0], INF, -INF),
    (sp.erfcinv, [2], -INF, -INF),
    (sp.ndtr, [0], 0.5),
    (sp.ndtr, [-INF], 0, 0),
    (sp.ndtr, [INF], 1, 0),
    (sp.ndtri, [0], -INF, INF),
    (sp.ndtri, [0.5], 0),
    (sp.ndtri, [1], INF, INF),
    (sp.ndtri, [-0.5], NAN, NAN),
    (sp.log_ndtr, [INF], 0, 0),
    (sp.logit, [0.5], 0, 4),
    (sp.logit, [0], -INF, INF),
    (sp.logit, [1], INF, INF),
    (sp.logit, [-1], NAN),
    (sp.cosm1, [0], 0, 0),
]


@pytest.mark.parametrize("row", POINTS, ids=lambda row: f"{row[0].__name__} {row[1]}")
def test_points(row):
    f, point, value, *slopes = row
    check(f, point, value, *slopes)
    for dtype in DTYPES:
        np.testing.assert_array_equal(values(f.__name__, np.array(point, dtype)), [value])


def test_zero_keeps_its_sign():
    for name in ("erf", "erfinv", "cbrt"):
        for dtype in DTYPES:
            zeros = np.array([0.0, -0.0], dtype)
            assert np.signbit(call(name, zeros)).tolist() == [False, True]
