"""The nodes that a builder holds, one by one, for those who cut or read a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt import _core


class Node(NamedTuple):
    """A node of a builder.

    Attributes
    ----------
    op : str
        The primitive; "input" or "constant".
    operands : list of int
        Their numbers in the builder.
    attributes : dict
        As `Builder.emit` takes them.
    shape : tuple of int
    batched : bool
    value : ndarray or None
        Of a constant.
    """

    op: str
    operands: list[int]
    attributes: dict[str, Any]
    shape: tuple[int, ...]
    batched: bool
    value: NDArray[Any] | None


def nodes_of(builder: _core.Builder, outputs: Sequence[int]) -> dict[int, Node] | None:
    """All that the outputs need, by number, operands before their users.

    None if the graph that is cut out is not the builder's, node by node: building may put one node
    in the place of several.
    """
    operands: dict[int, tuple[str, list[int]]] = {}
    waiting = list(outputs)
    while waiting:
        number = waiting.pop()
        if number not in operands:
            operands[number] = builder.definition(number)
            waiting += operands[number][1]
    order = sorted(operands)
    made = [number for number in order if operands[number][0]]
    if not made:
        return None
    # As outputs all of them are kept; where each came to lie says which attributes are its own.
    graph = builder.build(made, [str(number) for number in made])
    rows = graph.nodes
    place = {number: row for number, (_, row) in zip(made, graph.outputs, strict=True)}
    found: dict[int, Node] = {}
    for number in order:
        op, inputs = operands[number]
        attributes: dict[str, Any] = {}
        value = None
        if op:
            row = rows[place[number]]
            if row["op"] != op or not _same(inputs, row["inputs"], place, rows):
                return None
            attributes = row["attributes"]
        else:
            value = builder.constant_value(number)
            op = "input" if value is None else "constant"
        shape, batched = tuple(builder.shape(number)), builder.batched(number)
        number_value = None if value is None else np.asarray(value)
        found[number] = Node(op, inputs, attributes, shape, batched, number_value)
    return found


def _same(
    inputs: list[int], given: list[int], place: dict[int, int], rows: list[dict[str, Any]]
) -> bool:
    """Whether a row of the graph has the operands of the builder's node."""
    return len(inputs) == len(given) and all(
        place[number] == row if number in place else rows[row]["op"] in ("input", "constant")
        for number, row in zip(inputs, given, strict=True)
    )
