"""`LinearModel`: what an oracle knows of a loss phi(a_j'x, y_j) beside its value and gradient.

One number a sample says everything about the sample's derivative of each order: the slope phi'_j,
with gradient phi'_j a_j, and the curvature phi''_j, with Hessian phi''_j a_j a_j'.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from buropt import _core
from buropt.objective import Array, Objective
from buropt.oracle_data import OracleData


class LinearModel:
    """Programs for the derivatives of phi at all samples.

    Attributes
    ----------
    features : (list, list)
        The rows a_j, as one dense array or one CSR matrix (values, columns, row starts).
    """

    def __init__(
        self,
        loss: tuple[int, list[int], _core.Graph],
        objective: Objective,
        samples: OracleData,
        threads: int,
    ) -> None:
        self._row, self._others, self._slope = loss
        self._objective = objective
        self._samples = samples
        self._threads = threads
        only = samples._replace(arrays=(samples.arrays[self._row - 1],))
        _, dense, csr = objective.sources(only)
        self.features = dense, csr

    @classmethod
    def of(cls, objective: Objective, samples: OracleData, threads: int) -> LinearModel | None:
        """None if the loss depends on the parameters in another way."""
        if len(objective.spec.offsets) != 1 or samples.n == 0:
            return None
        loss = _core.linear_loss(objective.functions.graph)
        return None if loss is None else cls(loss, objective, samples, threads)

    def curvatures(self, x: Array) -> Array:
        """phi''(a_j'x, y_j) of all samples, shape (n_samples,)."""
        results: Any = self._curvatures([x], None, None, 1.0, [None])
        curvatures: Array = results[0]
        return curvatures

    @cached_property
    def _curvatures(self) -> _core.Query:
        alone = _core.Builder(self._objective.builder.dtype)
        z = alone.input("z", ())
        others = [alone.input(f"y[{k}]", ()) for k in self._others]
        (slope,) = alone.add_graph(self._slope, [z, *others])
        curvature = alone.build(alone.grad(slope, [z]), ["curvature"])

        objective = self._objective.copy()
        builder, data = objective.builder, objective.data
        product = builder.emit("matmul", [data[self._row - 1], objective.params[0]])
        inputs = [product, *(data[k - 1] for k in self._others)]
        (of_samples,) = builder.add_graph(curvature, inputs)
        graph = builder.build([builder.emit("to_batched", [of_samples])], ["curvatures"])
        roles, dense, csr = objective.sources(self._samples)
        return _core.Query(
            graph,
            [("x", (objective.spec.dim,), False)],
            [("out", (), True)],
            roles,
            [(0, 0)],
            dense,
            csr,
            self._samples.n,
            self._threads,
        )
