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
        at, before = self._plain(x, "x"), None if y is None else self._plain(y, "y")
        with self._memory.lock:
            old = None if before is None else self._slopes_at(before)
            new = self._slopes_at(at)
            minus = None if old is None else old.slopes
            self._entries.entries(first, places, new.slopes, minus, self._of_sum, result)
        penalty = _difference(new, old)
        if penalty is not None:
            result += penalty[places]
        return result

    def mean_of_messages(
        self,
        x: Array,
        y: Array,
        selection: _core.Selector,
        draw: tuple[int, int, int],
    ) -> tuple[Array, int]:
        """The mean over the workers of C(grad f_i(x) - grad f_i(y)), (dim,), and all bits sent.

        C keeps entries that it chooses beforehand, and no others are computed. Needs
        `has_quick_entries`.

        Parameters
        ----------
        x, y : ndarray, shape (dim,)
            Contiguous, of the oracle's dtype.
        selection : compiled compressor
            C.
        draw : (seed, round, purpose)
            Names its draws.

        Raises
        ------
        ValueError
            If C looks at the vector, or is for another number of workers.
        """
        mean: Array = np.empty(self.dim, self.dtype)
        with self._memory.lock:
            old, new = self._slopes_at(y), self._slopes_at(x)
            penalty = _difference(new, old)
            bits = self._entries.mean_of_messages(
                selection, *draw, new.slopes, old.slopes, self._of_sum, penalty, mean
            )
        return mean, bits

    def _plain(self, array: ArrayLike, name: str) -> Array:
        return np.ascontiguousarray(self._vector(array, name)[0], self.dtype)

    def _slopes_at(self, at: Array) -> _Slopes:
        """Valid until the next but one is asked for."""
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
    def _of_sum(self) -> float:
        """What a sum over the samples of a worker is multiplied by."""
        return len(self._shards) / self.n_samples

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


def _difference(new: _Slopes, old: _Slopes | None) -> Array | None:
    """Of the regularizer's gradients."""
    if new.penalty is None or old is None or old.penalty is None:
        return new.penalty
    return new.penalty - old.penalty
