"""`OracleWorkers`: the gradients of the workers among whom the samples are split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buropt import _core
from buropt.oracle.objective import Array


class OracleWorkers(ABC):
    """The part of `Oracle` that knows of workers."""

    n_samples: int
    _weights: Array | None
    _shards: list[NDArray[np.int64]]

    @abstractmethod
    def _evaluator(self, kind: str, weighted: bool) -> _core.Evaluator:
        """The compiled program of a kind of call."""

    @property
    def n_workers(self) -> int:
        """Parts of the split of the samples; 1 without data."""
        return max(1, len(self._shards))

    @property
    def shards(self) -> list[NDArray[np.int64]]:
        """The numbers of each worker's samples; not to be written to."""
        return self._shards

    def worker_grads(
        self, x: ArrayLike, out: Array | None = None, *, idx: ArrayLike | None = None
    ) -> Array:
        """Gradients of all workers' functions at x, shape (n_workers, dim).

        Their mean over the workers is the full gradient, for any split. With `idx`, (n_workers, b),
        each is estimated from samples of the worker, as in `worker_grad_differences`.
        """
        evaluator = self._worker_evaluator("grad")
        if idx is not None:
            idx = self._own_samples(idx)
        gradients: Array = evaluator.evaluate_workers(x, idx, self._weights, out)
        return gradients

    def worker_values_and_grads(
        self, x: ArrayLike, out: Array | None = None
    ) -> tuple[Array, Array]:
        """Values (n_workers,) and gradients (n_workers, dim) of all workers' functions at x."""
        evaluator = self._worker_evaluator("value_and_grad")
        both: tuple[Array, Array] = evaluator.evaluate_workers(x, None, self._weights, out)
        return both

    def worker_grad_differences(
        self,
        x: ArrayLike,
        y: ArrayLike,
        idx: ArrayLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """Give all workers' grad f_i(x) - grad f_i(y) on the same samples, (n_workers, dim).

        Parameters
        ----------
        x, y : array, shape (dim,)
        idx : integer array, shape (n_workers, b), optional
            Row i picks samples of worker i by their numbers in the data; f_i is then estimated
            without bias from those b samples. All of the worker's samples by default.
        out : ndarray, shape (n_workers, dim), optional
            Written to before `y` is read, so it must not share memory with x or y.

        Raises
        ------
        ValueError, TypeError, IndexError
            If an argument has a wrong shape or type, `out` overlaps with x or y, or `idx` lists a
            sample that does not exist or belongs to another worker.
        """
        evaluator = self._worker_evaluator("grad")
        for name, point in (("x", x), ("y", y)):
            if isinstance(out, np.ndarray) and np.shares_memory(out, point):
                raise ValueError(f"out must not share memory with {name}; pass another array")
        if idx is not None:
            idx = self._own_samples(idx)
        differences: Array = evaluator.evaluate_workers(x, idx, self._weights, out)
        differences -= evaluator.evaluate_workers(y, idx, self._weights, None)
        return differences

    def _worker_evaluator(self, kind: str) -> _core.Evaluator:
        if self.n_samples == 0:
            raise ValueError("worker gradients need data, and this oracle was compiled without")
        return self._evaluator(kind, self._weights is not None)

    @cached_property
    def _owner(self) -> NDArray[np.int64]:
        """The worker of each sample."""
        owner = np.empty(self.n_samples, np.int64)
        for i, shard in enumerate(self._shards):
            owner[shard] = i
        return owner

    def _own_samples(self, idx: ArrayLike) -> NDArray[Any]:
        """`idx` as an array; its shape and dtype are checked by the core, its samples here."""
        rows = np.asarray(idx)
        if rows.ndim != 2 or len(rows) != self.n_workers or not rows.size:
            return rows
        if rows.dtype.kind not in "iu":
            return rows
        low, high = int(rows.min()), int(rows.max())
        if low < 0 or high >= self.n_samples:
            raise IndexError(
                f"idx contains {low if low < 0 else high}, but sample numbers go from 0 to "
                f"{self.n_samples - 1}"
            )
        foreign = self._owner[rows] != np.arange(self.n_workers)[:, None]
        if foreign.any():
            i = int(foreign.any(axis=1).argmax())
            raise IndexError(
                f"idx[{i}] contains sample {rows[i][foreign[i]].min()}, which worker {i} does not "
                "have"
            )
        return rows
