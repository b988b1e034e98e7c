"""The user's callback, as SciPy calls it, with points in the user's form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from buropt.scipy.parameters import Array
from buropt.scipy.pieces import Pieces


class Callback:
    """Hands SciPy's points on to the user's callback.

    Both of SciPy's signatures are known, ``callback(xk)`` and ``callback(intermediate_result)``,
    for every method; with "trust-constr" also ``callback(xk, state)``. Every point is an array, or
    a nest of arrays, of its own.

    Attributes
    ----------
    x : ndarray, shape (n,), or None
        The point of the last call.
    error : Exception or None
        What the user's callback has raised.
    """

    def __init__(self, callback: Callable[..., Any], pieces: Pieces, args: tuple[Any, ...]) -> None:
        self.x: Array | None = None
        self.error: Exception | None = None
        self._callback = callback
        self._pieces = pieces
        self._args = args
        self._names = list(inspect.signature(callback).parameters)
        self._value = np.nan

    def for_scipy(self, method: str) -> Callable[..., Any]:
        """What `scipy.optimize.minimize` takes for a method, in lower case."""
        return self._with_state if method == "trust-constr" else self._with_point

    def _call(self, *points: Any, **result: Any) -> Any:
        try:
            return self._callback(*points, **result)
        except Exception as error:
            self.error = error
            raise

    def _with_point(self, xk: Array) -> Any:
        # A trust region may stay where it is for longer than the pieces remember.
        if self.x is None or not np.array_equal(self.x, xk):
            self.x = np.array(xk, np.float64)
            self._value = self._pieces.fun(xk, *self._args)
        tree = self._pieces.parameters.tree(xk)
        if self._names == ["intermediate_result"]:
            result = OptimizeResult(x=tree, fun=self._value)
            return self._call(intermediate_result=result)
        return self._call(tree)

    def _with_state(self, xk: Array, state: OptimizeResult) -> Any:
        tree = self._pieces.parameters.tree(xk)
        if self._names == ["intermediate_result"]:
            return self._call(intermediate_result=OptimizeResult(state, x=tree))
        return self._call(tree, state) if len(self._names) > 1 else self._call(tree)
