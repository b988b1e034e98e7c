"""`Objective`: the traced loss and regularizer, and the graphs and programs cut from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buropt import _core
from buropt.oracle.data import OracleData, RowSpec, is_sparse
from buropt.trace import DisconnectedInputWarning, Trace, TraceError, Tracer
from buropt.trace.errors import definition, warn
from buropt.trace.indices import IntegerInput
from buropt.trace.kinds import Kind
from buropt.tree import TreeSpec

Array = NDArray[Any]
Loss = Callable[..., Any]
CsrParts: TypeAlias = tuple[Array, Array, Array, _core.SlicedCopy]


class Functions(NamedTuple):
    """The traced loss and regularizer.

    Attributes
    ----------
    graph : _core.Graph
        Inputs: the parameters, then the data. Outputs: "loss", "regularizer" if there is one, and
        the tagged values.
    integers : sequence of (int, IntegerInput)
        The data, by their number, that are integers, and what is required of them.
    tags : dict
        The kinds of the tagged values by their names.
    """

    graph: _core.Graph
    integers: Sequence[tuple[int, IntegerInput]]
    tags: dict[str, Kind]


class Objective:
    """Loss and regularizer as a graph, and the graphs and programs derived from it.

    Attributes
    ----------
    functions : Functions
        All that it is made of.
    spec : TreeSpec
        Of the parameters.
    builder : _core.Builder
        Holds the nodes below, and takes what is derived from them.
    params, data : list of int
        The inputs.
    losses : dict
        The loss of a sample, by whether it is weighted.
    penalty : int or None
        The regularizer.
    totals : dict
        The objective, by whether it is weighted.
    tagged : dict
        The tagged values by their names.
    """

    def __init__(
        self,
        functions: Functions,
        spec: TreeSpec,
        rows: Sequence[RowSpec],
    ) -> None:
        self.functions = functions
        self.spec = spec
        self._rows = rows
        # Everything is derived from the graph as it is cut out, and not in the builder that has
        # recorded it: so an objective that was saved and loaded computes the same bits.
        self.builder = builder = _core.Builder(spec.dtype.name)
        self.params = [
            builder.input(path, shape) for path, shape in zip(spec.paths, spec.shapes, strict=True)
        ]
        self.data = [
            builder.csr_input(row.path, row.shape[0])
            if row.is_csr
            else builder.input(row.path, row.shape, batched=True)
            for row in rows
        ]
        outputs = builder.add_graph(functions.graph, self.params + self.data)
        n = len(outputs) - len(functions.tags)
        value, *penalty = outputs[: max(0, n)] or [-1]
        if (
            functions.graph.output_names != ["loss", "regularizer"][:n] + list(functions.tags)
            or n not in (1, 2)
            or any(builder.shape(node) for node in (value, *penalty))
        ):
            raise ValueError("the graph is not that of a loss and a regularizer")
        self.penalty = penalty[0] if penalty else None
        self.tagged = dict(zip(functions.tags, outputs[n:], strict=True))
        self.losses: dict[bool, int] = {False: value}
        self.totals: dict[bool, int] = {}
        if rows:
            scale = builder.input("scale", ())
            weight = builder.input("weight", (), batched=True)
            self.losses[False] = builder.emit("to_batched", [value])
            self.losses[True] = builder.emit("multiply", [weight, self.losses[False]])
            for weighted, term in self.losses.items():
                total = builder.emit("batch_sum", [term])
                self.totals[weighted] = builder.emit("multiply", [scale, total])
        else:
            self.totals[False] = value
        for weighted, total in self.totals.items():
            if penalty:
                self.totals[weighted] = builder.emit("add", [total, *penalty])
        self._grads: dict[bool, list[int]] = {}

    @classmethod
    def trace(
        cls,
        loss: Loss,
        regularizer: Callable[[Any], Any] | None,
        spec: TreeSpec,
        samples: OracleData,
    ) -> Objective:
        """Record the loss of one sample and the regularizer.

        Raises
        ------
        IndexError
            If the loss uses integers of the data as indices and one is out of range.

        Warns
        -----
        DisconnectedInputWarning
            If a parameter influences neither.
        """
        with Trace(spec.dtype) as trace:
            leaves = [
                trace.input(path, shape)
                for path, shape in zip(spec.paths, spec.shapes, strict=True)
            ]
            rows = [
                trace.csr_input(row.path, row.shape[0])
                if row.is_csr
                else trace.input(row.path, row.shape, batched=True, kind=row.kind)
                for row in samples.rows
            ]
            params = spec.structure.unflatten(leaves)
            outputs = {"loss": _call(trace, loss, params, *samples.arguments(rows)).node}
            if regularizer is not None:
                outputs["regularizer"] = _call(trace, regularizer, params).node
        nodes = [leaf.node for leaf in leaves]
        used = [trace.builder.depends_on(output, nodes) for output in outputs.values()]
        unused = [path for path, *uses in zip(spec.paths, *used, strict=True) if not any(uses)]
        if unused:
            warn(
                f"the objective does not depend on {', '.join(unused)}; the gradient there is zero",
                DisconnectedInputWarning,
            )
        tags = trace.tags
        functions = Functions(
            trace.builder.build(
                [*outputs.values(), *(tracer.node for tracer in tags.values())], [*outputs, *tags]
            ),
            trace.indices.inputs_among([row.node for row in rows]),
            {name: tracer.kind for name, tracer in tags.items()},
        )
        objective = cls(functions, spec, samples.rows)
        objective.check_indices(samples)
        return objective

    def check_indices(self, samples: OracleData) -> None:
        """Check data to be bound: what is used as an index must be in the range of its axis."""
        for k, integers in self.functions.integers:
            integers.check(samples.arrays[k])

    def copy(self) -> Objective:
        """The same objective in a builder of its own, to which inputs may be added."""
        return Objective(self.functions, self.spec, self._rows)

    def gradient(self, weighted: bool) -> list[int]:
        """The gradient's nodes, one for each parameter."""
        if weighted not in self._grads:
            self._grads[weighted] = self.builder.grad(self.totals[weighted], self.params)
        return self._grads[weighted]

    def graph(self, kind: str, weighted: bool) -> _core.Graph:
        """Cut out the graph of "value", "grad" or "value_and_grad"."""
        outputs: list[int] = []
        names: list[str] = []
        if kind != "grad":
            outputs.append(self.totals[weighted])
            names.append("value")
        if kind != "value":
            outputs += self.gradient(weighted)
            names += [f"d/d {path}" for path in self.spec.paths]
        return self.builder.build(outputs, names)

    def evaluator(
        self,
        kind: str,
        weighted: bool,
        samples: OracleData,
        x_shape: tuple[int, ...],
        threads: int,
    ) -> _core.Evaluator:
        """Compile `graph` and bind it to the data."""
        roles, dense, csr = self.sources(samples)
        outputs = [(0, 0)] if kind != "grad" else []
        if kind != "value":
            outputs += [(1, offset) for offset in self.spec.offsets]
        return _core.Evaluator(
            self.graph(kind, weighted), roles, outputs, x_shape, dense, csr, samples.n, threads
        )

    def sources(
        self, samples: OracleData
    ) -> tuple[list[tuple[str, int, int]], list[Array], list[CsrParts]]:
        """Where the inputs of a graph come from: their roles, and dense and CSR data."""
        roles = [("vector", 0, offset) for offset in self.spec.offsets]
        dense: list[Array] = []
        csr: list[CsrParts] = []
        for array in samples.arrays:
            if is_sparse(array):
                roles.append(("csr", len(csr), 0))
                csr.append(
                    (
                        array.data,
                        np.ascontiguousarray(array.indices, np.int32),
                        np.ascontiguousarray(array.indptr, np.int64),
                        samples.sliced.of(array),
                    )
                )
            else:
                roles.append(("dense", len(dense), 0))
                dense.append(array)
        if samples.arrays:
            roles += [("scale", 0, 0), ("weight", 0, 0)]
        return roles, dense, csr


def _call(trace: Trace, function: Loss, params: Any, *rows: Any) -> Tracer:
    """Trace the loss or the regularizer; a mistake in how it is called is said as one."""
    try:
        inspect.signature(function).bind(params, *rows)
    except ValueError:  # a callable that does not tell
        pass
    except TypeError as error:
        n = len(rows)
        data = f" and a row of data in {n} argument{'s' * (n > 1)}" if n else " alone"
        raise TypeError(
            f"{definition(function)} cannot be called with x0{data}: {error}. Instead: "
            "loss(x, *row), with data=(A, y) for loss(x, a, y), and regularizer(x)."
        ) from None
    try:
        return trace.call(function, params, *rows)
    except TypeError as error:
        plain = isinstance(params, list | tuple) and all(
            isinstance(part, Tracer) and part.shape == () for part in params
        )
        if not plain or type(error) not in (TypeError, TraceError):
            raise
        raise type(error)(
            f"{error} (x0 is a {type(params).__name__} of {len(params)} numbers, and so is the "
            "first argument; np.array(x0) makes a vector of it.)"
        ) from error


class Parts(NamedTuple):
    """All that an oracle is made of: no program, no thread, no scratch memory.

    Attributes
    ----------
    functions : Functions
        Loss and regularizer.
    spec : TreeSpec
        Of the parameters.
    x0 : ndarray, shape (dim,)
    samples : OracleData
        Without arrays, n = 0, in an oracle that was saved without its data.
    weights : ndarray, shape (n_samples,), or None
    shards : list of int64 arrays
        Each worker's samples.
    threads : int or None
        As they were asked for.
    """

    functions: Functions
    spec: TreeSpec
    x0: Array
    samples: OracleData
    weights: Array | None
    shards: list[NDArray[np.int64]]
    threads: int | None
