"""What a traced value is, apart from what can be done with it.

The lowest layer that knows of values: the tables of rules, and Python's operators, work with what
is here. `tracer.Tracer` adds how NumPy and Python see a value, `recording.Trace` makes the nodes.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from buropt import _core
from buropt.trace.errors import TraceError, library_function, location
from buropt.trace.kinds import Kind


class Recording(Protocol):
    """What a value knows of the recording that it belongs to, a `Trace`."""

    builder: _core.Builder
    dtype: np.dtype[Any]
    name: str

    def lift(self, value: Any) -> Any:
        """The operand as a value of this recording: a tracer, array or number."""

    def emit(
        self,
        op: str,
        operands: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        *,
        kind: Kind = "f",
    ) -> Any:
        """A new node."""


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
        self._sharers: list[weakref.ref[TracedValue]] = []

    def add(self, value: TracedValue) -> None:
        """Note that `value` shares this memory; inputs are never written, so need no list."""
        if self.owner is None:
            self._sharers.append(weakref.ref(value))

    @property
    def is_shared(self) -> bool:
        """Whether more than one living value uses this memory."""
        return sum(sharer() is not None for sharer in self._sharers) > 1


class TracedValue:
    """A node of the graph under construction, and what NumPy would know of its value.

    Attributes
    ----------
    recording : Recording
        What it belongs to.
    node : int
        The id of the node in the recording's builder.
    shape : tuple of int
        The shape; for the value of one sample, without a batch axis.
    kind : str
        "f" for floats, "i" for integers, "b" for masks; in the graph all of them are numbers of
        the float dtype, integers exact ones and masks 0 or 1.
    memory : Memory or None
        Who else shares its memory; None if nobody does.
    """

    __slots__ = ("__weakref__", "kind", "memory", "node", "recording", "shape")

    def __init__(self, trace: Recording, node: int, kind: Kind, memory: Memory | None) -> None:
        self.recording = trace
        self.node = node
        self.shape: tuple[int, ...] = trace.builder.shape(node)
        self.memory = memory
        self.kind = kind
        if memory is not None:
            memory.add(self)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The graph's float dtype, int64, or bool for the result of a comparison."""
        if self.kind == "f":
            return self.recording.dtype
        return np.dtype(np.int64 if self.kind == "i" else bool)

    @property
    def is_bool(self) -> bool:
        """Whether it is a mask."""
        return self.kind == "b"

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise `TraceError`, adding where in the user's code it happened."""
        name = library_function()
        what = what if name is None else f"{name}: {what}"
        raise TraceError(f"{what}. {location(self.recording.name)} Instead: {instead}.")
