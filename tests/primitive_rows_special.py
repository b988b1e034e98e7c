"""Rows of `primitive_rows.py` for special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.special
from primitive_rows import Example, Row


def family(
    reference: Callable[[Any, int], Any], members: tuple[int, ...], low: float, high: float
) -> Row:
    """A row for functions told apart by a constant n; SciPy computes them less exactly."""
    return Row(
        lambda x, n: reference(x, int(n)),
        tuple(Example((((2, 3), (low, high)),), {"n": n}) for n in members),
        ((Example(((2,),)), "the constant n is missing"),),
        ulp=200,
        rtol=1e-8,
    )


def _erfcx(x: Any, n: int) -> Any:
    """By the recurrence of the repeated integrals of erfc, good for small x."""
    below, here = 2 / np.sqrt(np.pi) + 0 * x, scipy.special.erfcx(x)
    for k in range(1, n + 1):
        below, here = here, (below - 2 * x * here) / (2 * k)
    return here


def _exprel(x: Any, n: int) -> Any:
    """By integration."""
    t, weights = np.polynomial.legendre.leggauss(30)
    t, weights = 0.5 + 0.5 * t, 0.5 * weights
    return np.sum(weights * t**n * np.exp(x[..., None] * t), axis=-1)


def _log1prel(x: Any, n: int) -> Any:
    """By integration."""
    t, weights = np.polynomial.legendre.leggauss(60)
    t, weights = 0.5 + 0.5 * t, 0.5 * weights
    return np.sum(weights * t**n / (1 + x[..., None] * t) ** (n + 1), axis=-1)


def _is_pole_of_beta(a: Any, b: Any) -> Any:
    """Whole numbers below 0, where SciPy takes limits, and what is not a number."""
    return ~((a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b))


SPECIAL_ROWS: dict[str, Row] = {
    "logaddexp2": Row(
        np.logaddexp2,
        cancels=True,
        precise=lambda a, b: mpmath.log(2**a + 2**b, 2),
    ),
    # -x^2 / 2 underflows.
    "cosm1": Row(scipy.special.cosm1, except_at=lambda x: (x != 0) & (np.abs(x) < 1e-30)),
    # SciPy's values of the three are off by some units.
    **{name: Row(getattr(scipy.special, name), ulp=40) for name in ("erfc", "ndtr", "log_ndtr")},
    # SciPy loses the sign of a zero, and what is close to it.
    "erfinv": Row(scipy.special.erfinv, except_at=lambda x: x == 0),
    "erfcinv": Row(scipy.special.erfcinv, except_at=lambda x: (x == 1) | (x < 1e-300)),
    "erfcx": family(_erfcx, (0, 1, 2), -1.5, 0.7),
    # NumPy rounds pi x before it takes the sine.
    "sinc": Row(
        np.sinc,
        ulp=40,
        cancels=True,
        except_at=lambda x: x == np.rint(x),
        precise=mpmath.sincpi,
        slope_ulp=20,
    ),
    # SciPy overflows for subnormal x, and is less exact around the zeros.
    "gammaln": Row(scipy.special.gammaln, ulp=200, except_at=lambda x: (x > 0) & (x < 1e-300)),
    "beta": Row(scipy.special.beta, ulp=20, extremes=False, except_at=_is_pole_of_beta),
    "betaln": Row(
        scipy.special.betaln, ulp=20, cancels=True, extremes=False, except_at=_is_pole_of_beta
    ),
    "polygamma": family(lambda x, n: scipy.special.polygamma(n, x), (0, 1, 2), 0.5, 6),
    "iv": family(lambda x, n: scipy.special.iv(n, x), (0, 1, 2, 5), -9, 9),
    "ive": family(lambda x, n: scipy.special.ive(n, x), (0, 1, 3), -9, 9),
    "spherical_jn": family(lambda x, n: scipy.special.spherical_jn(n, x), (0, 1, 3), -6, 6),
    "exprel": family(_exprel, (0, 1, 2), -3, 3),
    "log1prel": family(_log1prel, (0, 1, 2), -0.5, 3),
    # Close numbers, where SciPy's terms cancel, are in test_special.py.
    "kl_div": Row(
        scipy.special.kl_div,
        ulp=1e4,
        extremes=False,
        except_at=lambda a, b: np.isinf(a) | np.isinf(b),
    ),
    "boxcox": Row(scipy.special.boxcox, extremes=False, except_at=lambda a, b: np.isinf(b)),
    "inv_boxcox": Row(
        scipy.special.inv_boxcox,
        ulp=40,
        extremes=False,
        except_at=lambda a, b: np.isinf(a) | np.isinf(b),
    ),
    "huber": Row(scipy.special.huber, extremes=False),
    "pseudo_huber": Row(
        scipy.special.pseudo_huber,
        ulp=40,
        extremes=False,
        except_at=lambda a, b: ~np.isfinite(a) | (a == 0),
    ),
}
