"""The derivatives of plain functions: what users call, and when each is traced.

`compiled.py` says how often a function is traced, and what may change between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from buropt import _core
from buropt.autodiff.compiled import Compiled, Derivative, Direct
from buropt.autodiff.jacobian import Hessian, Jacobian
from buropt.autodiff.mapped import InAxes, Mapped
from buropt.autodiff.transforms import (
    Forward,
    Gradient,
    HessianVector,
    Reverse,
    Transform,
    Value,
)
from buropt.trace import TraceError, Tracer
from buropt.tree import flatten_leaves

Function: TypeAlias = Callable[..., Any]


def grad(fun: Function, argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Derivative:
    """The gradient of a scalar function of arrays.

    ::

        bo.grad(lambda x, c: np.sum(c * x**2))(np.ones(3), 2.0)     # array([4., 4., 4.])

    Parameters
    ----------
    fun : callable
        Returns one number; written with NumPy. Its arguments may be arrays, numbers, and nested
        dicts, lists and tuples of them.
    argnums : int or sequence of int
        The positional arguments to differentiate by; negative ones count from the end.
    has_aux : bool
        Whether `fun` returns a pair of the number and something else, nested as it likes. The
        result is then the pair of the gradient and that; what it holds are floats, and there is no
        `out`.

    Returns
    -------
    callable
        `gradient(*args, out=None, **kwargs)`. The gradient has the structure and the shapes of the
        argument and its dtype (integers and Python numbers are promoted, as a rule to float64);
        for a sequence of argnums it is a tuple. A scalar argument gives a NumPy scalar. `out` is
        an array, or a structure of arrays, that receives the gradient and is returned.
        `gradient.cache_info()` tells how often `fun` was traced.

        Within another traced function it is part of the recording, so derivatives nest.

    Raises
    ------
    TraceError
        (a TypeError) If `fun` does something that cannot be traced or does not return one number,
        or if an argument to differentiate by does not hold real numbers.

    Warns
    -----
    DisconnectedInputWarning
        If an argument does not influence the result; its gradient is zero.
    """
    return Direct(Gradient(fun, argnums, with_value=False, has_aux=has_aux))


def value_and_grad(
    fun: Function, argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Derivative:
    """The value and the gradient of a scalar function in one evaluation.

    Like `grad`, but the result is the pair `(value, gradient)`, with has_aux
    `((value, aux), gradient)`; `out` receives the gradient.
    """
    return Direct(Gradient(fun, argnums, with_value=True, has_aux=has_aux))


def hvp(fun: Function) -> Derivative:
    """The product of a scalar function's Hessian with a vector, at the cost of a few gradients.

    ::

        bo.hvp(lambda x, a: a * np.sum(x**3))(np.array([1.0, 2.0]), np.ones(2), 2.0)  # [12., 24.]

    Parameters
    ----------
    fun : callable
        As for `grad`.

    Returns
    -------
    callable
        `product(x, v, *args, out=None, **kwargs)` for `fun(x, *args, **kwargs)`: the derivative of
        the gradient by x along v. `v` is nested like `x`, and so is the result.
    """
    return Direct(HessianVector(fun))


def jacobian(fun: Function, argnums: int | Sequence[int] = 0) -> Derivative:
    """The Jacobian of a function that returns arrays, or anything nested of them.

    One program computes all rows or all columns, whichever are fewer.

    ::

        bo.jacobian(lambda x: np.outer(x, x))(np.ones(3)).shape     # (3, 3, 3)

    Parameters
    ----------
    fun : callable
        Its arguments are as for `grad`; it returns an array or number, or dicts, lists and tuples
        of them.
    argnums : int or sequence of int
        The positional arguments to differentiate by.

    Returns
    -------
    callable
        `derivative(*args, out=None, **kwargs)`. The Jacobian of a result of shape s by an argument
        of shape t has shape s + t. A nested result gives the same nest, and a nested argument a
        nest of its form in each place; for a sequence of argnums there is a tuple in each place.
    """
    return Direct(Jacobian(fun, argnums))


def hessian(fun: Function, argnums: int | Sequence[int] = 0) -> Derivative:
    """The Hessian of a scalar function: the Jacobian of its gradient.

    Parameters
    ----------
    fun, argnums
        As for `grad`.

    Returns
    -------
    callable
        `derivative(*args, out=None, **kwargs)`. By an argument of shape t it has shape t + t; by a
        nested one it is a nest of nests, `h["w"]["b"]` for the derivative of the gradient by w
        along b.
    """
    return Direct(Hessian(fun, argnums))


def vmap(fun: Function, in_axes: InAxes = 0, out_axes: int = 0) -> Derivative:
    """The function of one sample as a function of many, which one program computes together.

    ::

        values, gradients = bo.vmap(bo.value_and_grad(f))(points)       # (n,) and (n, d) of (n, d)
        bo.vmap(bo.grad(loss), in_axes=(None, 0))(x, samples)           # of all samples at one x

    Parameters
    ----------
    fun : callable
        Written for one sample: arrays without the axis of the samples. It may be a derivative,
        such as ``bo.grad(f)``, and returns an array or number, or dicts, lists and tuples of them.
    in_axes : int, None, or sequence of them
        The axis of each positional argument along which the samples lie; None for an argument
        that all samples share. One for all arguments, or one for each; of a nested argument, for
        all arrays in it. Arrays given by name have the samples along their first axis.
    out_axes : int
        Where the results have that axis.

    Returns
    -------
    callable
        `mapped(*args, out=None, **kwargs)`. Results are floats of the arguments' dtype, one along
        `out_axes` for each sample; each is computed as for the sample alone, up to rounding.

    Raises
    ------
    TraceError
        (a TypeError) If an argument has no such axis, lengths along the axes differ, or there are
        no samples; and as `grad` does.

    Notes
    -----
    Within another traced function, the samples are recorded one after another, which takes time and
    memory for each. For the mean over many samples compile an oracle instead (`buropt.compile`).
    """
    return Direct(Mapped(fun, in_axes, out_axes))


@overload
def jvp(fun: Function) -> Derivative: ...
@overload
def jvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]: ...
def jvp(
    fun: Function, primals: Sequence[Any] | None = None, tangents: Sequence[Any] | None = None
) -> Any:
    """The value of a function and its derivative along a direction, in forward mode.

    ::

        value, tangent = bo.jvp(np.exp, (x,), (v,))
        along = bo.jvp(loss)            # traced once, for many calls
        value, tangent = along((x,), (v,))

    Parameters
    ----------
    fun : callable
        Its result may be nested, as for `jacobian`.
    primals : tuple
        The arguments.
    tangents : tuple
        The direction: nested like the primals and of the same shapes.

    Returns
    -------
    (value, tangent)
        Both nested like the result of `fun`. Without primals, a function of primals and tangents.
    """
    if primals is None and tangents is None:
        return _AlongTangents(Forward(fun))
    if primals is None or tangents is None:
        raise TypeError("jvp takes primals and tangents, or neither of them")
    return _AlongTangents(Forward(fun))(primals, tangents)


class _AlongTangents(Derivative):
    """What `jvp` returns."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform)
        (compiled,) = self._compiled
        self._call = _core.QuickCall(compiled.quick, compiled.evaluate)

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The value and the tangent."""
        for name, given in (("primals", primals), ("tangents", tangents)):
            if not isinstance(given, tuple | list):
                raise TypeError(f"jvp: {name} must be a tuple, one entry for each argument")
        if len(primals) != len(tangents):
            raise TypeError(f"jvp: got {len(primals)} primals and {len(tangents)} tangents")
        return self._call(*primals, *tangents)


@overload
def vjp(fun: Function) -> Derivative: ...
@overload
def vjp(fun: Function, *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]: ...
def vjp(fun: Function, *primals: Any) -> Any:
    """The value of a function, and the function that takes cotangents back to its arguments.

    ::

        value, back = bo.vjp(model, params, x)
        by_params, by_x = back(cotangent)

    Parameters
    ----------
    fun : callable
        Its result may be nested, as for `jacobian`.
    *primals
        The arguments.

    Returns
    -------
    (value, vjp_fun)
        `vjp_fun(cotangent)` with a cotangent like the value gives a tuple, the cotangent of each
        argument; it evaluates `fun` anew. Without primals, a function of primals that returns such
        pairs and traces `fun` only once.
    """
    derivative = _FromCotangents(Reverse(fun))
    return derivative(*primals) if primals else derivative


class _FromCotangents(Derivative):
    """What `vjp` returns."""

    def _compile(self, transform: Transform) -> tuple[Compiled, ...]:
        return Compiled(Value(transform.fun)), Compiled(transform)

    def __call__(self, *primals: Any) -> Any:
        """The value, and the function that takes its cotangent back."""
        value, reverse = self._compiled
        leaves, structure = flatten_leaves(primals)
        kept = structure.unflatten([_copy(leaf) for leaf in leaves])

        def back(cotangent: Any) -> Any:
            return reverse.call((cotangent, *kept), {}, None)

        return value.call(primals, {}, None), back


def _copy(leaf: Any) -> Any:
    """A primal that stays as it is when the caller writes into the array."""
    return leaf.copy() if isinstance(leaf, np.ndarray) and not isinstance(leaf, Tracer) else leaf


__all__ = [
    "TraceError",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vjp",
    "vmap",
]
