"""The makers of rules for ufuncs, and the casts between kinds that rules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from buropt.trace.dispatch import UfuncRule
from buropt.trace.errors import TraceError, location
from buropt.trace.kinds import Kind, highest

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def node(op: str, kind: Kind = "f") -> UfuncRule:
    """A rule that emits the node `op`, whose result is of one kind for all operands."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        return trace.emit(op, operands, kind=kind)

    return rule


def arithmetic(op: str) -> UfuncRule:
    """A rule that emits the node `op`, whose result is an integer if no operand is a float."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        return trace.emit(op, operands, kind=number_kind(*operands))

    return rule


def number_kind(*operands: Tracer) -> Kind:
    """The kind of arithmetic on the operands: floats, or integers if none of them is a float."""
    return highest(("i", *(operand.kind for operand in operands)))


def numeric(op: str, instead: str) -> UfuncRule:
    """A rule for arithmetic that NumPy refuses if all operands are boolean."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if all(operand.is_bool for operand in operands):
            raise TraceError(
                f"np.{op} is not defined for booleans, in NumPy either. {location(trace.name)} "
                f"Instead: {instead}."
            )
        return trace.emit(op, operands, kind=number_kind(*operands))

    return rule


def or_logical(op: str, logical: str) -> UfuncRule:
    """A rule that emits `op`, or between masks, as in NumPy, the logical node."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if all(operand.is_bool for operand in operands):
            return trace.emit(logical, operands, kind="b")
        return trace.emit(op, operands, kind=number_kind(*operands))

    return rule


def masks_only(symbol: str, op: str) -> UfuncRule:
    """A rule for a bitwise ufunc, which only exists for masks."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        if not all(operand.is_bool for operand in operands):
            example = f"(x > 0) {symbol} (x < 1)" if len(operands) == 2 else f"{symbol}(x > 0)"
            raise TraceError(
                f"{symbol} is only defined for masks (results of comparisons). "
                f"{location(trace.name)} Instead: compare first, as in {example}, "
                "with the parentheses."
            )
        return trace.emit(op, operands, kind="b")

    return rule


def zeros_signed(op: str, *places: int) -> UfuncRule:
    """A rule that emits `op`, which tells -0 from 0 in these operands; integers have 0 alone."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        plain = list(operands)
        for k in places:
            if plain[k].kind == "i":
                plain[k] = trace.emit("add", (plain[k], trace.constant(0.0)))
        return trace.emit(op, plain)

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
        x = trace.emit("add", (trace.emit("trunc", (x,)), trace.constant(0.0)))  # -0 becomes 0
    return trace.integer(x)


def logical(op: str) -> UfuncRule:
    """A rule that emits a logical node; numbers count as true where they are not 0."""

    def rule(trace: Trace, *operands: Tracer) -> Tracer:
        masks = [as_mask(trace, operand) for operand in operands]
        return trace.emit(op, masks, kind="b")

    return rule


def same(trace: Trace, x: Tracer) -> Tracer:
    """The number itself; a mask becomes integers."""
    return trace.fresh(cast(trace, x, number_kind(x)))


def rows(names: str, make: Callable[[str], UfuncRule]) -> dict[np.ufunc, UfuncRule]:
    """Rows for NumPy's ufuncs of these names, with the rule that `make` gives for each."""
    return {getattr(np, name): make(name) for name in names.split()}
