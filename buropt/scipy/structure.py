"""Which inputs each result of a function can depend on, read from its graph.

Every node gets a sparse matrix of marks, a line for each of its elements and a column for each
input. Elementwise operations, and those that only move elements, pass the lines on; sums and matrix
products unite them. Of any other operation every element is taken to depend on all that the
operands depend on. So the structure may have too many entries, and never too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from buropt import _core
from buropt.nodes import Node, nodes_of
from buropt.trace import Trace

Marks: TypeAlias = Any  # a CSR array of float64, not 0 where there is a dependence

# Their derivatives are 0 wherever they exist.
_STEPS = {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and"}
_STEPS |= {"logical_or", "logical_not", "sign", "floor", "ceil", "rint", "trunc"}
_STEPS |= {"argmax", "argmin", "argsort", "floor_divide", "heaviside"}


def jacobian_structure(function: Callable[[Any], Any], n: int) -> Marks:
    """The structure of the Jacobian of a function of (n,) whose result is a vector (m,).

    Returns
    -------
    csr_array, shape (m, n)
        1.0 where a result may depend on an input.
    """
    with Trace(np.dtype(np.float64)) as trace:
        (value,), _ = trace.call_nested(function, trace.input("x", (n,)))
    nodes = nodes_of(trace.builder, [value.node])
    if nodes is None:  # a result that is an input or a constant, or a graph that building changed
        is_input = trace.builder.constant_value(value.node) is None
        everything = sp.csr_array(np.ones((math.prod(value.shape), n)))
        return everything if is_input else sp.csr_array(everything.shape)
    found: dict[int, Marks] = {}
    for k, node in nodes.items():
        if node.op == "input":
            marks = sp.eye(n, format="csr")
        elif node.op == "constant" or node.op in _STEPS:
            marks = sp.csr_array((math.prod(node.shape), n))
        else:
            operands = [nodes[j] for j in node.operands]
            marks = _marks(node, operands, [found[j] for j in node.operands])
        marks.data[:] = 1.0
        found[k] = marks
    marks = sp.csr_array(found[value.node])
    marks.sum_duplicates()
    marks.data[:] = 1.0
    return marks


def _marks(node: Node, givers: Sequence[Node], operands: Sequence[Marks]) -> Marks:
    """The marks of an operation from those of its operands."""
    op, attributes, shape = node.op, node.attributes, node.shape
    shapes, numbers = [giver.shape for giver in givers], [giver.value for giver in givers]
    places = [
        np.arange(marks.shape[0]).reshape(s) for marks, s in zip(operands, shapes, strict=True)
    ]
    if op in _elementwise():
        picked = [
            marks[np.broadcast_to(place, shape).ravel()]
            for marks, place in zip(operands, places, strict=True)
        ]
        return sum(picked[1:], picked[0])
    moved = _moved(op, attributes, shape, places, numbers)
    if moved is not None:
        return operands[0][moved.ravel()]
    if op == "concatenate":
        starts = np.cumsum([0, *(marks.shape[0] for marks in operands)])
        parts = [place + start for place, start in zip(places, starts[:-1], strict=True)]
        order = np.concatenate(parts, axis=attributes["axis"][0])
        return sp.vstack(operands, format="csr")[order.ravel()]
    if op == "sum":
        return _summed(attributes["axes"], places[0]) @ operands[0]
    if op == "matmul" and len(operands) == 2 and all(len(s) == 2 for s in shapes):
        return _product(attributes, places, operands, numbers)
    everything = sp.csr_array(sum(marks.sum(axis=0) for marks in operands)).reshape(1, -1)
    return sp.csr_array(sp.kron(np.ones((math.prod(shape), 1)), everything))


def _moved(
    op: str,
    attributes: dict[str, list[int]],
    shape: tuple[int, ...],
    places: Sequence[NDArray[Any]],
    numbers: Sequence[NDArray[Any] | None],
) -> NDArray[Any] | None:
    """For each element of the result the place in the first operand that it comes from."""
    place: NDArray[Any] = places[0]
    if op == "reshape":
        return place.reshape(shape)
    if op == "transpose":
        return np.transpose(place, attributes["axes"])
    if op == "broadcast_to":
        return np.broadcast_to(place, shape)
    if op == "slice":
        axes = zip(attributes["starts"], attributes["sizes"], attributes["steps"], strict=True)
        return place[np.ix_(*(start + step * np.arange(size) for start, size, step in axes))]
    if op == "take" and numbers[1] is not None:
        return np.take(place, numbers[1].astype(np.int64), axis=attributes["axis"][0])
    return None


def _summed(axes: Sequence[int], place: NDArray[Any]) -> Marks:
    """The matrix that sums over axes: (elements of the result, elements of the operand)."""
    kept = tuple(1 if k in axes else extent for k, extent in enumerate(place.shape))
    target = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), place.shape).ravel()
    ones = np.ones(place.size)
    return sp.csr_array((ones, (target, place.ravel())), shape=(math.prod(kept), place.size))


def _product(
    attributes: dict[str, list[int]],
    places: Sequence[NDArray[Any]],
    operands: Sequence[Marks],
    numbers: Sequence[NDArray[Any] | None],
) -> Marks:
    """A product of two matrices; zeros of a constant factor hide lines of the other one."""
    turned = [any(attributes[name]) for name in ("transpose_a", "transpose_b")]
    sides = []
    for place, marks, number, is_turned in zip(places, operands, numbers, turned, strict=True):
        order = place.T if is_turned else place
        pattern = np.ones(order.shape) if number is None else (number != 0) * 1.0
        if number is not None and is_turned:
            pattern = pattern.T
        sides.append((marks[order.ravel()], pattern))
    (left, a), (right, b) = sides
    rows, columns = a.shape[0], b.shape[1]
    of_right = sp.kron(sp.csr_array(a), sp.eye(columns)) @ right
    of_left = sp.kron(sp.eye(rows), sp.csr_array(b.T)) @ left
    return sp.csr_array(of_right + of_left)


@cache
def _elementwise() -> frozenset[str]:
    return frozenset(op["name"] for op in _core.ops() if op["elementwise"])
