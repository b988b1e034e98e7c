"""What SciPy's results say in the end: the user's form, the exact value, no success by accident."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from buropt.scipy.pieces import Pieces

NON_FINITE = -1
"""The status of a run that ended because something was not finite."""

STOPPED = 99
"""SciPy's status for a callback that raised StopIteration."""


class NonFiniteError(ArithmeticError):
    """Something that SciPy's methods cannot go on from; `minimize` makes a result of it."""


def finished(
    result: OptimizeResult,
    pieces: Pieces,
    args: tuple[Any, ...],
    gradient: str | None,
    *,
    is_local: bool = True,
) -> OptimizeResult:
    """SciPy's result with the value at its x, or the failure if that is not finite.

    Parameters
    ----------
    result : OptimizeResult
    pieces, args
        What was minimized.
    gradient : str or None
        The result's name for the gradient.
    is_local : bool
        Whether the last evaluation says why the method ended.
    """
    # A line search or trust region that cannot get away from such points may call it convergence.
    if is_local and result.get("success", True) and not pieces.ended_finite:
        return failed(pieces, args, "the last point that the method tried", result)
    x = np.array(result.x, np.float64)
    last = pieces.point(x, *args)
    if not last.is_finite:
        what = "value" if not np.isfinite(last.value) else "gradient"
        return failed(pieces, args, f"the {what} is not finite where the method ended", result)
    result.x, result.fun = x, pieces.value(x, *args)
    if gradient is not None:
        result[gradient] = last.gradient.copy()
    return in_users_form(result, pieces)


def failed(
    pieces: Pieces, args: tuple[Any, ...], why: str, result: OptimizeResult | None = None
) -> OptimizeResult:
    """The result of a run that met something non-finite: no success, the last finite point."""
    result = OptimizeResult() if result is None else result
    last = pieces.last_finite
    if last is None:
        last = pieces.point(pieces.x0, *args)
        where = "no finite point was found, x is the start"
    else:
        where = "x is the last point where value and gradient were finite"
    result.update(
        x=last.x.copy(),
        fun=last.value,
        success=False,
        status=NON_FINITE,
        message=f"Not finite: {why}; {where}.",
    )
    result["grad" if "grad" in result else "jac"] = last.gradient.copy()
    result.setdefault("nfev", pieces.n_evaluations)
    result.setdefault("njev", pieces.n_evaluations)
    return in_users_form(result, pieces)


def stopped(pieces: Pieces, x: Any, args: tuple[Any, ...]) -> OptimizeResult:
    """The result of a method that does not know StopIteration itself: x is the callback's."""
    result = OptimizeResult(
        x=x,
        success=False,
        status=STOPPED,
        message="`callback` raised `StopIteration`.",
        nfev=pieces.n_evaluations,
        njev=pieces.n_evaluations,
    )
    return finished(result, pieces, args, "jac")


def in_users_form(result: OptimizeResult, pieces: Pieces) -> OptimizeResult:
    """Points and gradients nested as x0 was; and how often the objective was evaluated."""
    result.n_evaluations = pieces.n_evaluations
    if not pieces.parameters.is_vector:
        tree = pieces.parameters.tree
        for name in ("x", "jac", "grad"):
            if isinstance(result.get(name), np.ndarray) and result[name].ndim == 1:
                result[name] = tree(result[name])
        if "allvecs" in result:
            result.allvecs = [tree(x) for x in result.allvecs]
    return result
