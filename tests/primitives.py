"""One row per primitive: what `test_ops.py` compares it with, and on which operands.

An elementwise primitive named like a function of NumPy or scipy.special needs no row: it is
compared with that function on its domain. Any other has one in `ROWS`. A primitive that no user's
function reaches on its own is named in `INTERNAL` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import mpmath
import numpy as np
import scipy.special

from buropt import _core
from buropt.trace import Tracer

OPS = {op["name"]: op for op in _core.ops()}

NORMAL = (-2.0, 2.0)
POSITIVE = (0.3, 2.0)
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
    precise: Callable[..., Any] | None = None
    slope_ulp: float = 8


INTERNAL = {
    "batch_sum": "sums over the samples of an oracle: test_oracle.py",
}

CONSTANT = (
    "greater greater_equal less less_equal equal not_equal logical_and logical_or logical_not sign"
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


def _sum(x: Any, axes: Any, keepdims: int = 0) -> Any:
    return np.sum(x, axis=tuple(axes), keepdims=bool(keepdims))


def _matmul(a: Any, b: Any, transpose_a: int = 0, transpose_b: int = 0) -> Any:
    return (a.T if transpose_a else a) @ (b.T if transpose_b else b)


def picks(n: int) -> Callable[..., Any]:
    """Indices into n places, some of them counted from the end."""
    return lambda rng, shape: rng.integers(-n, n, shape)


MATRICES = ((3, 4), (4, 2))

ROWS: dict[str, Row] = {
    **{
        name: Row(getattr(np, name), constant=True, indices=(0, 1)[: OPS[name]["arity"]])
        for name in CONSTANT.split()
    },
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
    "sum": Row(
        _sum,
        (
            Example(((3, 4),), {"axes": [0, 1], "keepdims": 0}),
            Example(((2, 3, 4),), {"axes": [1], "keepdims": 0}),
            Example(((2, 3, 4),), {"axes": [0, 2], "keepdims": 1}),
            Example(((300,),), {"axes": [0], "keepdims": 0}),
            Example(((0, 3),), {"axes": [0], "keepdims": 0}),
        ),
        ((Example(((3,),), {"axes": [1], "keepdims": 0}), "sum"),),
    ),
    "take": Row(
        lambda x, indices, axis: np.take(x, indices.astype(int), axis),
        (
            Example(((5, 3), ((4,), picks(5))), {"axis": 0}),
            Example(((2, 5), ((2, 3), picks(5))), {"axis": 1}),
            Example(((4,), ((), picks(4))), {"axis": 0}),
        ),
        ((Example(((5,), (2,)), {"axis": 1}), "take"),),
        indices=(1,),
    ),
    "take_along_axis": Row(
        lambda x, indices, axis: np.take_along_axis(x, indices.astype(int), axis),
        (
            Example(((5, 3), ((2, 3), picks(5))), {"axis": 0}),
            Example(((2, 4), ((2, 6), picks(4))), {"axis": 1}),
        ),
        ((Example(((5, 3), (2, 2)), {"axis": 0}), r"take_along_axis.*must differ only along"),),
        indices=(1,),
    ),
    "matmul": Row(
        _matmul,
        (
            Example(MATRICES),
            Example(((4, 3), (2, 4)), {"transpose_a": 1, "transpose_b": 1}),
            Example(((3, 4), (4,))),
            Example(((4,), (4, 3))),
            Example(((4,), (4,))),
            Example(((1, 1), (1, 3))),
        ),
        ((Example(((3, 4), (3, 4))), r"inner sizes differ: a is \(3, 4\), b is \(3, 4\)"),),
    ),
}

# mpmath's names where they are not NumPy's.
_PRECISE = {
    "absolute": abs,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
    "maximum": max,
    "minimum": min,
}

_UNARY = (Example(((7,),)), Example(((2, 3),)), Example(((),)), Example(((0, 2),)))
_BINARY = (
    Example(((7,), (7,))),
    Example(((2, 3), (3,))),
    Example(((2, 1), (1, 3))),
    Example(((), (4,))),
    Example(((2, 1, 3), (4, 1))),
)
_NOT_TOGETHER = (Example(((3,), (4,))), "do not broadcast together")


@cache
def row_of(name: str) -> Row:
    """The row of a primitive, completed by what follows from its name and arity.

    Raises
    ------
    KeyError
        If there is none and NumPy and scipy.special have no function of that name.
    """
    op = OPS[name]
    row = ROWS.get(name)
    if row is None:
        function = getattr(np, name, None) or getattr(scipy.special, name, None)
        if function is None or not op["elementwise"]:
            raise KeyError(
                f"the primitive {name!r} has no row in tests/primitives.py, and neither NumPy nor "
                "scipy.special has an elementwise function of that name"
            )
        row = Row(function)
    if not op["elementwise"]:
        return row
    arity = op["arity"]
    precise = row.precise or _PRECISE.get(name) or getattr(mpmath, name.replace("arc", "a"), None)
    return replace(
        row,
        examples=row.examples or {1: _UNARY, 2: _BINARY}[arity],
        errors=row.errors or ((_NOT_TOGETHER,) if arity == 2 else ()),
        precise=None if row.constant else precise,
    )


def names(*, elementwise: bool | None = None) -> list[str]:
    """The primitives with a row."""
    return [
        name
        for name, op in OPS.items()
        if not op["derived"] and name not in INTERNAL and elementwise in (None, op["elementwise"])
    ]


def operands_of(
    name: str, example: Example, dtype: Any = np.float64, seed: int = 0, batch: int | None = None
) -> list[Any]:
    """Random operands; with `batch` each has that many samples along a first axis."""
    rng = np.random.default_rng(seed)
    result = []
    for operand in example.operands:
        is_pair = bool(operand) and isinstance(operand[0], tuple)
        shape, values = operand if is_pair else (operand, OPS[name]["domain"])
        count = 1 if batch is None else batch
        samples = [_draw(rng, shape, values) for _ in range(count)]
        array = samples[0] if batch is None else np.stack(samples)
        result.append(np.asarray(array, dtype))
    return result


def _draw(rng: np.random.Generator, shape: tuple[int, ...], values: Any) -> Any:
    if values == MASK:
        return (rng.random(shape) < 0.5).astype(float)
    if callable(values):
        return values(rng, shape)
    return rng.uniform(*values, shape)


def call(name: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """The primitive on tracers; its reference on arrays."""
    for operand in operands:
        if isinstance(operand, Tracer):
            trace = operand.trace
            return trace.emit(name, [trace.lift(one) for one in operands], attributes)
    return row_of(name).reference(*operands, **attributes)
