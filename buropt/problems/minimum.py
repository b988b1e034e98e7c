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
    eps = float(np.finfo(oracle.dtype).eps)
    x = np.zeros(oracle.dim)
    for method in _SOLVERS:
        x = descent(oracle, x, method)
        value, grad = _value_and_grad(oracle, x)
        if float(grad @ grad) / (2 * mu) <= 1000 * eps * max(1.0, abs(value)):
            return Minimum(value, x)
    return None


def descent(
    oracle: Oracle,
    x: NDArray[np.float64] | None = None,
    method: str = "L-BFGS-B",
    **options: Any,
) -> NDArray[np.float64]:
    """Where a method of SciPy's ends from x, by default the oracle's start; x itself if no lower.

    A stationary point to rounding, if all goes well. `options` are SciPy's.
    """
    start = np.asarray(oracle.x0 if x is None else x, np.float64).ravel()
    best = _value_and_grad(oracle, start)[0]
    found: Any = scipy.optimize.minimize(
        lambda x: _value_and_grad(oracle, x),
        start,
        jac=True,
        method=method,
        options=_SOLVERS[method] | options,
    )
    end: NDArray[np.float64] = found.x if found.fun <= best else start
    return end


def _value_and_grad(oracle: Oracle, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    value, grad = oracle.value_and_grad(x.astype(oracle.dtype))
    return float(value), grad.astype(np.float64)
