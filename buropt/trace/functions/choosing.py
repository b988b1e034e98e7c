"""Rules that choose among several values by conditions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt import _core
from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions.selection import where
from buropt.trace.functions.shapes import broadcast_to
from buropt.trace.kinds import highest
from buropt.trace.ufuncs import as_mask, cast

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.select, "condlist choicelist default")
def select(trace: Trace, condlist: Any, choicelist: Any, default: Any = 0) -> Tracer:
    """The choice of the first condition that holds."""
    conditions = [trace.lift(condition) for condition in condlist]
    choices = [trace.lift(choice) for choice in choicelist]
    if len(conditions) != len(choices) or not conditions:
        raise ValueError(
            f"np.select: there are {len(conditions)} conditions and {len(choices)} choices. "
            f"{location(trace.name)} Instead: one choice for each condition."
        )
    for k, condition in enumerate(conditions):
        if not condition.is_bool:
            raise TypeError(
                f"np.select: condition number {k} is not a mask. {location(trace.name)} Instead: "
                "a comparison, such as x != 0."
            )
    result = trace.lift(default)
    kind = highest(value.kind for value in (*choices, result))
    result = cast(trace, result, kind)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(trace, condition, cast(trace, choice, kind), result)
    return result


@function(np.piecewise, "x condlist funclist *args")
def piecewise(
    trace: Trace, x: Any, condlist: Any, funclist: Any, args: Sequence[Any] = ()
) -> Tracer:
    """For each element the function, or number, of the last condition that holds.

    NumPy calls a function with the elements that it is wanted for. Here it gets all of them, which
    is the same if it works element by element, and refused otherwise.
    """
    array = trace.lift(x)
    conditions = _conditions(trace, condlist, array)
    pieces = list(funclist)
    if not len(conditions) <= len(pieces) <= len(conditions) + 1:
        raise ValueError(
            f"np.piecewise: {len(pieces)} functions for {len(conditions)} conditions; there is one "
            f"for each, and perhaps one more for elsewhere. "
            f"{location(trace.name)} Instead: as many functions as conditions, or one more."
        )
    # From the last to the first: zeros, the piece for elsewhere, then what overwrites them.
    otherwise = pieces[len(conditions) :] or [0]
    result = broadcast_to(trace, _piece(trace, otherwise[0], array, args), array.shape)
    for condition, piece in zip(conditions, pieces, strict=False):
        result = where(trace, condition, _piece(trace, piece, array, args), result)
    return trace.fresh(result)


def _conditions(trace: Trace, condlist: Any, x: Tracer) -> list[Tracer]:
    """The conditions as masks; a single one need not be in a list."""
    if isinstance(condlist, list | tuple):
        is_single = bool(condlist) and np.isscalar(condlist[0]) and x.ndim != 0
    else:
        is_single = np.ndim(condlist) == 0 or (np.ndim(condlist) == 1 and x.ndim != 0)
    return [as_mask(trace, trace.lift(one)) for one in ([condlist] if is_single else condlist)]


def _piece(trace: Trace, piece: Any, x: Tracer, args: Sequence[Any]) -> Tracer:
    if not callable(piece):
        return cast(trace, trace.lift(piece), x.kind)
    flat = trace.fresh(x.ravel())
    what, instead = "a function for np.piecewise", "np.where or np.select"
    with trace.restricted(_elementwise_ops(), what, instead):
        value = trace.lift(piece(flat, *args))
    if value.shape not in ((), (x.size,)):
        raise ValueError(
            f"np.piecewise: a function gave shape {value.shape} for an argument of shape "
            f"{(x.size,)}. "
            f"{location(trace.name)} Instead: a function that works element by element."
        )
    value = cast(trace, value, x.kind)
    return value.reshape(x.shape) if value.ndim else value


@cache
def _elementwise_ops() -> frozenset[str]:
    return frozenset(op["name"] for op in _core.ops() if op["elementwise"]) | {"broadcast_to"}


@function(np.isin, "element test_elements assume_unique invert kind")
def isin(
    trace: Trace,
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    kind: Any = None,
) -> Tracer:
    """Whether each element is one of some others."""
    array, others = trace.lift(element), trace.lift(test_elements).ravel()
    equal = array.reshape((*array.shape, 1)) == others
    found: Any = as_mask(trace, np.sum(equal, axis=-1))
    return as_mask(trace, ~found if invert else found)


@function(np.isclose, "a b rtol atol equal_nan")
def isclose(
    trace: Trace, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Any:
    """Whether elements are equal within a tolerance, infinite ones if they are the same."""
    left, right = trace.lift(a), trace.lift(b)
    is_finite = np.abs(trace.number(right)) < np.inf
    within = np.abs(trace.number(left) - right) <= atol + rtol * np.abs(trace.number(right))
    result = (within & is_finite) | (left == right)
    return result | ((left != left) & (right != right)) if equal_nan else result
