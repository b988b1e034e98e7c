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
    """A function of one variable: mpmath's function, and where it is tried."""

    def __init__(self, reference, low=-INF, high=INF, slopes=(-3, 3), ulps=4, scale=None):
        self.reference = reference
        self.domain = (low, high)
        self.slopes = slopes
        self.ulps = ulps
        self.scale = scale  # what an error is measured by, if not by the value


def log_gamma(x):
    return mp.log(abs(mp.gamma(x)))


def at_least_one(x):
    return mpf(1)


CASES = {
    "cosm1": Case(lambda x: -2 * mp.sin(x / 2) ** 2, -1e8, 1e8),
    "entr": Case(lambda x: -x * mp.log(x), 0, 1e30, slopes=(0.01, 3), ulps=2),
    "erf": Case(mp.erf, slopes=(-5, 5), ulps=2),
    "erfc": Case(erfc, slopes=(-5, 20)),
    "erfcinv": Case(erfcinv, 1e-290, 2 - 1e-15, slopes=(1e-5, 1.99)),
    "erfcx": Case(lambda x: mp.exp(x * x) * mp.erfc(x), -26, 1e4, slopes=(-4, 60)),
    "erfinv": Case(mp.erfinv, -1 + 1e-7, 1 - 1e-7, slopes=(-0.99, 0.99)),
    "exp10": Case(lambda x: mpf(10) ** x, -1e6, 1e6, ulps=2),
    "exprel": Case(lambda x: mp.expm1(x) / x if x else mpf(1), -1e3, 700, slopes=(-20, 20), ulps=2),
    "gamma": Case(mp.gamma, -170.5, 171, slopes=(-6, 9)),
    "gammaln": Case(log_gamma, 0, 1e30, slopes=(0.02, 30)),
    "i0": Case(lambda x: mp.besseli(0, x), -700, 700, slopes=(-30, 30)),
    "i0e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), -1e4, 1e4, slopes=(0, 30)),
    "i1": Case(lambda x: mp.besseli(1, x), -700, 700, slopes=(-30, 30)),
    "i1e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), -1e4, 1e4, slopes=(0, 30)),
    "log_ndtr": Case(lambda x: mp.log(ndtr(x)), -1e4, 5, slopes=(-60, 5)),
    "logit": Case(lambda x: mp.log(x / (1 - x)), 0, 1, slopes=(0.01, 0.99)),
    "ndtr": Case(ndtr, slopes=(-20, 5)),
    "ndtri": Case(lambda p: -mp.sqrt(2) * erfcinv(2 * p), 1e-290, 1 - 1e-15, slopes=(1e-5, 0.99)),
    "psi": Case(lambda x: mp.psi(0, x), 0, 1e30, slopes=(0.02, 30)),
    "sinc": Case(mp.sincpi, -1e9, 1e9, slopes=(-5, 5)),
}
# Terms cancel at zeros between the poles.
BELOW_ZERO = {
    "gammaln": Case(log_gamma, -100, 0, slopes=(-8, -0.1), scale=at_least_one),
    "psi": Case(lambda x: mp.psi(0, x), -100, 0, slopes=(-8, -0.1), ulps=8, scale=at_least_one),
}


@pytest.fixture(autouse=True)
def _precision():
    with mpmath.workdps(40):
        yield


def values(name, x):
    """By the traced function: some have attributes, which the tile kernel alone does not get."""
    run = bo.value_and_grad(lambda x, w: np.sum(w * getattr(sp, name)(x)), argnums=1)
    return run(x, np.ones_like(x))[1]


POLES = {"gamma", "gammaln", "psi"}  # 0, -1, -2, ...
EVERYWHERE = [*CASES.items(), *BELOW_ZERO.items()]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "case"), EVERYWHERE)
def test_error(name, case, dtype):
    rng = np.random.default_rng(len(name))
    x = np.concatenate([sample(name, dtype, case.domain)[::8], rng.uniform(*case.slopes, 120)])
    x = finite(x, dtype)
    x = x[(x > case.domain[0]) & (x < case.domain[1])]
    if name in POLES:
        x = x[(x > 0) | (x != np.rint(x))]
    references = [case.reference(mpf(float(v))) for v in x]
    scales = case.scale and [max(abs(r), case.scale(v)) for r, v in zip(references, x, strict=True)]
    assert worst(values(name, x), references, scales) <= case.ulps


@pytest.mark.parametrize(("name", "case"), EVERYWHERE)
def test_derivatives(name, case):
    """Three orders, in float64; beside a zero an error is measured by the neighbouring orders."""
    x = np.random.default_rng(len(name)).uniform(*case.slopes, 12)
    f = lambda x: np.sum(getattr(sp, name)(x))  # noqa: E731
    g = bo.grad(f)
    h = bo.grad(lambda x: np.sum(g(x)))
    third = bo.grad(lambda x: np.sum(h(x)))
    orders = [np.array([mp.diff(case.reference, mpf(v), n) for v in x], float) for n in range(5)]
    for n, derivative in enumerate((g, h, third), start=1):
        scale = np.abs(orders[n]) + 1e-3 * (np.abs(orders[n - 1]) + np.abs(orders[n + 1]))
        error = np.abs(derivative(x) - orders[n]) / scale
        assert error.max() < 3e-12, (name, n, x[error.argmax()])


@pytest.mark.parametrize("name", CASES)
def test_first_derivative_in_float32(name):
    case = CASES[name]
    x = np.random.default_rng(len(name)).uniform(*case.slopes, 12).astype(np.float32)
    slopes = np.array([mp.diff(case.reference, mpf(float(v))) for v in x], float)
    gradient = bo.grad(lambda x: np.sum(getattr(sp, name)(x)))(x)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, slopes, rtol=3e-5, atol=1e-30)


# ---- two variables


def close(rng, n):
    """Pairs of positive numbers, from very close to far apart."""
    a = np.exp(rng.normal(0, 2, n))
    return a, a * np.exp(rng.normal(0, 1, n) * 10 ** rng.uniform(-8, 0.5, n))


def anywhere(low, high):
    return lambda rng, n: (rng.uniform(low, high, n), rng.uniform(low, high, n))


def boxcox(x, p):
    return mp.expm1(p * mp.log(x)) / p if p else mp.log(x)


def inv_boxcox(y, p):
    return mp.exp(mp.log1p(p * y) / p) if p else mp.exp(y)


def huber(delta, r):
    return r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


def pseudo_huber(delta, r):
    return delta**2 * (mp.sqrt(1 + (r / delta) ** 2) - 1)


def box_cox_points(rng, n):
    return np.exp(rng.normal(0, 2, n)), rng.normal(0, 1, n) * 10 ** rng.uniform(-9, 0.5, n)


# mpmath's function, points, and what an error is measured by, if not by the value.
PAIRS = {
    "beta": (mp.beta, anywhere(0.1, 20), None),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), anywhere(0.1, 40), at_least_one),
    "boxcox": (boxcox, box_cox_points, None),
    "huber": (huber, lambda rng, n: (rng.uniform(0.1, 3, n), rng.normal(0, 2, n)), None),
    "inv_boxcox": (
        inv_boxcox,
        lambda rng, n: (rng.uniform(-2, 2, n), rng.uniform(-0.45, 0.45, n) ** 9),
        None,
    ),
    "kl_div": (lambda a, b: a * mp.log(a / b) - a + b, close, None),
    "pseudo_huber": (
        pseudo_huber,
        lambda rng, n: (rng.uniform(0.1, 3, n), rng.normal(0, 1, n) * 10 ** rng.uniform(-6, 3, n)),
        None,
    ),
    "rel_entr": (lambda a, b: a * mp.log(a / b), close, None),
    "xlog1py": (lambda a, b: a * mp.log1p(b), anywhere(-0.9, 3), None),
    "xlogy": (lambda a, b: a * mp.log(b), anywhere(0, 3), None),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_error_of_pairs(name, dtype):
    reference, points, least = PAIRS[name]
    a, b = (x.astype(dtype) for x in points(np.random.default_rng(1), 300))
    run = bo.grad(lambda a, b, w: np.sum(w * getattr(sp, name)(a, b)), argnums=2)
    y = run(a, b, np.ones_like(a))
    pairs = [(mpf(float(p)), mpf(float(q))) for p, q in zip(a, b, strict=True)]
    references = [reference(*pair) for pair in pairs]
    scales = least and [max(abs(r), 1) for r in references]
    assert worst(y, references, scales) <= 4


@pytest.mark.filterwarnings("ignore::buropt.DisconnectedInputWarning")
@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_of_pairs(name):
    """Gradient and Hessian."""
    reference, points, _ = PAIRS[name]
    a, b = points(np.random.default_rng(2), 10)
    gradients = bo.grad(lambda a, b: np.sum(getattr(sp, name)(a, b)), argnums=(0, 1))(a, b)
    seconds = [
        bo.grad(
            lambda a, b, k=k: np.sum(bo.grad(getattr(sp, name), argnums=k)(a, b)), argnums=(0, 1)
        )
        for k in (0, 1)
    ]
    for i, pair in enumerate(zip(a, b, strict=True)):
        at = tuple(mpf(v) for v in pair)
        scale = abs(float(reference(*at)))
        for k in (0, 1):
            slope = float(mp.diff(reference, at, (1 - k, k)))
            assert gradients[k][i] == pytest.approx(slope, rel=1e-11, abs=1e-13 * scale)
            for m in (0, 1):
                order = (2 - k - m, k + m)
                second = float(mp.diff(reference, at, order))
                got = seconds[k](*pair)[m]
                assert got == pytest.approx(second, rel=1e-10, abs=1e-12 * (scale + abs(slope)))


# ---- points


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
    (sp.exprel, [0], 1, 0.5),
    (sp.exprel, [-INF], 0, 0),
    (sp.exprel, [INF], INF, INF),
    (sp.gamma, [1], 1),
    (sp.gamma, [5], 24),
    (sp.gamma, [INF], INF),
    (sp.gamma, [-INF], NAN),
    (sp.gammaln, [1], 0),
    (sp.gammaln, [2], 0),
    (sp.gammaln, [INF], INF),
    (sp.psi, [0], -INF),
    (sp.psi, [-3], NAN),
    (sp.i0, [0], 1, 0),
    (sp.i1, [0], 0, 0.5),
    (sp.i1e, [0], 0, 0.5),
    (sp.i0e, [INF], 0, 0),
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
