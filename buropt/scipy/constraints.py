"""Constraints with exact Jacobians and Hessian products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import BFGS, LinearConstraint

from buropt.scipy.parameters import Array, Parameters
from buropt.scipy.pieces import are_finite
from buropt.scipy.vector import VectorPieces


class NonlinearConstraint(scipy.optimize.NonlinearConstraint):  # type: ignore[misc]
    """``lb <= fun(x) <= ub`` with the exact Jacobian and exact Hessian products of `fun`.

    For `scipy.optimize.minimize` itself and for `buropt.scipy.minimize`, which derives what it
    needs from SciPy's own `NonlinearConstraint`, too.

    Parameters
    ----------
    fun : callable
        ``fun(x)`` in NumPy, nested as x0; returns an array or several.
    lb, ub : array or number
        Equal for an equation, -inf or inf for none.
    x0 : array or nested dict, list, tuple of arrays
        Any point: it says how the parameters are nested.
    keep_feasible : bool or array of bool
        As SciPy documents it.

    Attributes
    ----------
    fun, jac, hess : callable
        ``fun(x)`` (m,), ``jac(x)`` (m, n), ``hess(x, v)`` a `LinearOperator` (n, n), with vectors
        x (n,).
    """

    def __init__(self, fun: Any, lb: Any, ub: Any, x0: Any, keep_feasible: Any = False) -> None:
        self._made_of = fun, lb, ub, x0, keep_feasible
        pieces = VectorPieces(fun, Parameters.read(x0))
        super().__init__(pieces.fun, lb, ub, pieces.jac, pieces.hess, keep_feasible)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of


def read_constraints(constraints: Any, parameters: Parameters, method: str) -> Any:
    """Constraints as SciPy takes them, with derivatives where none were given.

    Parameters
    ----------
    constraints : constraint, dict, or sequence of those
        Functions of `x` nested as x0. What has a callable `jac` keeps its derivatives; those, like
        the matrix of a `LinearConstraint`, are by the vector (n,).
    parameters : Parameters
    method : str
        In lower case: only "trust-constr" uses Hessians.
    """
    if isinstance(constraints, dict | scipy.optimize.NonlinearConstraint | LinearConstraint):
        constraints = [constraints]
    return [_read(constraint, parameters, method) for constraint in constraints]


def are_finite_at(constraints: Any, x: Array) -> bool:
    """Whether constraints, as they were read, are finite at a point (n,)."""
    for constraint in constraints:
        if isinstance(constraint, dict):
            values = constraint["fun"](x, *constraint.get("args", ()))
        elif isinstance(constraint, scipy.optimize.NonlinearConstraint):
            values = constraint.fun(x)
        else:
            continue
        if not are_finite(np.asarray(values, np.float64)):
            return False
    return True


def _read(constraint: Any, parameters: Parameters, method: str) -> Any:
    if isinstance(constraint, dict):
        return _read_dict(constraint, parameters)
    if not isinstance(constraint, scipy.optimize.NonlinearConstraint):
        return constraint
    fun, jac, hess = constraint.fun, constraint.jac, constraint.hess
    if not isinstance(constraint, NonlinearConstraint):
        if callable(jac):
            fun = _of_vector(fun, parameters)
        else:
            pieces = VectorPieces(fun, parameters)
            fun, jac = pieces.fun, pieces.jac
            hess = hess if callable(hess) else pieces.hess
    if method != "trust-constr":
        hess = BFGS()  # SciPy's default: it warns of any other that is not used
    return scipy.optimize.NonlinearConstraint(
        fun, constraint.lb, constraint.ub, jac, hess, constraint.keep_feasible
    )


def _read_dict(constraint: dict[str, Any], parameters: Parameters) -> dict[str, Any]:
    fun = constraint.get("fun")
    if fun is None:
        return constraint  # SciPy says what is missing
    if callable(constraint.get("jac")):
        return {**constraint, "fun": _of_vector(fun, parameters)}
    pieces = VectorPieces(fun, parameters)
    return {**constraint, "fun": pieces.fun, "jac": pieces.jac}


def _of_vector(fun: Callable[..., Any], parameters: Parameters) -> Callable[..., Any]:
    """The user's function of nested parameters, not traced, as one of a vector."""

    def of_vector(x: Array, *args: Any) -> Any:
        return fun(parameters.tree(x), *args)

    return fun if parameters.is_vector else of_vector
