"""The primitives for `test_ops.py`: their rows, completed, and operands to use them on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import mpmath
import numpy as np
import scipy.special
from primitive_rows import INTERNAL, MASK, ROWS, Example, Row
from primitive_rows_axes import AXES_ROWS
from primitive_rows_linalg import LINALG_ROWS
from primitive_rows_nn import NN_ROWS
from primitive_rows_special import SPECIAL_ROWS

from buropt import _core
from buropt.trace import Tracer

OPS = {op["name"]: op for op in _core.ops()}

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
    row = (ROWS | AXES_ROWS | LINALG_ROWS | NN_ROWS | SPECIAL_ROWS).get(name)
    if row is None:
        function = getattr(np, name, None) or getattr(scipy.special, name, None)
        if function is None or not op["elementwise"]:
            raise KeyError(
                f"the primitive {name!r} has no row in tests/primitive_rows.py, and neither NumPy "
                "nor scipy.special has an elementwise function of that name"
            )
        mp_name = name.replace("arc", "a")
        row = Row(function, precise=_PRECISE.get(name) or getattr(mpmath, mp_name, None))
    if not op["elementwise"]:
        return row
    arity = op["arity"]
    return replace(
        row,
        examples=row.examples or {1: _UNARY, 2: _BINARY}[arity],
        errors=row.errors or ((_NOT_TOGETHER,) if arity == 2 else ()),
    )


def names(*, elementwise: bool | None = None) -> list[str]:
    """The primitives with a row; `test_every_primitive_has_a_row` is about the others."""
    return [
        name
        for name, op in OPS.items()
        if not op["derived"]
        and name not in INTERNAL
        and elementwise in (None, op["elementwise"])
        and _has_row(name)
    ]


def _has_row(name: str) -> bool:
    try:
        row_of(name)
    except KeyError:
        return False
    return True


def operands_of(
    name: str, example: Example, dtype: Any = np.float64, seed: int = 0, batch: int | None = None
) -> list[Any]:
    """Random operands; with `batch` each has that many samples along a first axis."""
    rng = np.random.default_rng(seed)
    result = []
    for k, operand in enumerate(example.operands):
        is_pair = bool(operand) and isinstance(operand[0], tuple)
        domains = OPS[name]["domain"]
        shape, values = operand if is_pair else (operand, domains[min(k, len(domains) - 1)])
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
            trace = operand.recording
            return trace.emit(name, [trace.lift(one) for one in operands], attributes)
    return row_of(name).reference(*operands, **attributes)
