"""`root` and `fsolve` with exact Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import scipy.optimize
from scipy.optimize import OptimizeResult

from buropt.scipy.parameters import Parameters
from buropt.scipy.pieces import are_finite
from buropt.scipy.result import NON_FINITE
from buropt.scipy.vector import VectorPieces

WITH_JACOBIAN = ("hybr", "lm")


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    *,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResult:
    """Find where a function is zero by `scipy.optimize.root`.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` in NumPy, with `x` nested as x0: as many results as x has numbers, in an
        array or a nest of arrays and numbers.
    x0 : array, number, or nested dict, list, tuple of arrays
        Start point.
    args : tuple
        More arguments; anything else is one argument.
    method : str
        One of SciPy's. "hybr" and "lm" use the Jacobian, the others the function alone.
    tol, callback, options
        As SciPy documents them; the callback gets `x` nested as x0.

    Returns
    -------
    OptimizeResult
        SciPy's, with `x` nested as x0. At a result that is not finite ``success=False`` and
        ``status=-1``.
    """
    parameters = Parameters.read(x0)
    pieces = VectorPieces(fun, parameters)
    args = args if isinstance(args, tuple) else (args,)
    given: dict[str, Any] = {"tol": tol, "options": None if options is None else dict(options)}
    if method.lower() in WITH_JACOBIAN:
        given["jac"] = pieces.jac
    if callback is not None:
        given["callback"] = lambda x, f: callback(parameters.tree(x), f)
    result = scipy.optimize.root(pieces.fun, parameters.start, args, method, **given)
    result.fun = pieces.fun(result.x, *args)
    if not are_finite(result.fun):
        result.update(
            success=False,
            status=NON_FINITE,
            message="Not finite: the function where the method ended.",
        )
    if not parameters.is_vector:
        result.x = parameters.tree(result.x)
    return result


def fsolve(
    func: Callable[..., Any], x0: Any, args: Any = (), *, full_output: bool = False, **options: Any
) -> Any:
    """Find where a function is zero by `scipy.optimize.fsolve`.

    Parameters
    ----------
    func, x0, args
        As for `root`.
    full_output : bool
        Return ``(x, infodict, ier, mesg)``.
    **options
        As SciPy documents them: xtol, maxfev, factor, diag, ...

    Returns
    -------
    x : nested as x0
    """
    parameters = Parameters.read(x0)
    pieces = VectorPieces(func, parameters)
    found = scipy.optimize.fsolve(
        pieces.fun,
        parameters.start,
        args if isinstance(args, tuple) else (args,),
        fprime=pieces.jac,
        full_output=full_output,
        **options,
    )
    if full_output:
        x, *rest = found
        return parameters.tree(x), *rest
    return parameters.tree(found)
