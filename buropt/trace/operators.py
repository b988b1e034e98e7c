"""Python's operators on traced values, and what NumPy's in-place operators mean for them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.errors import location
from buropt.trace.kinds import highest
from buropt.trace.sparse import SparseRow

if TYPE_CHECKING:
    from buropt.trace.tracer import Tracer


class Memory:
    """The memory that traced arrays would share in NumPy: an array and the views of it.

    In-place operators need it, because NumPy would change every view as well.

    Attributes
    ----------
    owner : str or None
        The name of the input whose memory it is; None for intermediate results.
    """

    __slots__ = ("_sharers", "owner")

    def __init__(self, owner: str | None = None) -> None:
        self.owner = owner
        self._sharers: list[weakref.ref[Tracer]] = []

    def add(self, tracer: Tracer) -> None:
        """Note that `tracer` shares this memory; inputs are never written, so need no list."""
        if self.owner is None:
            self._sharers.append(weakref.ref(tracer))

    @property
    def is_shared(self) -> bool:
        """Whether more than one living tracer uses this memory."""
        return sum(sharer() is not None for sharer in self._sharers) > 1


def binary(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
    """The operator `self <op> other`."""

    def method(self: Tracer, other: Any) -> Any:
        return NotImplemented if _is_for_other(other) else self.apply(ufunc, self, other)

    return method


def reflected(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
    """The operator `other <op> self`."""

    def method(self: Tracer, other: Any) -> Any:
        return NotImplemented if _is_for_other(other) else self.apply(ufunc, other, self)

    return method


def in_place(ufunc: np.ufunc, symbol: str) -> Callable[[Tracer, Any], Any]:
    """An augmented assignment with NumPy's meaning, or an error where it cannot have it.

    NumPy changes an array for everyone who holds it. A tracer therefore takes the new node over,
    so that other names of the same object see the change; where views or the caller's own array
    would have to change as well it raises. Scalars are immutable in NumPy: their name is rebound.
    """
    instead = f"y = x {symbol[:-1]} ..., which makes a new array"

    def method(self: Tracer, other: Any) -> Any:
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
        result = self.apply(ufunc, self, other)
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
        self.take_over(result)
        return self

    return method


def _is_for_other(other: Any) -> bool:
    """Whether Python shall ask the other operand: a sparse row, or one that opted out of ufuncs."""
    return isinstance(other, SparseRow) or getattr(other, "__array_ufunc__", True) is None
