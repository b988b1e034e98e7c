"""The minimum of a strongly convex function, to rounding, for f(x) - f* in a run's history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from buropt.problems.constants import Minimum

if TYPE_CHECKING:
    from buropt.oracle import Oracle

_SOLVERS: dict[Any, Any] = {
    "L-BFGS-B": {"maxiter": 20000, "maxfun": 40000, "maxcor": 30, "ftol": 0.0, "gtol": 0.0},
    "Newton-CG": {"maxiter": 100, "xtol": 0.0},
}


def strongly_convex_minimum(oracle: Oracle, mu: float) -> Minimum | None:
    """The minimum of the oracle's function, which is `mu`-strongly convex, mu > 0.

    L-BFGS, then Newton-CG where its line search has come to an end. The result is certified:
    f(x) - f* <= |grad f(x)|^2 / (2 mu) has to be of the size of rounding errors in f(x), 1000 eps
    relative to max(1, |f|). None if no point was found for which it is.
    """

    def value_and_grad(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, grad = oracle.value_and_grad(x.astype(oracle.dtype))
        return float(value), grad.astype(np.float64)

    def certified(x: NDArray[np.float64]) -> bool:
        value, grad = value_and_grad(x)
        return float(grad @ grad) / (2 * mu) <= 1000 * eps * max(1.0, abs(value))

    eps = float(np.finfo(oracle.dtype).eps)
    x = np.zeros(oracle.dim)
    for method, options in _SOLVERS.items():
        best = value_and_grad(x)[0]
        found: Any = scipy.optimize.minimize(
            value_and_grad, x, jac=True, method=method, options=options
        )
        x = found.x if found.fun <= best else x
        if certified(x):
            return Minimum(value_and_grad(x)[0], x)
    return None
