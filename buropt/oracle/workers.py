"""`OracleWorkers`: the gradients of the workers among whom the samples are split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buropt import _core
from buropt.oracle.objective import Array


class OracleWorkers(ABC):
    """The part of `Oracle` that knows of workers."""

    dim: int
    dtype: np.dtype[Any]
    n_samples: int
    _weights: Array | None
    _shards: list[NDArray[np.int64]]

    @abstractmethod
    def grad(
        self,
        x: ArrayLike,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """Gradient of `value` at x, shape of `x`."""

    @abstractmethod
    def _evaluator(self, kind: str, weighted: bool) -> _core.Evaluator:
        """The compiled program of a kind of call."""

    @abstractmethod
    def _weights_for(self, weights: ArrayLike | None, idx: ArrayLike | None) -> ArrayLike | None:
        """The weights of a call: those given, or the oracle's of the picked samples."""

    @property
    def n_workers(self) -> int:
        """Parts of the split of the samples; 1 without data."""
        return max(1, len(self._shards))

    @property
    def shards(self) -> list[NDArray[np.int64]]:
        """The numbers of each worker's samples; not to be written to."""
        return self._shards

    def worker_grads(
        self, x: ArrayLike, idx: ArrayLike | None = None, out: Array | None = None
    ) -> Array:
        """Gradients of all workers' functions at x, shape (n_workers, dim).

        Their mean over the workers is the full gradient, for any split. With `idx`, (n_workers, b),
        each is estimated from samples of the worker, as in `worker_grad_differences`.
        """
        evaluator = self._worker_evaluator("grad")
        gradients: Array = evaluator.evaluate_workers(x, self._own(idx), self._weights, out)
        return gradients

    def worker_values_and_grads(
        self, x: ArrayLike, idx: ArrayLike | None = None, out: Array | None = None
    ) -> tuple[Array, Array]:
        """Values (n_workers,) and gradients (n_workers, dim) of all workers' functions at x.

        `idx` is that of `worker_grads`.
        """
        evaluator = self._worker_evaluator("value_and_grad")
        both: tuple[Array, Array] = evaluator.evaluate_workers(
            x, self._own(idx), self._weights, out
        )
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
        idx = self._own(idx)
        differences: Array = evaluator.evaluate_workers(x, idx, self._weights, out)
        differences -= evaluator.evaluate_workers(y, idx, self._weights, None)
        return differences

    def local_grads(
        self,
        x: ArrayLike,
        workers: ArrayLike | None = None,
        idx: ArrayLike | None = None,
    ) -> Array:
        """Gradients of workers' functions, each at a point of its own.

        Parameters
        ----------
        x : array, shape (k, dim)
            Row r belongs to the r-th of the workers.
        workers : integer array, shape (k,), optional
            All by default.
        idx : integer array, shape (k, b), optional
            Estimate each function from these samples of the worker; all of them by default.

        Returns
        -------
        ndarray, shape (k, dim)

        Raises
        ------
        ValueError, TypeError, IndexError
            As `grad` does, and a ValueError if the oracle has no data.
        """
        self._require_data("worker gradients need")
        points = np.asarray(x)
        chosen = range(len(self._shards)) if workers is None else np.asarray(workers).tolist()
        grads = np.empty((len(chosen), self.dim), self.dtype)
        for row, i in enumerate(chosen):
            samples = self._shards[i] if idx is None else np.asarray(idx)[row]
            grads[row] = self.grad(points[row], samples, self._share(i, samples))
        return grads

    def _worker_evaluator(self, kind: str) -> _core.Evaluator:
        self._require_data("worker gradients need")
        return self._evaluator(kind, self._weights is not None)

    def _require_data(self, what: str) -> None:
        if self.n_samples == 0:
            raise ValueError(f"{what} data, and this oracle was compiled without")

    @cached_property
    def _owner(self) -> NDArray[np.int64]:
        """The worker of each sample."""
        owner = np.empty(self.n_samples, np.int64)
        for i, shard in enumerate(self._shards):
            owner[shard] = i
        return owner

    def _own(self, idx: ArrayLike | None) -> NDArray[Any] | None:
        """`idx` as an array; its shape and dtype are checked by the core, its samples here."""
        if idx is None:
            return None
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

    def _worker_shares(self) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """Each worker's samples, and weights with which their mean is the worker's function."""
        self._require_data("worker Hessians need")
        for i, shard in enumerate(self._shards):
            yield shard, self._share(i, shard)

    def _share(self, i: int, samples: NDArray[np.int64]) -> Array:
        """Weights with which the mean over samples of worker i estimates its function."""
        factor = self._shards[i].size * len(self._shards) / self.n_samples
        share = np.full(samples.size, factor, self.dtype)
        own = self._weights_for(None, samples)
        return share if own is None else share * np.asarray(own)
