"""The table behind `primitives.py`: one row per primitive.

An elementwise primitive named like a function of NumPy or scipy.special needs no row: it is
compared with that function on its domain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

MASK = "mask"


@dataclass(frozen=True)
class Example:
    """Operands and attributes of one use of a primitive.

    Attributes
    ----------
    operands : tuple
        For each operand its shape, or ``(shape, values)``: an interval, "mask", or a function of
        (rng, shape).
    attributes : dict
    """

    operands: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """How a primitive is tested.

    Attributes
    ----------
    reference : callable
        ``reference(*arrays, **attributes)`` in NumPy or SciPy.
    examples : tuple of Example
    errors : tuple of (Example, str)
        Uses that the shape rule refuses, and a part of the text.
    constant : bool
        Its derivative is 0 everywhere.
    indices : tuple of int
        Operands that are not differentiated: masks, indices.
    special : tuple of float
        An elementwise primitive's points beside 0, 1, infinities, NaN and the borders of its
        domain.
    extremes : bool
        Whether to look at the largest and smallest numbers too.
    except_at : callable or None
        Where special points are not compared, as a mask of the operands.
    ulp : float
        Units in the last place by which a value may differ.
    cancels : bool
        Whether terms of an elementwise result may cancel; it is right to rounding of the terms.
    rtol : float
        By which a derivative may differ from differences of the reference.
    operands : callable or None
        ``operands(builder, nodes)`` gives all operands where some are made from the examples' own.
    precise : callable or None
        The function in mpmath, of one element.
    slope_ulp : float
        Units in the last place by which a slope may differ from mpmath's.
    """

    reference: Callable[..., Any]
    examples: tuple[Example, ...] = ()
    errors: tuple[tuple[Example, str], ...] = ()
    constant: bool = False
    indices: tuple[int, ...] = ()
    special: tuple[float, ...] = ()
    extremes: bool = True
    except_at: Callable[..., Any] | None = None
    ulp: float = 4
    cancels: bool = False
    rtol: float = 1e-9
    operands: Callable[..., Any] | None = None
    precise: Callable[..., Any] | None = None
    slope_ulp: float = 8


# Primitives that no user's function reaches on its own, with the reason.
INTERNAL = {
    "batch_sum": "sums over the samples of an oracle: test_oracle.py",
}

CONSTANT = (
    "greater greater_equal less less_equal equal not_equal logical_and logical_or logical_not sign "
    "floor ceil trunc rint floor_divide"
)


def _integer_power(x: Any, n: Any) -> Any:
    return x ** int(n)


def _where(mask: Any, a: Any, b: Any) -> Any:
    return np.where(mask != 0, a, b)


def _slice(x: Any, starts: Any, sizes: Any, steps: Any) -> Any:
    for axis, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        x = np.take(x, start + step * np.arange(size), axis=axis)
    return x


def _concatenate(*arrays: Any, axis: int) -> Any:
    return np.concatenate(arrays, axis=axis)


ROWS: dict[str, Row] = {
    **{name: Row(getattr(np, name), constant=True) for name in CONSTANT.split()},
    "remainder": Row(np.remainder),
    "fmod": Row(np.fmod),
    "copysign": Row(np.copysign),
    "heaviside": Row(np.heaviside),
    "softplus": Row(
        lambda x: np.logaddexp(0, x),
        special=(-40, 40),
        precise=lambda x: mpmath.log1p(mpmath.exp(x)),
    ),
    "where": Row(
        _where,
        (
            Example((((3,), MASK), (3,), (3,))),
            Example((((3, 1), MASK), (1, 4), (3, 4))),
            Example((((), MASK), (2, 3), ())),
        ),
        ((Example(((3,), (3,), (4,))), "where: shapes .* do not broadcast together"),),
        indices=(0,),
    ),
    "power": Row(np.power, precise=mpmath.power),
    "integer_power": Row(
        _integer_power,
        tuple(Example((((2, 3), (-2, -0.5)),), {"n": n}) for n in (-3, -1, 0, 1, 2, 3, 5)),
    ),
    "logaddexp": Row(
        np.logaddexp,
        cancels=True,
        precise=lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)),
    ),
    "reshape": Row(
        lambda x, shape: np.reshape(x, shape),
        (
            Example(((2, 6),), {"shape": [3, 4]}),
            Example(((2, 6),), {"shape": [-1]}),
            Example(((),), {"shape": [1, 1]}),
        ),
        ((Example(((2, 3),), {"shape": [4]}), r"reshape: \(2, 3\) has 6 elements"),),
    ),
    "transpose": Row(
        lambda x, axes: np.transpose(x, axes),
        (
            Example(((2, 3, 4),), {"axes": [2, 0, 1]}),
            Example(((3, 5),), {"axes": [1, 0]}),
        ),
        ((Example(((2, 3),), {"axes": [0, 0]}), "transpose: axes .* are not a permutation"),),
    ),
    "broadcast_to": Row(
        lambda x, shape: np.broadcast_to(x, shape),
        (
            Example(((3, 1),), {"shape": [2, 3, 4]}),
            Example(((),), {"shape": [3]}),
        ),
        ((Example(((3,),), {"shape": [4]}), "broadcast_to"),),
    ),
    "slice": Row(
        _slice,
        (
            Example(((4, 5),), {"starts": [1, 4], "sizes": [2, 2], "steps": [1, -2]}),
            Example(((7,),), {"starts": [0], "sizes": [3], "steps": [3]}),
            Example(((3,),), {"starts": [2], "sizes": [0], "steps": [1]}),
        ),
        ((Example(((3,),), {"starts": [2], "sizes": [2], "steps": [1]}), "slice: starts"),),
    ),
    "concatenate": Row(
        _concatenate,
        (
            Example(((2, 3), (2, 1), (2, 2)), {"axis": 1}),
            Example(((2,), (3,)), {"axis": 0}),
            Example(((2, 3),), {"axis": 0}),
        ),
        ((Example(((2, 3), (3, 3)), {"axis": 1}), "concatenate: array 0 has shape"),),
    ),
}
