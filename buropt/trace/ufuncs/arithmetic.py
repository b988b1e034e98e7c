"""Arithmetic, comparisons and logic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from buropt.trace.dispatch import UFUNCS
from buropt.trace.errors import TraceError, location
from buropt.trace.kinds import distinct
from buropt.trace.ufuncs.rules import (
    arithmetic,
    as_mask,
    logical,
    masks_only,
    node,
    number_kind,
    numeric,
    or_logical,
    rows,
    same,
    zeros_signed,
)

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

# Up to here repeated multiplication stays within a few units in the last place of `pow`.
_LARGEST_INTEGER_POWER = 64


def _positive(trace: Trace, x: Tracer) -> Tracer:
    if x.is_bool:
        raise TraceError(
            f"np.positive is not defined for booleans, in NumPy either. {location(trace.name)} "
            "Instead: 1.0 * mask."
        )
    return trace.fresh(x)


def _absolute(trace: Trace, x: Tracer) -> Tracer:
    return trace.fresh(x) if x.is_bool else trace.emit("absolute", (x,), kind=x.kind)


def power(trace: Trace, x: Tracer, exponent: Tracer) -> Tracer:
    """`x ** exponent`; a constant exponent needs no logarithm, so any sign of x is right."""
    constant = trace.builder.constant_value(exponent.node)
    values = distinct(constant) if constant is not None else np.empty(0)
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
    """`a @ b` for vectors, matrices and stacks of matrices."""
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(
            f"buropt.matmul: an operand has shape (). {location(trace.name)} "
            "Instead: a * b, if one of them is meant to be a single number."
        )
    product = trace.emit("matmul", (a, b), kind=number_kind(a, b))
    return as_mask(trace, product) if a.is_bool and b.is_bool else product


def _reciprocal(trace: Trace, x: Tracer) -> Tracer:
    if x.kind == "i":
        raise TraceError(
            f"np.reciprocal of integers is an integer, 0 for most. {location(trace.name)} "
            "Instead: 1 / x."
        )
    return trace.emit("reciprocal", (x,))


UFUNCS.update(
    rows("greater greater_equal less less_equal equal not_equal", lambda op: node(op, kind="b"))
)
UFUNCS.update(rows("logical_not logical_and logical_or", logical))
UFUNCS.update(
    {
        np.add: or_logical("add", "logical_or"),
        np.multiply: or_logical("multiply", "logical_and"),
        np.maximum: or_logical("maximum", "logical_or"),
        np.minimum: or_logical("minimum", "logical_and"),
        np.fmax: or_logical("fmax", "logical_or"),
        np.fmin: or_logical("fmin", "logical_and"),
        np.square: arithmetic("square"),
        np.reciprocal: _reciprocal,
        np.subtract: numeric("subtract", "a ^ b, or a != b"),
        np.negative: numeric("negative", "~mask"),
        np.sign: numeric("sign", "the mask itself"),
        np.positive: _positive,
        np.conjugate: same,
        np.absolute: _absolute,
        np.divide: zeros_signed("divide", 1),
        np.sqrt: node("sqrt"),
        np.fabs: node("absolute"),
        np.power: power,
        np.float_power: _float_power,
        np.matmul: matmul,
        np.logical_xor: lambda trace, a, b: trace.emit(
            "not_equal", (as_mask(trace, a), as_mask(trace, b)), kind="b"
        ),
        np.invert: masks_only("~", "logical_not"),
        np.bitwise_and: masks_only("&", "logical_and"),
        np.bitwise_or: masks_only("|", "logical_or"),
        np.bitwise_xor: masks_only("^", "not_equal"),
    }
)
