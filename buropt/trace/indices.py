"""Inputs of integers that are used as indices: what their values must be, and the check.

While a function is recorded the values are not known. So for each array that is indexed by an
input, or by slices, reshapes and joins of inputs, it is noted which elements are indices into an
axis of which extent; the check runs when data are bound, or arguments are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt.trace.kinds import check_exact, distinct

_Numbers = NDArray[np.int64]
_Attributes = dict[str, Any]


@dataclass
class IntegerInput:
    """What is known of an input of integers.

    Attributes
    ----------
    name : str
        What error messages call it.
    shape : tuple of int
        The shape, of one sample if it is batched.
    dtype : numpy.dtype
        The float dtype that has to hold the integers.
    batched : bool
        Whether the values to check have one row per sample.
    uses : dict
        For (lowest index, extent of the indexed axis, where in the user's code) the flat positions
        of the elements that are used as indices there.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    batched: bool
    uses: dict[tuple[int, int, str], _Numbers] = field(default_factory=dict)

    def check(self, values: NDArray[Any]) -> None:
        """Raise if values are out of the range of the axes they index, or not exact as floats.

        Raises
        ------
        IndexError
            If one is out of range; the text names the sample, the value and the extent.
        ValueError
            If the graph's dtype cannot hold one exactly.
        """
        check_exact(values, self.name, self.dtype)
        for (lowest, extent, place), positions in self.uses.items():
            flat = values.reshape(-1, math.prod(self.shape))
            used = flat if len(positions) == flat.shape[1] else flat[:, positions]
            if used.size and (used.min() < lowest or used.max() >= extent):
                wrong = (used < lowest) | (used >= extent)
                row, column = (int(k) for k in np.argwhere(wrong)[0])
                what = int(used[row, column]), lowest, extent, place
                self._raise(row, int(positions[column]), *what)

    def _raise(
        self, row: int, position: int, value: int, lowest: int, extent: int, place: str
    ) -> None:
        at = [int(k) for k in np.unravel_index(position, self.shape)] if self.shape else []
        element = f" at {at}" if at else ""
        sample = f" in sample {row}" if self.batched else ""
        raise IndexError(
            f"{self.name} holds {value}{element}{sample}, an index into an axis of extent "
            f"{extent}, where indices go from {lowest} to {extent - 1}. Used in {place} Instead: "
            "give indices in that range, or an array with a longer axis."
        )


class Indices:
    """Which elements of which inputs the integers of a recording are.

    For a node of integers that only moves elements of inputs and constants there is an array of
    its shape that says where they come from: 2 e for element number e of all inputs, 2 c + 1 for
    the constant c.
    """

    def __init__(self) -> None:
        # Node, number of the first element, and what is known of it.
        self._inputs: list[tuple[int, int, IntegerInput]] = []
        self._size = 0
        self._sources: dict[int, _Numbers] = {}
        # For each use, as in `IntegerInput`, the numbers of the elements.
        self._required: dict[tuple[int, int, str], list[_Numbers]] = {}

    def add_input(self, node: int, integers: IntegerInput) -> None:
        """Note an input of integers."""
        self._inputs.append((node, self._size, integers))
        size = math.prod(integers.shape)
        numbers = np.arange(self._size, self._size + size)
        self._sources[node] = 2 * numbers.reshape(integers.shape)
        self._size += size

    def inputs_among(self, nodes: Sequence[int]) -> tuple[tuple[int, IntegerInput], ...]:
        """The inputs of integers in a list of nodes, with their positions in the list."""
        self._hand_out()
        known = {node: integers for node, _, integers in self._inputs}
        return tuple((k, known[node]) for k, node in enumerate(nodes) if node in known)

    def add_constant(self, node: int, values: NDArray[Any]) -> None:
        """Note a constant of integers."""
        self._sources[node] = 2 * values.astype(np.int64) + 1

    def add_node(self, node: int, op: str, operands: Sequence[int], attributes: Any) -> None:
        """Note a node of integers, if it only moves the elements of its operands."""
        move = _MOVES.get(op)
        if move is not None and node not in self._sources:
            sources = [self._sources.get(operand) for operand in operands]
            if all(source is not None for source in sources):
                self._sources[node] = move(attributes, *sources)

    def require(self, node: int, extent: int, place: str, lowest: int | None = None) -> bool:
        """Require that a node's values are indices into an axis, if it only moves elements.

        Negative ones count from the end, unless `lowest` is 0. Returns whether it does, so that
        the check of the inputs guarantees the range.

        Raises
        ------
        IndexError
            If a constant among the elements is out of range.
        """
        source = self._sources.get(node)
        if source is None:
            return False
        least = -extent if lowest is None else lowest
        constants = source[source % 2 == 1] >> 1
        wrong = constants[(constants < least) | (constants >= extent)]
        if wrong.size:
            raise IndexError(
                f"index {wrong[0]} is out of bounds for an axis of extent {extent}. Raised while "
                f"tracing {place}"
            )
        self._required.setdefault((least, extent, place), []).append(source[source % 2 == 0] >> 1)
        return True

    def _hand_out(self) -> None:
        """Tell the inputs what is required of their elements."""
        for use, parts in self._required.items():
            elements = distinct(np.concatenate(parts))
            for _, first, integers in self._inputs:
                found = elements - first
                found = found[(found >= 0) & (found < math.prod(integers.shape))]
                if found.size:
                    integers.uses[use] = found


def _slice(attributes: _Attributes, source: _Numbers) -> _Numbers:
    parts = zip(attributes["starts"], attributes["sizes"], attributes["steps"], strict=True)
    for axis, (start, size, step) in enumerate(parts):
        source = source.take(start + step * np.arange(size), axis)
    return source


def _concatenate(attributes: _Attributes, *sources: _Numbers) -> _Numbers:
    return np.concatenate(sources, attributes["axis"])


_MOVES: dict[str, Callable[..., _Numbers]] = {
    "slice": _slice,
    "reshape": lambda attributes, source: source.reshape(attributes["shape"]),
    "transpose": lambda attributes, source: source.transpose(attributes["axes"]),
    "broadcast_to": lambda attributes, source: np.broadcast_to(source, attributes["shape"]),
    "concatenate": _concatenate,
}
