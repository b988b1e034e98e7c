"""`VectorPieces`: values, Jacobian and Hessian products of a function with a vector of results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from buropt.autodiff import hvp, jacobian
from buropt.autodiff.compiled import Direct
from buropt.autodiff.transforms import Value
from buropt.oracle import Oracle
from buropt.scipy.memory import remembering
from buropt.scipy.parameters import Array, Parameters, converter, of_vector
from buropt.tree import flatten_leaves


class VectorPieces:
    """The functions that SciPy's solvers take, of a NumPy function with several results.

    Points are vectors (n,); all arrays that are given out are float64, C-contiguous and new.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` with `x` nested as x0; its results, an array of any shape or a nest of
        arrays and numbers, are taken in a row as m numbers.
    parameters : Parameters

    Attributes
    ----------
    fun : callable
        ``fun(x, *args)``, the results (m,).
    jac : callable
        ``jac(x, *args)``, the Jacobian (m, n).

    Raises
    ------
    TypeError
        For an oracle, which has one value.
    """

    fun: Callable[..., Array]
    jac: Callable[..., Any]

    def __init__(self, fun: Callable[..., Any], parameters: Parameters) -> None:
        if isinstance(fun, Oracle) or isinstance(getattr(fun, "__self__", None), Oracle):
            raise TypeError(
                "an oracle has one value. Instead: pass a NumPy function that returns the vector."
            )
        if not callable(fun):
            raise TypeError(f"pass a function, not a {type(fun).__name__}")
        self.parameters = parameters
        self.function = in_a_row(of_vector(fun, parameters.spec, scalar=False))
        computed = converter(parameters.spec.dtype)
        self.fun = _copies(Direct(Values(self.function)), computed)
        self.jac = _copies(jacobian(self.function), computed)
        self._made_of = fun, parameters

    def hess(self, x: Any, v: Any) -> LinearOperator:
        """The Hessian at x of the sum of v_i times result i, as products; v (m,)."""
        computed = self.parameters.computed
        product = self._weighted_product
        x, v = computed(x).copy(), computed(v).copy()

        def times(p: Any) -> Array:
            return np.asarray(product(x, computed(np.ravel(p)), v), np.float64)

        n = x.size
        return LinearOperator((n, n), matvec=times, rmatvec=times, dtype=np.float64)

    @cached_property
    def _weighted_product(self) -> Callable[..., Any]:
        function = self.function
        return hvp(lambda x, v: np.sum(v * function(x)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of


class Values(Value):
    """The results alone; other arguments than x may be of any kind."""

    def argnums(self, n_args: int) -> tuple[int, ...]:
        """X."""
        return (0,)


def in_a_row(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its results as one vector."""

    def row(x: Any, *args: Any) -> Any:
        leaves, _ = flatten_leaves(function(x, *args))
        if len(leaves) == 1 and len(getattr(leaves[0], "shape", ())) == 1:
            return leaves[0]
        return np.concatenate([np.reshape(leaf, -1) for leaf in leaves])

    row.__wrapped__ = function  # type: ignore[attr-defined]  # messages name the user's function
    return row


def _copies(evaluate: Callable[..., Any], computed: Callable[[Any], Any]) -> Callable[..., Any]:
    """`evaluate` with a memory, of which it gives copies."""

    def compute(x: Any, *args: Any) -> Array:
        return np.asarray(evaluate(computed(x), *args), np.float64)

    look_up = remembering(compute)
    return lambda x, *args: look_up(x, *args).copy()
