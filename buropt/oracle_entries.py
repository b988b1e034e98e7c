"""`OracleEntries`: some entries of the workers' gradients, for messages that carry no others.

Of a generalized linear model over sparse rows the slopes phi'_j of all samples are known after one
pass over the rows, or over the few different pieces that rows of categories consist of. An entry of
a worker's gradient is then a sum over one column. The slopes of the last two points are kept, so
that a difference of gradients costs one pass.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from buropt import _core
from buropt.oracle.hessians import ONE_SAMPLE, OracleHessians
from buropt.oracle.objective import Array


class _Slopes(NamedTuple):
    """What the entries at a point are made of."""

    point: bytes
    slopes: Array  # (n_samples,)
    penalty: Array | None  # the regularizer's gradient, (dim,)


class _Memory:
    """The last two points, and arrays (n_samples,) that are written to again and again.

    Fresh ones would cost as much as what is computed: their pages have to be faulted in.
    """

    def __init__(self, n_samples: int, dtype: np.dtype[Any]) -> None:
        self.lock = threading.Lock()
        self.known: list[_Slopes] = []
        self.products = np.empty(n_samples, dtype)
        self.spare = [np.empty(n_samples, dtype) for _ in range(2)]


class OracleEntries(OracleHessians):
    """The part of `Oracle` that knows entries of the workers' gradients."""

    @property
    def has_quick_entries(self) -> bool:
        """Whether some entries of the workers' gradients cost less than all of them."""
        model = self._linear_model
        return model is not None and model.is_sparse

    def worker_grad_entries(
        self, x: ArrayLike, starts: ArrayLike, indices: ArrayLike, y: ArrayLike | None = None
    ) -> Array:
        """Entries of all workers' gradients at x, or of their differences to those at y.

        Parameters
        ----------
        x, y : array, shape (dim,)
        starts : integer array, shape (n_workers + 1,)
        indices : integer array, shape (total,)
            Worker i gives the entries ``indices[starts[i] : starts[i + 1]]``.

        Returns
        -------
        ndarray, shape (total,)

        Raises
        ------
        ValueError, TypeError, IndexError
            As `worker_grads` does, if starts do not ascend from 0 to total, and for entries that do
            not exist; if the oracle does not have quick entries.
        """
        if not self.has_quick_entries:
            raise ValueError(
                "worker_grad_entries needs a loss of a @ x with a sparse row a. Instead: pick from "
                "worker_grads(x)"
            )
        first = np.ascontiguousarray(starts, np.int64)
        places = np.ascontiguousarray(indices, np.int64)
        result: Array = np.empty(len(places), self.dtype)
        share = len(self._shards) / self.n_samples
        with self._memory.lock:
            before = None if y is None else self._slopes_at(y)
            now = self._slopes_at(x)
            minus = None if before is None else before.slopes
            self._entries.entries(first, places, now.slopes, minus, share, result)
        if now.penalty is not None:
            penalty = now.penalty
            if before is not None and before.penalty is not None:
                penalty = penalty - before.penalty
            result += penalty[places]
        return result

    def _slopes_at(self, x: ArrayLike) -> _Slopes:
        """Valid until the next but one is asked for."""
        at, _ = self._vector(x, "x")
        at = np.ascontiguousarray(at, self.dtype)
        point, memory = at.tobytes(), self._memory
        for k, known in enumerate(memory.known):
            if known.point == point:
                memory.known.append(memory.known.pop(k))
                return known
        model, products = self._linear_model, None
        assert model is not None
        if self._entries.has_patterns:
            products = memory.products
            self._entries.products(at, products)
        if not memory.spare:
            memory.spare.append(memory.known.pop(0).slopes)
        slopes = model.slopes(at, products, out=memory.spare.pop())
        weights = self._weights_for(None, None)
        if weights is not None:
            slopes *= np.asarray(weights)
        penalty = None
        if self._objective.penalty is not None:
            penalty = self._ask(self._queries.penalty_gradient(), [at], ONE_SAMPLE, None)
        memory.known.append(_Slopes(point, slopes, penalty))
        return memory.known[-1]

    @cached_property
    def _memory(self) -> _Memory:
        return _Memory(self.n_samples, self.dtype)

    @cached_property
    def _entries(self) -> _core.WorkerEntries:
        assert self._linear_model is not None
        _, csr = self._linear_model.features
        return _core.WorkerEntries(
            self.dtype.name, self.dim, self.n_samples, csr, self._shards, self.threads
        )
