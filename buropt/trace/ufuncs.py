"""Rules for ufuncs: one row each. Most are a node of the same name; the rest are short formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from buropt.trace.dispatch import SCIPY_UFUNCS, UFUNCS, UfuncRule, unsupported
from buropt.trace.errors import TraceError, UnsupportedOpError, location

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

# Up to here repeated multiplication stays within a few units in the last place of `pow`.
_LARGEST_INTEGER_POWER = 64


def _node(op: str, is_bool: bool = False) -> UfuncRule:
    """A rule that emits the node `op`."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        return trace.emit(op, operands, is_bool=is_bool)

    return rule


def _numeric(op: str, instead: str) -> UfuncRule:
    """A rule that emits the node `op`, which NumPy refuses if all operands are boolean."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if all(operand.is_bool for operand in operands):
            raise TraceError(
                f"np.{op} is not defined for booleans, in NumPy either. {location(trace.name)} "
                f"Instead: {instead}."
            )
        return trace.emit(op, operands)

    return rule


def _or_logical(op: str, logical: str) -> UfuncRule:
    """A rule that emits `op`, or between masks, as in NumPy, the logical node."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if all(operand.is_bool for operand in operands):
            return trace.emit(logical, operands, is_bool=True)
        return trace.emit(op, operands)

    return rule


def _masks_only(symbol: str, op: str) -> UfuncRule:
    """A rule for a bitwise ufunc, which only exists for masks."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if not all(operand.is_bool for operand in operands):
            raise TraceError(
                f"{symbol} is only defined between masks (results of comparisons). "
                f"{location(trace.name)} Instead: compare first, as in (x > 0) {symbol} (x < 1), "
                "with the parentheses."
            )
        return trace.emit(op, operands, is_bool=True)

    return rule


def as_mask(trace: Trace, condition: Tracer) -> Tracer:
    """`condition != 0` unless it is a mask already; NaN counts as true, as in NumPy."""
    if condition.is_bool:
        return condition
    return trace.emit("not_equal", (condition, trace.constant(0.0)), is_bool=True)


def _logical(op: str) -> UfuncRule:
    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        masks = [as_mask(trace, operand) for operand in operands]
        return trace.emit(op, masks, is_bool=True)

    return rule


def _same(trace: Trace, x: Tracer) -> Tracer:
    return trace.number(x)


def _positive(trace: Trace, x: Tracer) -> Tracer:
    if x.is_bool:
        raise TraceError(
            f"np.positive is not defined for booleans, in NumPy either. {location(trace.name)} "
            "Instead: 1.0 * mask."
        )
    return trace.fresh(x)


def _absolute(trace: Trace, x: Tracer) -> Tracer:
    return trace.fresh(x) if x.is_bool else trace.emit("absolute", (x,))


def _log_expit(trace: Trace, x: Tracer) -> Tracer:
    minus_x = trace.emit("negative", (x,))
    return trace.emit("negative", (trace.emit("logaddexp", (trace.constant(0.0), minus_x)),))


def power(trace: Trace, x: Tracer, exponent: Tracer) -> Tracer:
    """`x ** exponent`; a constant exponent needs no logarithm, so any sign of x is right."""
    constant = trace.builder.constant_value(exponent.node)
    values = np.unique(np.asarray(constant)) if constant is not None else np.empty(0)
    result = _constant_power(trace, x, float(values[0])) if values.size == 1 else None
    if result is None:
        return trace.emit("power", (x, exponent))
    shape = np.broadcast_shapes(x.shape, exponent.shape)
    if shape == result.shape:
        return result
    return trace.emit("broadcast_to", (result,), {"shape": list(shape)})


def _constant_power(trace: Trace, x: Tracer, exponent: float) -> Tracer | None:
    if exponent == 0:  # also where x is 0, infinite or NaN
        return trace.emit("broadcast_to", (trace.constant(1.0),), {"shape": list(x.shape)})
    if exponent == 1:
        return trace.number(x)
    if exponent == 2:
        return trace.emit("square", (x,))
    if exponent == 0.5:
        return trace.emit("sqrt", (x,))
    if exponent.is_integer() and abs(exponent) <= _LARGEST_INTEGER_POWER:
        return trace.emit("integer_power", (x,), {"n": int(exponent)})
    return None


def matmul(trace: Trace, a: Tracer, b: Tracer) -> Tracer:
    """`a @ b` for vectors and matrices."""
    for operand in (a, b):
        if operand.ndim == 0:
            raise ValueError(
                f"buropt.matmul: an operand has shape (). {location(trace.name)} Instead: *."
            )
        if operand.ndim > 2:
            raise UnsupportedOpError(
                f"np.matmul of shapes {a.shape} and {b.shape} cannot be traced: only vectors and "
                f"matrices can. {location(trace.name)} Instead: np.sum(a[..., None] * b, axis=...)."
            )
    if a.is_bool and b.is_bool:
        raise unsupported(trace, "np.matmul of two masks")
    return trace.emit("matmul", (a, b))


def _rows(names: str, make: Callable[[str], UfuncRule]) -> dict[np.ufunc, UfuncRule]:
    return {getattr(np, name): make(name) for name in names.split()}


UFUNCS.update(
    _rows("sqrt square reciprocal exp expm1 log log1p sin cos tanh divide logaddexp", _node)
)
UFUNCS.update(
    _rows(
        "greater greater_equal less less_equal equal not_equal", lambda op: _node(op, is_bool=True)
    )
)
UFUNCS.update(_rows("logical_not logical_and logical_or", _logical))
UFUNCS.update(
    {
        np.add: _or_logical("add", "logical_or"),
        np.multiply: _or_logical("multiply", "logical_and"),
        np.maximum: _or_logical("maximum", "logical_or"),
        np.minimum: _or_logical("minimum", "logical_and"),
        np.subtract: _numeric("subtract", "a ^ b, or a != b"),
        np.negative: _numeric("negative", "~mask"),
        np.sign: _numeric("sign", "the mask itself"),
        np.positive: _positive,
        np.conjugate: _same,
        np.absolute: _absolute,
        np.fabs: _node("absolute"),
        np.power: power,
        np.float_power: power,
        np.matmul: matmul,
        np.logical_xor: lambda trace, a, b: trace.emit(
            "not_equal", (as_mask(trace, a), as_mask(trace, b)), is_bool=True
        ),
        np.invert: _masks_only("~", "logical_not"),
        np.bitwise_and: _masks_only("&", "logical_and"),
        np.bitwise_or: _masks_only("|", "logical_or"),
        np.bitwise_xor: _masks_only("^", "not_equal"),
    }
)
SCIPY_UFUNCS.update(
    {
        "expit": _node("expit"),
        "expm1": _node("expm1"),
        "log1p": _node("log1p"),
        "log_expit": _log_expit,
    }
)
