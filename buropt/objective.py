"""`Objective`: the traced loss and regularizer, and the graphs and programs cut from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from buropt import _core
from buropt.oracle_data import OracleData
from buropt.trace import DisconnectedInputWarning, Trace
from buropt.trace.errors import warn
from buropt.trace.kinds import Kind
from buropt.tree import TreeSpec

Array = NDArray[Any]
Loss = Callable[..., Any]


class Objective:
    """The traced objective and the graphs cut from it."""

    def __init__(
        self,
        loss: Loss,
        regularizer: Callable[[Any], Any] | None,
        spec: TreeSpec,
        samples: list[tuple[bool, tuple[int, ...], Kind]],
    ) -> None:
        self._spec = spec
        self._samples = samples
        with Trace(spec.dtype) as trace:
            self._builder = trace.builder
            leaves = [
                trace.input(path, shape)
                for path, shape in zip(spec.paths, spec.shapes, strict=True)
            ]
            self._params = [leaf.node for leaf in leaves]
            rows = [
                trace.csr_input(f"data[{k}]", shape[0])
                if is_csr
                else trace.input(f"data[{k}]", shape, batched=True, kind=kind)
                for k, (is_csr, shape, kind) in enumerate(samples)
            ]
            params = spec.structure.unflatten(leaves)
            value = trace.call(loss, params, *rows)
            penalty = trace.call(regularizer, params) if regularizer is not None else None
        emit = self._builder.emit
        if samples:
            scale = self._builder.input("scale", ())
            weight = self._builder.input("weight", (), batched=True)
            self._totals = {}
            per_sample = emit("to_batched", [value.node])
            for weighted in (False, True):
                term = emit("multiply", [weight, per_sample]) if weighted else per_sample
                self._totals[weighted] = emit("multiply", [scale, emit("batch_sum", [term])])
        else:
            self._totals = {False: value.node}
        if penalty is not None:
            self._totals = {
                weighted: emit("add", [total, penalty.node])
                for weighted, total in self._totals.items()
            }
        self._grads: dict[bool, list[int]] = {}
        self._warn_disconnected()

    def _warn_disconnected(self) -> None:
        used = self._builder.depends_on(self._totals[False], self._params)
        unused = [path for path, is_used in zip(self._spec.paths, used, strict=True) if not is_used]
        if unused:
            warn(
                f"the objective does not depend on {', '.join(unused)}; the gradient there is zero",
                DisconnectedInputWarning,
            )

    def graph(self, kind: str, weighted: bool) -> _core.Graph:
        """Cut out the graph of "value", "grad" or "value_and_grad"."""
        outputs: list[int] = []
        names: list[str] = []
        if kind != "grad":
            outputs.append(self._totals[weighted])
            names.append("value")
        if kind != "value":
            if weighted not in self._grads:
                self._grads[weighted] = self._builder.grad(self._totals[weighted], self._params)
            outputs += self._grads[weighted]
            names += [f"d/d {path}" for path in self._spec.paths]
        return self._builder.build(outputs, names)

    def evaluator(
        self,
        kind: str,
        weighted: bool,
        samples: OracleData,
        x_shape: tuple[int, ...],
        threads: int,
    ) -> _core.Evaluator:
        """Compile `graph` and bind it to the data."""
        offsets = np.cumsum([0, *(int(np.prod(shape)) for shape in self._spec.shapes)]).tolist()
        roles = [("vector", 0, offset) for offset in offsets[:-1]]
        dense: list[Array] = []
        csr: list[tuple[Array, Array, Array]] = []
        for array in samples.arrays:
            if sp.issparse(array):
                roles.append(("csr", len(csr), 0))
                csr.append(
                    (
                        array.data,
                        np.ascontiguousarray(array.indices, np.int32),
                        np.ascontiguousarray(array.indptr, np.int64),
                    )
                )
            else:
                roles.append(("dense", len(dense), 0))
                dense.append(array)
        if samples.arrays:
            roles += [("scale", 0, 0), ("weight", 0, 0)]
        outputs = [(0, 0)] if kind != "grad" else []
        if kind != "value":
            outputs += [(1, offset) for offset in offsets[:-1]]
        return _core.Evaluator(
            self.graph(kind, weighted), roles, outputs, x_shape, dense, csr, samples.n, threads
        )
