"""`minimize`: SciPy's methods with derivatives from buropt."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import HessianUpdateStrategy, OptimizeResult

from buropt.scipy.bounds import clipped, read_bounds
from buropt.scipy.callbacks import Callback
from buropt.scipy.constraints import are_finite_at, read_constraints
from buropt.scipy.parameters import Array
from buropt.scipy.pieces import Pieces, are_finite
from buropt.scipy.result import NonFiniteError, failed, finished, stopped

WITH_GRADIENT = ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP")
WITH_PRODUCTS = ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr")
WITH_HESSIAN = ("dogleg", "trust-exact")
WITHOUT_GRADIENT = ("Nelder-Mead", "Powell", "COBYLA", "COBYQA")
METHODS = WITH_GRADIENT + WITH_PRODUCTS + WITH_HESSIAN + WITHOUT_GRADIENT


def minimize(
    fun: Any,
    x0: Any = None,
    args: Any = (),
    method: str | Callable[..., Any] | None = None,
    *,
    hess: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResult:
    """Minimize an oracle or a NumPy function by a method of `scipy.optimize.minimize`.

    The method gets the gradient, and the Hessian or its products if it uses them. Value and
    gradient are evaluated together, once for each point.

    Parameters
    ----------
    fun : Oracle or callable
        An oracle, or ``fun(x, *args)`` written with NumPy that returns one number.
    x0 : array, number, or nested dict, list, tuple of arrays, optional
        Start point; an oracle has its own. Integers are promoted.
    args : tuple
        More arguments of a function; anything else is one argument.
    method : str or callable, optional
        One of SciPy's, in any case; by default SLSQP with constraints, L-BFGS-B with bounds, BFGS
        with neither. A callable is a method as SciPy documents it.
    hess : HessianUpdateStrategy, optional
        For "trust-constr", to approximate the Hessian instead of using products with the exact one.
    bounds : Bounds or sequence of pairs, optional
        As SciPy documents it, or pairs nested like x0: ``{"w": (0, None), "b": None}``.
    constraints : optional
        As SciPy documents it, of functions of `x` nested like x0. Jacobians and Hessian products
        are derived unless `jac` is a function.
    tol, options
        As SciPy documents them.
    callback : callable, optional
        ``callback(xk)`` or ``callback(intermediate_result)`` after each iteration, both for every
        method, or ``callback(xk, state)`` for "trust-constr". Every xk is a new array, or a nest
        of new arrays. StopIteration ends the run.

    Returns
    -------
    OptimizeResult
        SciPy's, with `x` and `jac` nested as x0. `fun` is the value at `x` to the last bit:
        ``oracle.value(result.x)``. In addition `n_evaluations`, how often value and gradient were
        computed. On the way a method may step back from values that are not finite (NaN counts
        as inf there). A run that ends at one has ``success=False``, ``status=-1`` and the last
        finite point.

    Raises
    ------
    ValueError, TypeError
        For an unknown method, a minibatch oracle, an objective that is no number, or whatever SciPy
        refuses.
    """
    args = args if isinstance(args, tuple) else (args,)
    pieces = Pieces(fun, x0)
    name = name_of(method, bounds, constraints)
    if hess is not None and not (name == "trust-constr" and _is_update(hess)):
        raise TypeError(
            "hess may be a HessianUpdateStrategy, such as scipy.optimize.BFGS(), with the method "
            "trust-constr. Instead: leave it out for the exact Hessian."
        )
    bounds = read_bounds(bounds, pieces.parameters)
    # Where SciPy starts: but for one method, at x0 moved into the bounds.
    start = pieces.x0 if name == "trust-constr" else clipped(pieces.x0, bounds)
    if not pieces.point(start, *args).is_finite:
        return failed(pieces, args, "value or gradient at the start")
    guarded = Guarded(pieces)
    keywords: dict[str, Any] = {
        "bounds": bounds,
        "constraints": read_constraints(constraints, pieces.parameters, name),
        "tol": tol,
        "options": None if options is None else dict(options),
        **derivatives(guarded, name, hess),
    }
    caller = None if callback is None else Callback(callback, pieces, args)
    if caller is not None:
        keywords["callback"] = caller.for_scipy(name)
    try:
        result = scipy.optimize.minimize(guarded.fun, pieces.x0, args, method, **keywords)
    except NonFiniteError as error:
        return failed(pieces, args, str(error))
    except StopIteration:
        if caller is None or caller.x is None:
            raise
        return stopped(pieces, caller.x, args)
    except (ValueError, np.linalg.LinAlgError) as error:
        # What SciPy's linear algebra makes of NaN; other mistakes are the user's.
        is_users = caller is not None and caller.error is error
        if is_users or (pieces.n_non_finite == 0 and "infs or NaNs" not in str(error)):
            raise
        return failed(pieces, args, f"SciPy's {method} stopped with {str(error)!r}")
    if not are_finite_at(keywords["constraints"], np.array(result.x, np.float64)):
        return failed(pieces, args, "a constraint where the method ended", result)
    has_gradient = "grad" if name == "trust-constr" else "jac"
    return finished(result, pieces, args, has_gradient if has_gradient in result else None)


class Guarded:
    """What a method is given: the pieces, which end the run at what no method can go on from."""

    def __init__(self, pieces: Pieces) -> None:
        point, pieces_hess, pieces_hessp = pieces.point, pieces.hess, pieces.hessp

        def fun(x: Any, *args: Any) -> float:
            value = point(x, *args).value
            if value == -math.inf:
                raise NonFiniteError("the value is -inf, so there is no minimum")
            return math.inf if math.isnan(value) else value

        def jac(x: Any, *args: Any) -> Array:
            found = point(x, *args)
            if not found.is_finite and math.isfinite(found.value):
                raise NonFiniteError("the gradient, where the value is finite")
            gradient: Array = found.gradient.copy()
            return gradient

        def hess(x: Any, *args: Any) -> Array:
            return checked(pieces_hess(x, *args), "the Hessian")

        def hessp(x: Any, p: Any, *args: Any) -> Array:
            return checked(pieces_hessp(x, p, *args), "a product with the Hessian")

        def checked(array: Array, what: str) -> Array:
            if not are_finite(array):
                raise NonFiniteError(what)
            return array

        self.fun, self.jac, self.hess, self.hessp = fun, jac, hess, hessp


def stepping_back(pieces: Pieces, args: tuple[Any, ...]) -> Callable[[Any], float]:
    """The value for a search that goes elsewhere from where it is not finite."""
    fun = pieces.fun

    def value(x: Any) -> float:
        found = fun(x, *args)
        return found if math.isfinite(found) else math.inf

    return value


def derivatives(source: Guarded | Pieces, method: str, hess: Any = None) -> dict[str, Any]:
    """What `scipy.optimize.minimize` is told for a method, in lower case; "" for a callable."""
    if method in _lower(WITHOUT_GRADIENT):
        return {}
    if method in _lower(WITH_GRADIENT):
        return {"jac": source.jac}
    if method in _lower(WITH_HESSIAN):
        return {"jac": source.jac, "hess": source.hess}
    if hess is not None:
        return {"jac": source.jac, "hess": hess}
    if method == "":
        return {"jac": source.jac, "hess": source.hess, "hessp": source.hessp}
    return {"jac": source.jac, "hessp": source.hessp}


def name_of(method: Any, bounds: Any, constraints: Any) -> str:
    """The method's name in lower case, SciPy's choice for None; empty for a callable."""
    if callable(method):
        return ""
    if method is None:
        has_constraints = not isinstance(constraints, list | tuple) or len(constraints) > 0
        return "slsqp" if has_constraints else "bfgs" if bounds is None else "l-bfgs-b"
    if not isinstance(method, str) or method.lower() not in _lower(METHODS):
        raise ValueError(f"{method!r} is none of SciPy's methods, {', '.join(METHODS)}")
    return method.lower()


def _lower(names: tuple[str, ...]) -> list[str]:
    return [name.lower() for name in names]


def _is_update(hess: Any) -> bool:
    return isinstance(hess, HessianUpdateStrategy)
