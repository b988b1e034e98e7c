"""Products with a Hessian at one point: what the directions have in common is computed once.

The graph of the product is cut in two. The first half holds what does not depend on the direction,
such as the curvatures of the samples' losses; the second takes its results as inputs. A generalized
linear model needs a number or two a sample, and a product is then hardly more than a pass over the
data. Where there is much to keep, recomputing it is as quick, and the graph is left whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from buropt import _core
from buropt.objective import Array, Objective
from buropt.oracle_data import OracleData

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
        graph = builder.build(products, ["out"] * len(products))
        nodes = graph.nodes
        origin = _origins(graph, builder, products)
        late = _later(nodes, {k for k, node in origin.items() if node in tangents})
        ends = [number for _, number in graph.outputs]
        used = set(ends).union(*(node["inputs"] for k, node in enumerate(nodes) if late[k]))
        cut = [
            k for k in sorted(used) if not late[k] and nodes[k]["op"] not in ("input", "constant")
        ]
        kept = [(f"kept[{k}]", tuple(nodes[k]["shape"]), nodes[k]["batched"]) for k in cut]
        numbers = sum(math.prod(shape) for _, shape, batched in kept if batched)
        self.is_split = 0 < numbers <= MOST_NUMBERS
        if not self.is_split:
            return
        roles, dense, csr = objective.sources(samples)
        rest = (dense, csr, samples.n, threads)
        x, v = ("x", (dim,), False), ("v", (dim,), False)
        offsets = objective.spec.offsets
        along = [("vector", 1, offset) for offset in offsets]

        first = builder.build([origin[k] for k in cut], [name for name, _, _ in kept])
        places = [(i, 0) for i in range(len(kept))]
        self._nothing: list[Any] = [None] * len(kept)
        self._first = _core.Query(first, [x, v], kept, [*roles, *along], places, *rest)

        # The same inputs have the same numbers in a copy, and the second half is emitted there.
        copy = objective.copy()
        moved = {k: node for k, node in origin.items() if nodes[k]["op"] == "input"}
        for shape in objective.spec.shapes:
            copy.builder.input("v", shape)
        for k, (name, shape, batched) in zip(cut, kept, strict=True):
            moved[k] = copy.builder.input(name, shape, batched)
        for k, node in enumerate(nodes):
            if late[k] and k not in moved:
                for j in node["inputs"]:
                    if j not in moved:
                        moved[j] = copy.builder.constant(builder.constant_value(origin[j]))
                operands = [moved[j] for j in node["inputs"]]
                moved[k] = copy.builder.emit(node["op"], operands, node["attributes"])
        second = copy.builder.build([moved[k] for k in ends], ["out"] * len(ends))
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


def _later(nodes: Sequence[dict[str, Any]], tangents: set[int]) -> list[bool]:
    """Which nodes depend on the direction, or are inputs in another shape and cost nothing."""
    depends: list[bool] = []
    free: list[bool] = []
    for k, node in enumerate(nodes):
        depends.append(k in tangents or any(depends[j] for j in node["inputs"]))
        is_given = node["op"] in ("input", "constant")
        free.append(is_given or (node["op"] == "reshape" and free[node["inputs"][0]]))
    return [depends[k] or (free[k] and node["op"] == "reshape") for k, node in enumerate(nodes)]


def _origins(graph: _core.Graph, builder: _core.Builder, products: Sequence[int]) -> dict[int, int]:
    """The builder's node for each node of a graph that was cut from it."""
    found = {number: node for (_, number), node in zip(graph.outputs, products, strict=True)}
    nodes = graph.nodes
    for k in range(len(nodes) - 1, -1, -1):
        if k in found:
            _, operands = builder.definition(found[k])
            found.update(zip(nodes[k]["inputs"], operands, strict=True))
    return found
