"""Rules for ufuncs: one row each. Most are a node of the same name; the rest are short formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from buropt.trace.dispatch import SCIPY_UFUNCS, UFUNCS, UfuncRule, unsupported
from buropt.trace.errors import TraceError, UnsupportedOpError, location
from buropt.trace.kinds import Kind, highest

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

# Up to here repeated multiplication stays within a few units in the last place of `pow`.
_LARGEST_INTEGER_POWER = 64


def _node(op: str, kind: Kind = "f") -> UfuncRule:
    """A rule that emits the node `op`, whose result is of one kind for all operands."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        return trace.emit(op, operands, kind=kind)

    return rule


def _arithmetic(op: str) -> UfuncRule:
    """A rule that emits the node `op`, whose result is an integer if no operand is a float."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        return trace.emit(op, operands, kind=number_kind(*operands))

    return rule


def number_kind(*operands: Tracer) -> Kind:
    """The kind of arithmetic on the operands: floats, or integers if none of them is a float."""
    return highest(("i", *(operand.kind for operand in operands)))


def _numeric(op: str, instead: str) -> UfuncRule:
    """A rule for arithmetic that NumPy refuses if all operands are boolean."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if all(operand.is_bool for operand in operands):
            raise TraceError(
                f"np.{op} is not defined for booleans, in NumPy either. {location(trace.name)} "
                f"Instead: {instead}."
            )
        return trace.emit(op, operands, kind=number_kind(*operands))

    return rule


def _or_logical(op: str, logical: str) -> UfuncRule:
    """A rule that emits `op`, or between masks, as in NumPy, the logical node."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if all(operand.is_bool for operand in operands):
            return trace.emit(logical, operands, kind="b")
        return trace.emit(op, operands, kind=number_kind(*operands))

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
        return trace.emit(op, operands, kind="b")

    return rule


def as_mask(trace: Trace, condition: Tracer) -> Tracer:
    """`condition != 0` unless it is a mask already; NaN counts as true, as in NumPy."""
    if condition.is_bool:
        return condition
    return trace.emit("not_equal", (condition, trace.constant(0.0)), kind="b")


def cast(trace: Trace, x: Tracer, kind: Kind) -> Tracer:
    """The values as another kind; floats that become integers lose what is after the point."""
    if kind == x.kind:
        return x
    if kind == "b":
        return as_mask(trace, x)
    if kind == "f":
        return trace.number(x)
    if x.kind == "f":
        constant = trace.builder.constant_value(x.node)
        if constant is None:
            raise TraceError(
                f"a traced float cannot be converted to an integer. {location(trace.name)} "
                "Instead: compute the integers outside and pass them as an argument or as data."
            )
        x = trace.constant(np.trunc(np.asarray(constant)))
    return trace.integer(x)


def _logical(op: str) -> UfuncRule:
    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        masks = [as_mask(trace, operand) for operand in operands]
        return trace.emit(op, masks, kind="b")

    return rule


def _same(trace: Trace, x: Tracer) -> Tracer:
    return cast(trace, x, number_kind(x))


def _positive(trace: Trace, x: Tracer) -> Tracer:
    if x.is_bool:
        raise TraceError(
            f"np.positive is not defined for booleans, in NumPy either. {location(trace.name)} "
            "Instead: 1.0 * mask."
        )
    return trace.fresh(x)


def _absolute(trace: Trace, x: Tracer) -> Tracer:
    return trace.fresh(x) if x.is_bool else trace.emit("absolute", (x,), kind=x.kind)


def _log_expit(trace: Trace, x: Tracer) -> Tracer:
    minus_x = trace.emit("negative", (x,))
    return trace.emit("negative", (trace.emit("logaddexp", (trace.constant(0.0), minus_x)),))


def power(trace: Trace, x: Tracer, exponent: Tracer) -> Tracer:
    """`x ** exponent`; a constant exponent needs no logarithm, so any sign of x is right."""
    constant = trace.builder.constant_value(exponent.node)
    values = np.unique(np.asarray(constant)) if constant is not None else np.empty(0)
    kind = number_kind(x, exponent)
    if kind == "i" and (constant is None or np.any(values < 0)):
        raise TraceError(
            "integers to the power of integers that are not known to be positive cannot be "
            f"traced; NumPy refuses negative ones. {location(trace.name)} Instead: (1.0 * x) ** y."
        )
    result = _constant_power(trace, x, float(values[0])) if values.size == 1 else None
    if result is None:
        return trace.emit("power", (x, exponent), kind=kind)
    shape = np.broadcast_shapes(x.shape, exponent.shape)
    if shape != result.shape:
        result = trace.emit("broadcast_to", (result,), {"shape": list(shape)})
    return trace.integer(result) if kind == "i" else result


def _float_power(trace: Trace, x: Tracer, exponent: Tracer) -> Tracer:
    return power(trace, trace.number(x), exponent)


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
    return trace.emit("matmul", (a, b), kind=number_kind(a, b))


def _reciprocal(trace: Trace, x: Tracer) -> Tracer:
    if x.kind == "i":
        raise TraceError(
            f"np.reciprocal of integers is an integer, 0 for most. {location(trace.name)} "
            "Instead: 1 / x."
        )
    return trace.emit("reciprocal", (x,))


def _rows(names: str, make: Callable[[str], UfuncRule]) -> dict[np.ufunc, UfuncRule]:
    return {getattr(np, name): make(name) for name in names.split()}


UFUNCS.update(_rows("sqrt exp expm1 log log1p sin cos tanh divide logaddexp", _node))
UFUNCS.update(
    _rows("greater greater_equal less less_equal equal not_equal", lambda op: _node(op, kind="b"))
)
UFUNCS.update(_rows("logical_not logical_and logical_or", _logical))
UFUNCS.update(
    {
        np.add: _or_logical("add", "logical_or"),
        np.multiply: _or_logical("multiply", "logical_and"),
        np.maximum: _or_logical("maximum", "logical_or"),
        np.minimum: _or_logical("minimum", "logical_and"),
        np.square: _arithmetic("square"),
        np.reciprocal: _reciprocal,
        np.subtract: _numeric("subtract", "a ^ b, or a != b"),
        np.negative: _numeric("negative", "~mask"),
        np.sign: _numeric("sign", "the mask itself"),
        np.positive: _positive,
        np.conjugate: _same,
        np.absolute: _absolute,
        np.fabs: _node("absolute"),
        np.power: power,
        np.float_power: _float_power,
        np.matmul: matmul,
        np.logical_xor: lambda trace, a, b: trace.emit(
            "not_equal", (as_mask(trace, a), as_mask(trace, b)), kind="b"
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
