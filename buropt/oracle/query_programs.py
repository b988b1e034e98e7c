"""`QueryPrograms`: the programs behind an oracle's answers beyond value and gradient.

Each is a graph cut from a copy of the objective, with inputs of its own; it is compiled when first
asked for and bound to the data.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from buropt import _core
from buropt.oracle.data import OracleData
from buropt.oracle.objective import Objective

Shape: TypeAlias = tuple[int, ...]

_MAX_PARTIAL = 64  # programs for entries of the gradient, one for each choice of counts


class QueryPrograms:
    """The compiled queries of one oracle; `weighted` says whether calls give weights."""

    def __init__(self, objective: Objective, samples: OracleData, threads: int) -> None:
        self._objective = objective
        self._samples = samples
        self._threads = threads
        self._dim = objective.spec.dim
        self._offsets = objective.spec.offsets
        self._compiled: dict[Any, _core.Query | None] = {}
        self._partial: OrderedDict[Any, None] = OrderedDict()  # keys, the last used at the end

    def hessian_products(self, weighted: bool, count: int) -> _core.Query:
        """Of (x, v), v of shape (count, dim): the rows H v_k, forward over reverse."""

        def make() -> _core.Query:
            objective = self._objective.copy()
            return self._products(objective, objective.gradient(weighted), count)

        return self._find(("hessian_products", weighted, count), make)

    def penalty_products(self, count: int) -> _core.Query:
        """The same of the regularizer's Hessian."""

        def make() -> _core.Query:
            objective = self._objective.copy()
            if objective.penalty is None:
                raise ValueError("there is no regularizer")
            gradient = objective.builder.grad(objective.penalty, objective.params)
            return self._products(objective, gradient, count)

        return self._find(("penalty_products", count), make)

    def penalty_gradient(self) -> _core.Query:
        """Of x: the regularizer's gradient."""

        def make() -> _core.Query:
            objective = self._objective.copy()
            if objective.penalty is None:
                raise ValueError("there is no regularizer")
            outputs = objective.builder.grad(objective.penalty, objective.params)
            places = [(0, offset) for offset in self._offsets]
            return self._compile(objective, outputs, places, ("out", (self._dim,), False))

        return self._find(("penalty_gradient",), make)

    def slope(self, weighted: bool) -> _core.Query:
        """Of (x, v): the derivative of the objective along v, forward mode."""

        def make() -> _core.Query:
            objective = self._objective.copy()
            tangents = self._vector(objective, 0)
            inputs = [("vector", 1, offset) for offset in self._offsets]
            total = objective.totals[weighted]
            outputs = objective.builder.jvp([total], objective.params, tangents)
            argument, result = ("v", (self._dim,)), ("out", (), False)
            return self._compile(objective, outputs, [(0, 0)], result, [argument], inputs)

        return self._find(("slope", weighted), make)

    def per_sample_grads(self, weighted: bool) -> _core.Query:
        """Of x: for each sample the gradient of its loss plus the regularizer's, (n, dim)."""

        def make() -> _core.Query:
            objective = self._objective.copy()
            builder = objective.builder
            value = objective.losses[weighted]
            if objective.penalty is not None:
                value = builder.emit("add", [value, objective.penalty])
            rows = self._row_gradients(objective, value)
            outputs = [builder.emit("to_batched", [row]) for row in rows]
            places = [(0, offset) for offset in self._offsets]
            return self._compile(objective, outputs, places, ("out", (self._dim,), True))

        return self._find(("per_sample_grads", weighted), make)

    def coefficients(self, weighted: bool) -> _core.Query | None:
        """Of x: r_j for each sample, if the gradient of its loss is r_j times its row of data[0].

        None if data[0] is not sparse or the loss depends on x in another way.
        """

        def make() -> _core.Query | None:
            objective = self._objective.copy()
            builder = objective.builder
            if len(self._offsets) != 1 or not builder.is_csr(objective.data[0]):
                return None
            (gradient,) = self._row_gradients(objective, objective.losses[weighted])
            primitive, operands = builder.definition(gradient)
            if primitive != "sparse_dot_vjp" or operands[0] != objective.data[0]:
                return None
            if builder.shape(operands[1]) != ():
                return None
            outputs = [builder.emit("to_batched", [operands[1]])]
            return self._compile(objective, outputs, [(0, 0)], ("out", (), True))

        key = ("coefficients", weighted)
        if key not in self._compiled:
            self._compiled[key] = make()
        return self._compiled[key]

    def intermediates(self, names: tuple[str, ...]) -> _core.Query:
        """Of x: tagged values, those that depend on the sample for each sample."""

        def make() -> _core.Query:
            objective = self._objective
            builder = objective.builder
            nodes = [objective.tagged[name] for name in names]
            types = [(builder.shape(node), builder.batched(node)) for node in nodes]
            roles, dense, csr = objective.sources(self._samples)
            return _core.Query(
                builder.build(nodes, list(names)),
                [("x", (self._dim,), False)],
                [(name, *type) for name, type in zip(names, types, strict=True)],
                roles,
                [(k, 0) for k in range(len(nodes))],
                dense,
                csr,
                self._samples.n,
                self._threads,
            )

        return self._find(("intermediates", names), make)

    @cached_property
    def penalty_is_quadratic(self) -> bool:
        """Whether the regularizer's Hessian is the same everywhere."""
        objective = self._objective.copy()
        builder, params = objective.builder, objective.params
        if objective.penalty is None:
            return True
        gradient = builder.grad(objective.penalty, params)
        tangents = self._vector(objective, 0)
        products = builder.jvp(gradient, params, tangents)
        return not any(any(builder.depends_on(product, params)) for product in products)

    def describe(self) -> dict[str, dict[str, Any]]:
        """What has been compiled so far."""
        programs = {}
        for (name, detail, *_), query in self._compiled.items():
            if query is not None:
                programs[name + " with weights" * (detail is True)] = query.describe()
        return programs

    def partial(self, weighted: bool, counts: tuple[int, ...]) -> _core.Query:
        """Of (x, places): entries of the gradient, counts[k] of parameter k.

        The places are positions within their parameter, those of the first parameter first.
        """

        def make() -> _core.Query:
            objective = self._objective.copy()
            touched = [k for k, count in enumerate(counts) if count]
            starts = [sum(counts[:k]) for k in touched]
            places = [objective.builder.input(f"places[{k}]", (counts[k],)) for k in touched]
            gradient = objective.gradient(weighted)
            outputs = objective.builder.restrict([gradient[k] for k in touched], places)
            size = (sum(counts),)
            return self._compile(
                objective,
                outputs,
                [(0, start) for start in starts],
                ("out", size, False),
                [("places", size)],
                [("vector", 1, start) for start in starts],
            )

        key = ("partial", weighted, counts)
        query = self._find(key, make)
        self._partial[key] = None
        self._partial.move_to_end(key)
        if len(self._partial) > _MAX_PARTIAL:
            del self._compiled[self._partial.popitem(last=False)[0]]
        return query

    def _products(self, objective: Objective, gradient: list[int], count: int) -> _core.Query:
        """Of (x, v): the derivatives of the gradient along each of the directions v_k."""
        inputs, outputs = [], []
        for row in range(count):
            tangents = self._vector(objective, row)
            inputs += [("vector", 1, row * self._dim + offset) for offset in self._offsets]
            outputs += objective.builder.jvp(gradient, objective.params, tangents)
        places = [(0, row * self._dim + k) for row in range(count) for k in self._offsets]
        argument = ("v", (count, self._dim))
        result = ("out", (count, self._dim), False)
        return self._compile(objective, outputs, places, result, [argument], inputs)

    def _row_gradients(self, objective: Objective, value: int) -> list[int]:
        """The gradients of a sample's value, not summed over the samples."""
        one = objective.builder.constant(np.ones(()))
        return objective.builder.vjp([value], [one], objective.params, per_sample=True)

    def _vector(self, objective: Objective, row: int) -> list[int]:
        """Inputs shaped like the parameters."""
        return [objective.builder.input(f"v[{row}]", shape) for shape in objective.spec.shapes]

    def _find(self, key: Any, make: Callable[[], _core.Query]) -> _core.Query:
        query = self._compiled.get(key)
        if query is None:
            query = self._compiled[key] = make()
        return query

    def _compile(
        self,
        objective: Objective,
        outputs: list[int],
        places: list[tuple[int, int]],
        result: tuple[str, Shape, bool],
        arguments: list[tuple[str, Shape]] | None = None,
        inputs: list[tuple[str, int, int]] | None = None,
    ) -> _core.Query:
        """Compile nodes of the objective's builder.

        Parameters
        ----------
        outputs, places : list
            The nodes, and (0, offset in the result) for each.
        result : (name, shape, whether there is one for each sample)
        arguments : list of (name, shape)
            What a call takes after x.
        inputs : list of role
            What the inputs after the objective's own are.
        """
        graph = objective.builder.build(outputs, [f"out[{offset}]" for _, offset in places])
        roles, dense, csr = objective.sources(self._samples)
        takes = [(name, shape, False) for name, shape in [("x", (self._dim,)), *(arguments or [])]]
        return _core.Query(
            graph,
            takes,
            [result],
            [*roles, *(inputs or [])],
            places,
            dense,
            csr,
            self._samples.n,
            self._threads,
        )
