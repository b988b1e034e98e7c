"""Estimates of the workers' Hessians, which learn from compressed differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt.compressors import BlockTopK, Compressor, RandK, RandSeqK, TopK
from buropt.compressors.symmetric import for_triangles
from buropt.optim.base import Array, mean
from buropt.triangle import triangle_size

if TYPE_CHECKING:
    from buropt.problems.base import Index, Problem
    from buropt.random import Key


class _Undo(NamedTuple):
    """What a version of the estimates differs in from the next one."""

    newer: Estimates
    workers: Index
    indices: NDArray[np.uint32]  # (workers, kept)
    replaced: Array  # (workers, kept)


class Learning(NamedTuple):
    """What `Estimates.learned` gives."""

    H_i: Estimates
    H: Array
    before: Array
    after: Array


class Estimates:
    """The H_i of all workers, as triangles (n, d(d+1)/2).

    They are many numbers, and a round changes few of them. So the newest version holds the memory,
    and every older one only what has changed since; whoever asks an old version for its numbers
    gets a copy.
    """

    def __init__(self, rows: Array) -> None:
        self._rows: Array | None = rows
        self._undo: _Undo | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.rows(), dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return Estimates, (self.rows(),)

    def rows(self) -> Array:
        """The triangles (n, d(d+1)/2); not to be written to."""
        undone = []
        version = self
        while version._undo is not None:
            undone.append(version._undo)
            version = version._undo.newer
        assert version._rows is not None
        if version is not self:
            rows = version._rows.copy()
            for undo in reversed(undone):
                rows[undo.workers[:, None], undo.indices] = undo.replaced
            self._rows, self._undo = rows, None
        assert self._rows is not None
        return self._rows

    def learned(
        self,
        problem: Problem,
        x: Array,
        H: Array,
        compressor: Compressor,
        alpha: float,
        key: Key,
        workers: Index | None = None,
    ) -> Learning:
        """H_i + alpha C(hess f_i(x) - H_i), for all workers or some, each sending its message.

        Parameters
        ----------
        H : ndarray, shape (d(d+1)/2,)
            The mean of the estimates, which the server keeps: it grows by the mean message.

        Returns
        -------
        H_i : Estimates
        H : ndarray, shape (d(d+1)/2,)
        before, after : ndarray, shape (n,) or (len(workers),)
            |hess f_i(x) - H_i|_F of these workers, with the old and with the new estimates.
        """
        rows = self.rows()
        chosen = np.arange(problem.n_workers) if workers is None else workers
        compressor = for_triangles(compressor)
        if isinstance(compressor, (TopK, RandK, RandSeqK, BlockTopK)):  # k entries of any vector
            newer, mean_after = Estimates(rows), H.copy()
            learned = problem.learn_hessians(x, compressor, alpha, rows, mean_after, key, chosen)
            self._rows = None
            self._undo = _Undo(newer, chosen, learned.indices, learned.replaced)
            return Learning(newer, mean_after, learned.norms, learned.errors)
        differences = np.zeros_like(rows)
        differences[chosen] = problem.worker_triangles(x, chosen) - rows[chosen]
        sent = alpha * problem.send(compressor, differences, key, workers)
        before, after = norms(differences[chosen]), norms((differences - sent)[chosen])
        return Learning(Estimates(rows + sent), H + mean(sent), before, after)


def first_estimates(problem: Problem, x0: Array, exact: bool) -> tuple[Estimates, Array]:
    """The Hessians at x0, sent as they are, or zeros; and their mean."""
    size = triangle_size(problem.dim)
    if not exact:
        return Estimates(np.zeros((problem.n_workers, size), x0.dtype)), np.zeros(size, x0.dtype)
    problem.send_entries(size)
    rows = problem.worker_triangles(x0)
    return Estimates(rows), mean(rows)


def norms(rows: Array) -> Array:
    """Euclidean norms of rows."""
    squares: Array = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return squares
