"""Rounding, remainders, signs, and what is not a number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from buropt.trace.dispatch import UFUNCS, UfuncRule
from buropt.trace.ufuncs.rules import arithmetic, node, rows, zeros_signed

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def _to_whole(op: str) -> UfuncRule:
    """A rule for rounding in one direction, which leaves integers and masks as they are."""

    def rule(trace: Trace, x: Tracer) -> Tracer:
        return trace.emit(op, (x,)) if x.kind == "f" else trace.fresh(x)

    return rule


def _divmod(trace: Trace, a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    return arithmetic("floor_divide")(trace, a, b), arithmetic("remainder")(trace, a, b)


def _size_compared(op: str) -> UfuncRule:
    """A rule that compares |x| with infinity."""

    def rule(trace: Trace, x: Tracer) -> Tracer:
        size = trace.emit("absolute", (x,))
        return trace.emit(op, (size, trace.constant(math.inf)), kind="b")

    return rule


def _isnan(trace: Trace, x: Tracer) -> Tracer:
    return trace.emit("not_equal", (x, x), kind="b")


def _signbit(trace: Trace, x: Tracer) -> Tracer:
    sign = zeros_signed("copysign", 1)(trace, trace.constant(1.0), x)
    return trace.emit("less", (sign, trace.constant(0.0)), kind="b")


UFUNCS.update(rows("floor ceil trunc", _to_whole))
UFUNCS.update(rows("floor_divide remainder fmod", arithmetic))
UFUNCS.update(rows("rint heaviside", node))
UFUNCS.update(
    {
        np.copysign: zeros_signed("copysign", 1),
        np.divmod: _divmod,
        np.isfinite: _size_compared("less"),
        np.isinf: _size_compared("equal"),
        np.isnan: _isnan,
        np.signbit: _signbit,
    }
)
