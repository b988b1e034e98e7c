"""`LinearModel`: what an oracle knows of a loss phi(a_j'x, y_j) beside its value and gradient.

One number a sample says everything about the sample's derivative of each order: the slope phi'_j,
with gradient phi'_j a_j, and the curvature phi''_j, with Hessian phi''_j a_j a_j'.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from buropt import _core
from buropt.oracle.data import OracleData
from buropt.oracle.objective import Array, Objective


class LinearModel:
    """Programs for the derivatives of phi at all samples.

    Attributes
    ----------
    features : (list, list)
        The rows a_j, as one dense array or one CSR matrix (values, columns, row starts).
    rows : ndarray or CSR array, shape (n_samples, dim)
        The same as it was given.
    is_sparse : bool
        Which of the two they are.
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
        self.is_sparse = not dense
        self.rows = only.arrays[0]

    @classmethod
    def of(cls, objective: Objective, samples: OracleData, threads: int) -> LinearModel | None:
        """None if the loss depends on the parameters in another way."""
        if len(objective.spec.offsets) != 1 or samples.n == 0:
            return None
        loss = _core.linear_loss(objective.functions.graph)
        return None if loss is None else cls(loss, objective, samples, threads)

    def slopes(self, x: Array, products: Array | None = None, out: Array | None = None) -> Array:
        """phi'(a_j'x, y_j) of all samples, shape (n_samples,).

        `products`, the a_j'x, are used in place of x where they are known.
        """
        if products is None:
            return _first(self._slopes([x], None, None, 1.0, [out]))
        return _first(self._slopes_of_products([products], None, None, 1.0, [out]))

    def curvatures(self, x: Array) -> Array:
        """phi''(a_j'x, y_j) of all samples, shape (n_samples,)."""
        return _first(self._curvatures([x], None, None, 1.0, [None]))

    @cached_property
    def _slopes(self) -> _core.Query:
        return self._compile(self._slope, True)

    @cached_property
    def _slopes_of_products(self) -> _core.Query:
        return self._compile(self._slope, False)

    @cached_property
    def _curvatures(self) -> _core.Query:
        alone = _core.Builder(self._objective.builder.dtype)
        z = alone.input("z", ())
        others = [alone.input(f"y[{k}]", ()) for k in self._others]
        (slope,) = alone.add_graph(self._slope, [z, *others])
        return self._compile(alone.build(alone.grad(slope, [z]), ["curvature"]), True)

    def _compile(self, function: _core.Graph, of_x: bool) -> _core.Query:
        """A function of (a_j'x, y_j) for each sample, of x or of the products."""
        objective = self._objective.copy()
        builder, data = objective.builder, objective.data
        roles, dense, csr = objective.sources(self._samples)
        if of_x:
            argument: tuple[str, tuple[int, ...], bool] = ("x", (objective.spec.dim,), False)
            product = builder.emit("matmul", [data[self._row - 1], objective.params[0]])
        else:
            argument = ("z", (), True)
            product = builder.input("z", (), True)
            roles.append(("rows", 0, 0))
        inputs = [product, *(data[k - 1] for k in self._others)]
        (of_samples,) = builder.add_graph(function, inputs)
        return _core.Query(
            builder.build([builder.emit("to_batched", [of_samples])], ["out"]),
            [argument],
            [("out", (), True)],
            roles,
            [(0, 0)],
            dense,
            csr,
            self._samples.n,
            self._threads,
        )


def _first(results: Any) -> Array:
    array: Array = results[0]
    return array
