"""`Pieces`: value, gradient and Hessian of one objective as SciPy's methods ask for them.

SciPy asks for the value and the gradient of a point by separate calls, in an order of each method's
own, and some methods come back to a point. Behind all of them is one evaluation of value and
gradient together, which is kept for the last few points.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt.autodiff import hessian, hvp, value_and_grad
from buropt.oracle import Oracle
from buropt.scipy.memory import remembering
from buropt.scipy.parameters import Array, Parameters, converter, of_vector

_MINIBATCH = (
    "SciPy's methods need the same function at every call, and a minibatch oracle is another one "
    "for every idx. Instead: pass the oracle itself, or compile one of those samples, "
    "bo.compile(loss, x0, data=(A[idx], y[idx]))."
)


class Point(NamedTuple):
    """An evaluated point: x (n,), the value, the gradient (n,), and whether those are finite."""

    x: Array
    value: float
    gradient: Array
    is_finite: bool


class Pieces:
    """The functions that SciPy's methods take, of an oracle or of a NumPy function.

    ::

        p = buropt.scipy.Pieces(rosenbrock, [-1.2, 1.0])
        scipy.optimize.minimize(p.fun, p.x0, jac=p.jac, hessp=p.hessp, method="trust-ncg")

    Points and directions are vectors of shape (n,), n the number of parameters. Every array that
    is given out is float64, C-contiguous and new, whatever the dtype of the computation.

    Parameters
    ----------
    fun : Oracle or callable
        An oracle, or a function ``fun(x, *args)`` written with NumPy that returns one number. A
        function sees `x` nested as x0 is, and is traced once for each set of shapes of `args`.
    x0 : array, number, or nested dict, list, tuple of arrays
        Start point; may be left out for an oracle, which has one. A list of numbers is an array.
        Integers are promoted. If all of it is float32, a function is computed in float32.

    Attributes
    ----------
    x0 : ndarray, shape (n,), float64
        The start point for SciPy.
    parameters : Parameters
        Between vectors and the user's form.
    fun : callable
        ``fun(x, *args)``, the value as a Python float.
    jac : callable
        ``jac(x, *args)``, the gradient, shape (n,).
    fun_and_jac : callable
        ``fun_and_jac(x, *args)``, both; for SciPy's ``jac=True``.
    point : callable
        ``point(x, *args)``, what is kept of an evaluation; not to be written into.
    n_evaluations : int
        How often value and gradient were computed: the number of distinct points, unless a method
        comes back to one after several others.
    n_non_finite : int
        At how many of them the value or the gradient was not finite.
    ended_finite : bool
        Whether both were at the last evaluated point.
    last_finite : Point or None
        The last evaluated point at which both were.

    Raises
    ------
    TypeError, ValueError
        For a minibatch oracle, `args` with an oracle, an x0 that does not fit; and by the first
        call if the function cannot be traced or returns more than one number.
    """

    fun: Callable[..., float]
    jac: Callable[..., Array]
    fun_and_jac: Callable[..., tuple[float, Array]]
    point: Callable[..., Point]

    def __init__(self, fun: Any, x0: Any = None) -> None:
        fun = whole_oracle(fun)
        self._made_of = fun, x0
        self.is_oracle = isinstance(fun, Oracle)
        self._evaluate: Callable[..., tuple[Any, Any]]
        self._product: Callable[..., Any]
        if isinstance(fun, Oracle):
            self.parameters = Parameters.of_oracle(fun, x0)
            self._evaluate, self._product, self._matrix = fun.value_and_grad, fun.hvp, fun.hessian
        else:
            if not callable(fun):
                raise TypeError(f"pass an oracle or a function, not a {type(fun).__name__}")
            if x0 is None:
                raise TypeError("x0 is missing: unlike an oracle, a function has no start point")
            self.parameters = Parameters.read(x0)
            flat = of_vector(fun, self.parameters.spec, scalar=True)
            self._evaluate = value_and_grad(flat)
            self._product, self._matrix = hvp(flat), hessian(flat)
        self.x0 = self.parameters.start.copy()
        self.n_evaluations = self.n_non_finite = 0
        self.ended_finite = True
        self.last_finite: Point | None = None
        self._connect()

    def _connect(self) -> None:
        """`point` and what reads from it, on one memory; closures, since SciPy waits for them."""
        evaluate, computed = self._evaluate, converter(self.parameters.spec.dtype)

        def evaluated(x: Array, *args: Any) -> Point:
            self._check(args)
            result, slope = evaluate(computed(x), *args)
            value = float(result)
            # The gradient is new, in float64 without a copy; it stays here and copies are given.
            gradient: Array = np.asarray(slope, np.float64)
            finite = math.isfinite(value) and are_finite(gradient)
            found = Point(x.copy(), value, gradient, finite)
            self.n_evaluations += 1
            self.ended_finite = finite
            if finite:
                self.last_finite = found
            else:
                self.n_non_finite += 1
            return found

        point = remembering(evaluated)

        def fun(x: Any, *args: Any) -> float:
            return point(x, *args).value

        def jac(x: Any, *args: Any) -> Array:
            gradient: Array = point(x, *args).gradient.copy()
            return gradient

        def fun_and_jac(x: Any, *args: Any) -> tuple[float, Array]:
            found = point(x, *args)
            return found.value, found.gradient.copy()

        self.point, self.fun, self.jac, self.fun_and_jac = point, fun, jac, fun_and_jac

    def hessp(self, x: Any, p: Any, *args: Any) -> Array:
        """The Hessian at x times p, both (n,)."""
        self._check(args)
        computed = self.parameters.computed
        return np.asarray(self._product(computed(x), computed(p), *args), np.float64)

    def hess(self, x: Any, *args: Any) -> Array:
        """The Hessian at x, (n, n)."""
        self._check(args)
        return np.asarray(self._matrix(self.parameters.computed(x), *args), np.float64)

    def value(self, x: Any, *args: Any) -> float:
        """The value at x, in an oracle's case with the very bits of ``oracle.value(x)``.

        Sums over samples may differ in the last bit between the value alone and the value that
        comes with a gradient, which `fun` gives.
        """
        fun, _ = self._made_of
        if isinstance(fun, Oracle):
            return float(fun.value(self.parameters.computed(x)))
        return self.fun(x, *args)

    def _check(self, args: tuple[Any, ...]) -> None:
        if args and self.is_oracle:
            raise ValueError(f"an oracle takes no args. {_MINIBATCH}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of

    def __repr__(self) -> str:
        fun, _ = self._made_of
        name = repr(fun) if self.is_oracle else getattr(fun, "__name__", repr(fun))
        return f"Pieces({name}, n={self.x0.size}, n_evaluations={self.n_evaluations})"


def whole_oracle(fun: Any) -> Any:
    """`fun`, with the oracle in the place of its method `value`.

    Raises
    ------
    ValueError
        For a minibatch of an oracle.
    TypeError
        For another method of an oracle.
    """
    if isinstance(fun, functools.partial) and _owner(fun.func) is not None:
        raise ValueError(_MINIBATCH)
    oracle = _owner(fun)
    if oracle is None:
        return fun
    if fun.__name__ != "value":
        raise TypeError(f"the objective is oracle.{fun.__name__}. Instead: pass the oracle itself.")
    return oracle


def _owner(fun: Any) -> Oracle | None:
    """The oracle of which `fun` is a method."""
    owner = fun.__self__ if isinstance(fun, MethodType) else None
    return owner if isinstance(owner, Oracle) else None


def are_finite(numbers: NDArray[Any]) -> bool:
    """Whether all of an array is; counting is the quickest for a short one."""
    return bool(np.count_nonzero(np.isfinite(numbers)) == numbers.size)
