"""Products with a Hessian at one point: what the directions have in common is computed once.

The graph of the product is cut in two. The first half holds what does not depend on the direction,
such as the curvatures of the samples' losses; the second takes its results as inputs. A generalized
linear model needs a number or two a sample, and a product is then hardly more than a pass over the
data. Where there is much to keep, recomputing it is as quick, and the graph is left whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from buropt import _core
from buropt.nodes import Node, nodes_of
from buropt.oracle.data import OracleData
from buropt.oracle.objective import Array, Objective

MOST_NUMBERS = 16  # kept for a sample


class HessianProducts:
    """Both halves as programs bound to the data.

    Parameters
    ----------
    objective : Objective
        A copy, to which inputs are added.
    samples : OracleData
    weights : ndarray, shape (n_samples,), or None
    threads : int

    Attributes
    ----------
    is_split : bool
        Whether the graph was worth cutting; otherwise there are no programs.
    """

    def __init__(
        self, objective: Objective, samples: OracleData, weights: Array | None, threads: int
    ) -> None:
        self._weights = weights
        self._scale = 1 / max(1, samples.n)
        builder, dim = objective.builder, objective.spec.dim
        tangents = [builder.input("v", shape) for shape in objective.spec.shapes]
        gradient = objective.gradient(weights is not None)
        products = builder.jvp(gradient, objective.params, tangents)
        nodes = nodes_of(builder, products)
        self.is_split = nodes is not None
        if nodes is None:
            return
        late = _later(nodes, set(tangents))
        used = set(products).union(*(nodes[k].operands for k in late))
        cut = [k for k in sorted(used - late) if nodes[k].op not in ("input", "constant")]
        kept = [(f"kept[{k}]", nodes[k].shape, nodes[k].batched) for k in cut]
        numbers = sum(math.prod(shape) for _, shape, batched in kept if batched)
        self.is_split = 0 < numbers <= MOST_NUMBERS
        if not self.is_split:
            return
        roles, dense, csr = objective.sources(samples)
        rest = (dense, csr, samples.n, threads)
        x, v = ("x", (dim,), False), ("v", (dim,), False)
        offsets = objective.spec.offsets
        along = [("vector", 1, offset) for offset in offsets]

        first = builder.build(cut, [name for name, _, _ in kept])
        places = [(i, 0) for i in range(len(kept))]
        self._nothing: list[Any] = [None] * len(kept)
        self._first = _core.Query(first, [x, v], kept, [*roles, *along], places, *rest)

        # The same inputs have the same numbers in a copy, and the second half is emitted there.
        copy = objective.copy().builder
        for shape in objective.spec.shapes:
            copy.input("v", shape)
        moved = {k: k for k, node in nodes.items() if node.op == "input"}
        for k, (name, shape, batched) in zip(cut, kept, strict=True):
            moved[k] = copy.input(name, shape, batched)
        for k, node in nodes.items():
            if node.op == "constant":
                moved[k] = copy.constant(node.value)
            elif k in late and k not in moved:
                moved[k] = copy.emit(node.op, [moved[j] for j in node.operands], node.attributes)
        second = copy.build([moved[k] for k in products], ["out"] * len(products))
        kinds = ["rows" if batched else "vector" for _, _, batched in kept]
        taken = [(kind, 2 + i, 0) for i, kind in enumerate(kinds)]
        self._second = _core.Query(
            second,
            [x, v, *kept],
            [("out", (1, dim), False)],
            [*roles, *along, *taken],
            [(0, offset) for offset in offsets],
            *rest,
        )

    def at(self, x: Array) -> list[Any]:
        """What all directions at x, (dim,), have in common."""
        kept: Any = self._first([x, x], None, self._weights, self._scale, self._nothing)
        return list(kept)

    def times(self, x: Array, kept: list[Any], v: Array, out: Array | None = None) -> Array:
        """The Hessian at x times v, (1, dim)."""
        results: Any = self._second([x, v, *kept], None, self._weights, self._scale, [out])
        product: Array = results[0]
        return product


def _later(nodes: Mapping[int, Node], tangents: set[int]) -> set[int]:
    """The nodes that depend on the direction, or are inputs in another shape and cost nothing."""
    depend: set[int] = set()
    free: set[int] = set()
    for k, node in nodes.items():
        if k in tangents or not depend.isdisjoint(node.operands):
            depend.add(k)
        if node.op in ("input", "constant") or (
            node.op == "reshape" and free.issuperset(node.operands)
        ):
            free.add(k)
    return depend | {k for k in free if nodes[k].op == "reshape"}
