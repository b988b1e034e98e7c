"""Whether a function is being traced, and what its operands are."""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import numpy as np

from buropt.trace import SparseRow, Trace, Tracer
from buropt.trace.errors import location
from buropt.trace.recording import recording_of

# A traced array, an ndarray, or what NumPy makes an ndarray of. Results are of the same kind.
Array: TypeAlias = Any


def trace_of(*operands: Any) -> Trace | None:
    """The recording that the operands belong to; None if none of them is traced."""
    for operand in operands:
        if isinstance(operand, Tracer | SparseRow):
            return recording_of(operand)
    return None


def as_array(operand: Any) -> Array:
    """The operand with a shape: a tracer as it is, anything else as an ndarray."""
    return operand if isinstance(operand, Tracer | SparseRow) else np.asarray(operand)


def where(*operands: Any) -> str:
    """The second part of a message: where in the user's code it happened, if it is traced."""
    trace = trace_of(*operands)
    return "" if trace is None else f" {location(trace.name)}"


def checked_axis(name: str, axis: Any, array: Array) -> int:
    """An axis counted from the front, or a ValueError."""
    k: int = operator.index(axis)
    n_axes: int = array.ndim
    if not -n_axes <= k < n_axes:
        raise ValueError(
            f"buropt.nn.{name}: axis {k} is out of bounds for an array of shape {array.shape}."
            f"{where(array)} Instead: an axis of the array, such as -1, the last one."
        )
    return k % n_axes
