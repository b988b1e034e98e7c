"""Exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from buropt.trace.dispatch import UFUNCS, UfuncRule
from buropt.trace.ufuncs.rules import node, rows, zeros_signed

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def _times(factor: float) -> UfuncRule:
    """A rule that multiplies by a constant."""

    def rule(trace: Trace, x: Tracer) -> Tracer:
        return trace.emit("multiply", (x, trace.constant(factor)))

    return rule


UFUNCS.update(rows("exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 cbrt", node))
UFUNCS.update(rows("sin cos tan arcsin arccos arctan hypot", node))
UFUNCS.update(rows("sinh cosh tanh arcsinh arccosh arctanh", node))
UFUNCS.update(
    {
        np.arctan2: zeros_signed("arctan2", 0, 1),
        np.deg2rad: _times(math.pi / 180),
        np.radians: _times(math.pi / 180),
        np.rad2deg: _times(180 / math.pi),
        np.degrees: _times(180 / math.pi),
    }
)
