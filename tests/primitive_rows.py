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


def _with_factors(builder: Any, nodes: list[int]) -> list[int]:
    """A matrix, its factors, and the rest."""
    return [nodes[0], builder.emit("lu", [nodes[0]]), *nodes[1:]]


def _regular(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(-1, 1, shape) + 2.5 * np.eye(shape[-1])


def _positive_definite(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    factor = rng.uniform(-1, 1, shape)
    return factor @ np.swapaxes(factor, -1, -2) + 2 * np.eye(shape[-1])


def _solve(a: Any, b: Any, transpose: int = 0) -> Any:
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transpose else a, b)


def _inv(a: Any, transpose: int = 0) -> Any:
    return np.linalg.inv(np.swapaxes(a, -1, -2) if transpose else a)


_MATRIX = ((3, 3), _regular)
_STACK = ((2, 1, 2, 2), _regular)
_NOT_SQUARE = Example(((3, 4),))

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
    "solve": Row(
        _solve,
        (
            Example((_MATRIX, (3, 2))),
            Example((_MATRIX, (3, 1)), {"transpose": 1}),
            Example((_MATRIX, (3, 2)), {"transpose": 1}),
            Example((((12, 12), _regular), (12, 1))),
            Example((((2, 3, 3), _regular), (3, 2))),
            Example((_MATRIX, (2, 3, 1)), {"transpose": 1}),
            Example((_STACK, (3, 2, 2))),
            Example((((0, 0), _regular), (0, 2))),
        ),
        (
            (Example((_MATRIX, (2, 2))), r"solve: sizes differ: a is \(3, 3\), b is \(2, 2\)"),
            (Example((_MATRIX, (3,))), r"solve: an array of shape \(3,\) is not a matrix"),
            (Example((((2, 3, 3), _regular), (4, 3, 1))), "do not broadcast together"),
        ),
        operands=_with_factors,
        ulp=16,
    ),
    "inv": Row(
        _inv,
        (
            Example((_MATRIX,)),
            Example((_MATRIX,), {"transpose": 1}),
            Example((_STACK,)),
            Example((_STACK,), {"transpose": 1}),
            Example((((1, 1), _regular),)),
            Example((((0, 0), _regular),)),
        ),
        ((_NOT_SQUARE, r"lu: the last two axes of an array of shape \(3, 4\) differ"),),
        operands=_with_factors,
        ulp=16,
    ),
    "det": Row(
        np.linalg.det,
        (
            Example((_MATRIX,)),
            Example((_STACK,)),
            Example((((12, 12), _regular),)),
            Example((((1, 1), _regular),)),
            Example((((0, 0), _regular),)),
        ),
        ((_NOT_SQUARE, "lu"),),
        operands=_with_factors,
        ulp=16,
    ),
    "logabsdet": Row(
        lambda a: np.linalg.slogdet(a)[1],
        (Example((_MATRIX,)), Example((_STACK,)), Example((((0, 0), _regular),))),
        ((_NOT_SQUARE, "lu"),),
        operands=_with_factors,
        ulp=16,
    ),
    "sign_det": Row(
        lambda a: np.linalg.slogdet(a)[0],
        (Example(((3, 3),)), Example(((5, 2, 2),))),
        ((_NOT_SQUARE, "lu"),),
        constant=True,
        operands=lambda builder, nodes: [builder.emit("lu", nodes)],
    ),
    "cholesky": Row(
        np.linalg.cholesky,
        (
            Example((((3, 3), _positive_definite),)),
            Example((((12, 12), _positive_definite),)),
            Example((((2, 1, 2, 2), _positive_definite),)),
            Example((((0, 0), _positive_definite),)),
        ),
        ((_NOT_SQUARE, "cholesky"),),
        ulp=16,
    ),
}
