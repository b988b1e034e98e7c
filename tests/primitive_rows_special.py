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
}
