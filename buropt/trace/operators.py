"""Python's operators on traced values, and what NumPy's in-place operators mean for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from buropt.trace.base import TracedValue
from buropt.trace.dispatch import call_ufunc
from buropt.trace.errors import location
from buropt.trace.kinds import highest
from buropt.trace.sparse import SparseRow


def unary(ufunc: np.ufunc) -> Callable[[TracedValue], Any]:
    """The operator `<op> self`."""

    def method(self: TracedValue) -> Any:
        return call_ufunc(self.recording, ufunc, self)

    return method


def binary(ufunc: np.ufunc) -> Callable[[TracedValue, Any], Any]:
    """The operator `self <op> other`."""

    def method(self: TracedValue, other: Any) -> Any:
        if _is_for_other(other):
            return NotImplemented
        return call_ufunc(self.recording, ufunc, self, other)

    return method


def reflected(ufunc: np.ufunc) -> Callable[[TracedValue, Any], Any]:
    """The operator `other <op> self`."""

    def method(self: TracedValue, other: Any) -> Any:
        if _is_for_other(other):
            return NotImplemented
        return call_ufunc(self.recording, ufunc, other, self)

    return method


def in_place(ufunc: np.ufunc, symbol: str) -> Callable[[TracedValue, Any], Any]:
    """An augmented assignment with NumPy's meaning, or an error where it cannot have it.

    NumPy changes an array for everyone who holds it. A tracer therefore takes the new node over,
    so that other names of the same object see the change; where views or the caller's own array
    would have to change as well it raises. Scalars are immutable in NumPy: their name is rebound.
    """
    instead = f"y = x {symbol[:-1]} ..., which makes a new array"

    def method(self: TracedValue, other: Any) -> Any:
        if isinstance(other, SparseRow):
            return NotImplemented
        memory = self.memory
        if memory is not None and memory.owner is not None:
            self.refuse(
                f"{symbol} would change the input {memory.owner} in place, and with it the "
                "caller's array",
                instead,
            )
        if memory is not None and memory.is_shared:
            self.refuse(
                f"{symbol} would change an array that shares its memory with a slice, reshape "
                "or transpose still in use",
                instead,
            )
        result = call_ufunc(self.recording, ufunc, self, other)
        if not self.shape:
            return result
        if result.shape != self.shape:
            raise ValueError(
                f"{symbol}: the result has shape {result.shape} and does not fit into the array "
                f"of shape {self.shape}. {location(self.recording.name)} Instead: {instead}."
            )
        if highest((self.kind, result.kind)) != self.kind:
            what = "a boolean" if self.is_bool else "an integer"
            self.refuse(f"{symbol} would put {result.dtype} numbers into {what} array", instead)
        self.node = result.node
        return self

    return method


def _is_for_other(other: Any) -> bool:
    """Whether Python shall ask the other operand: a sparse row, or one that opted out of ufuncs."""
    return isinstance(other, SparseRow) or getattr(other, "__array_ufunc__", True) is None
