"""`basinhopping` and `dual_annealing`, whose local searches use exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import Bounds, OptimizeResult

from buropt.oracle import Oracle
from buropt.scipy.bounds import read_bounds
from buropt.scipy.constraints import read_constraints
from buropt.scipy.minimizing import derivatives, name_of, stepping_back
from buropt.scipy.pieces import Pieces, whole_oracle
from buropt.scipy.result import finished, in_users_form


def basinhopping(
    func: Any,
    x0: Any = None,
    *,
    args: Any = (),
    minimizer_kwargs: Mapping[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    **options: Any,
) -> OptimizeResult:
    """Search for the global minimum by `scipy.optimize.basinhopping`.

    Parameters
    ----------
    func, x0, args
        As for `minimize`.
    minimizer_kwargs : dict, optional
        Of the local search, as for `minimize`: method ("L-BFGS-B" by default), bounds, constraints,
        tol, options.
    callback : callable, optional
        ``callback(x, f, accept)`` with `x` nested as x0.
    **options
        As SciPy documents them: niter, T, stepsize, take_step, accept_test, seed or rng, ...
        Those that take points take vectors (n,).

    Returns
    -------
    OptimizeResult
        SciPy's, as of `minimize`.
    """
    args = args if isinstance(args, tuple) else (args,)
    pieces = Pieces(func, x0)
    if callback is not None:
        options["callback"] = _with_tree(callback, pieces)
    result = scipy.optimize.basinhopping(
        stepping_back(pieces, args),
        pieces.x0,
        minimizer_kwargs=_local_search(pieces, args, minimizer_kwargs, None),
        **options,
    )
    lowest = result.get("lowest_optimization_result")
    if lowest is not None:
        in_users_form(lowest, pieces)
    return finished(result, pieces, args, None, is_local=False)


def dual_annealing(
    func: Any,
    bounds: Any,
    *,
    args: Any = (),
    minimizer_kwargs: Mapping[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    x0: Any = None,
    **options: Any,
) -> OptimizeResult:
    """Search for the global minimum within bounds by `scipy.optimize.dual_annealing`.

    Parameters
    ----------
    func, args
        As for `minimize`.
    bounds : Bounds, sequence of pairs, or pairs nested like x0
    minimizer_kwargs : dict, optional
        Of the local search, as for `minimize`: method ("L-BFGS-B" by default), tol, options.
    callback : callable, optional
        ``callback(x, f, context)`` with `x` nested as x0; True stops.
    x0 : optional
        A start point; needed for nested parameters, else drawn at random.
    **options
        As SciPy documents them: maxiter, seed or rng, no_local_search, ...

    Returns
    -------
    OptimizeResult
        SciPy's, as of `minimize`.
    """
    args = args if isinstance(args, tuple) else (args,)
    start = x0
    if start is None and not isinstance(whole_oracle(func), Oracle):
        start = np.zeros(len(bounds.lb if isinstance(bounds, Bounds) else bounds))
    pieces = Pieces(func, start)
    bounds = read_bounds(bounds, pieces.parameters)
    if callback is not None:
        options["callback"] = _with_tree(callback, pieces)
    result = scipy.optimize.dual_annealing(
        stepping_back(pieces, args),
        bounds,
        minimizer_kwargs=_local_search(pieces, args, minimizer_kwargs, bounds),
        x0=None if x0 is None else pieces.x0,
        **options,
    )
    return finished(result, pieces, args, None, is_local=False)


def _local_search(
    pieces: Pieces, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None, bounds: Any
) -> dict[str, Any]:
    given = {"method": "L-BFGS-B", **(kwargs or {})}
    constraints = given.get("constraints", ())
    method = name_of(given["method"], given.get("bounds"), constraints)
    if "bounds" in given:
        given["bounds"] = read_bounds(given["bounds"], pieces.parameters)
    elif bounds is not None and method in ("l-bfgs-b", "tnc", "slsqp", "trust-constr"):
        given["bounds"] = bounds
    if "constraints" in given:
        given["constraints"] = read_constraints(constraints, pieces.parameters, method)
    for name, function in derivatives(pieces, method).items():
        given[name] = _with_args(function, args)
    return given


def _with_args(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    if not args:
        return function
    return lambda *points: function(*points, *args)


def _with_tree(callback: Callable[..., Any], pieces: Pieces) -> Callable[..., Any]:
    return lambda x, f, third: callback(pieces.parameters.tree(x), f, third)
