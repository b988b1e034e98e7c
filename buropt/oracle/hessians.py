"""`OracleHessians`: the Hessians of the workers' functions.

Of a generalized linear model, a loss phi(a_j'x, y_j), they are sums of phi''_j a_j a_j', which a
compiled kernel forms from the rows of the data on all threads; any other loss is asked for products
with unit vectors. Many matrices are kept as triangles (see `buropt.triangle`).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buropt import _core
from buropt.oracle.linear_model import LinearModel
from buropt.oracle.objective import Array
from buropt.oracle.queries import ROWS, OracleQueries
from buropt.triangle import matrix, triangle, triangle_size

ONE_SAMPLE = np.zeros(1, np.int64)  # of a program that no sample has a part in


class Learned(NamedTuple):
    """What a round of FedNL did to the estimates of k workers.

    Attributes
    ----------
    indices : ndarray of uint32, shape (k, kept)
        Which entries of its triangle each worker sent, ascending.
    sent : ndarray, shape (k, kept)
        The messages.
    replaced : ndarray, shape (k, kept)
        These entries of the estimates before.
    norms, errors : ndarray, shape (k,)
        Frobenius norms of Hessian minus estimate, before and after.
    """

    indices: NDArray[np.uint32]
    sent: Array
    replaced: Array
    norms: Array
    errors: Array


class OracleHessians(OracleQueries):
    """The part of `Oracle` that knows the workers' Hessians."""

    _fixed_penalty: Array | None = None  # of a regularizer whose Hessian is the same everywhere

    def worker_hvps(self, x: ArrayLike, v: ArrayLike) -> Array:
        """Products of the Hessians of all workers' functions at x with v, (n_workers, dim).

        Their mean over the workers is `hvp`, for any split. Raises as `hvp` does, and a
        ValueError if the oracle has no data.
        """
        return np.stack([self.hvp(x, v, idx, weights) for idx, weights in self._worker_shares()])

    def worker_hessians(self, x: ArrayLike) -> Array:
        """Hessians of all workers' functions at x, (n_workers, dim, dim).

        Their mean over the workers is `hessian`, for any split. Raises as `hessian` does, and a
        ValueError if the oracle has no data.
        """
        return matrix(self.worker_triangles(x), self.dim)

    def worker_triangles(
        self, x: ArrayLike, workers: ArrayLike | None = None, out: Array | None = None
    ) -> Array:
        """The same as upper triangles, (k, dim (dim + 1) / 2), see `buropt.triangle`.

        Parameters
        ----------
        x : array, shape (dim,)
        workers : integer array, shape (k,), optional
            Which workers; all by default.
        out : ndarray, shape (k, dim (dim + 1) / 2), optional
        """
        chosen = self._chosen_workers(workers)
        shape = len(chosen), triangle_size(self.dim)
        result = np.empty(shape, self.dtype) if out is None else out
        weights = self._curvatures(x)
        if weights is not None:
            self._hessians.triangles(weights, self._penalty_triangle(x), chosen, result)
            return result
        shares = list(self._worker_shares())
        for row, i in zip(result, chosen, strict=True):
            row[:] = triangle(self.hessian(x, *shares[i]))
        return result

    def learn_hessians(
        self,
        x: ArrayLike,
        selection: _core.Selector,
        draw: tuple[int, int, int],
        alpha: float,
        estimates: Array,
        mean: Array,
        workers: ArrayLike | None = None,
    ) -> Learned:
        """One round of FedNL on estimates of the workers' Hessians, which change in place.

        Worker i sends C(hess f_i(x) - H_i), and H_i grows by alpha times the message; everything
        as triangles. Of a linear model no Hessian is kept longer than it takes to compare it.

        Parameters
        ----------
        x : array, shape (dim,)
        selection : compiled compressor
            Of those that keep as many entries of every vector.
        draw : (seed, round, purpose)
            Names the draws of the compressor.
        alpha : float
        estimates : ndarray, shape (n_workers, dim (dim + 1) / 2)
            The H_i.
        mean : ndarray, shape (dim (dim + 1) / 2,)
            Their mean.
        workers : integer array, shape (k,), optional
            Distinct workers that take part; all by default.
        """
        chosen = self._chosen_workers(workers)
        size = triangle_size(self.dim)
        shape = (len(chosen), selection.kept(size))
        learned = Learned(
            np.empty(shape, np.uint32),
            np.empty(shape, self.dtype),
            np.empty(shape, self.dtype),
            np.empty(len(chosen), self.dtype),
            np.empty(len(chosen), self.dtype),
        )
        weights, penalty, triangles = self._curvatures(x), None, None
        if weights is None:
            triangles = np.zeros((len(self._shards), size), self.dtype)
            triangles[chosen] = self.worker_triangles(x, chosen)
        else:
            penalty = self._penalty_triangle(x)
        self._hessians.learn(
            selection, *draw, weights, penalty, triangles, chosen, alpha, estimates, mean, *learned
        )
        return learned

    def _chosen_workers(self, workers: ArrayLike | None) -> NDArray[np.int64]:
        self._require_data("worker Hessians need")
        if workers is None:
            return np.arange(len(self._shards))
        return np.ascontiguousarray(workers, np.int64)

    def _curvatures(self, x: ArrayLike) -> Array | None:
        """Factors of a_j a_j' in the Hessian of the sample's worker, (n_samples,); None: no GLM."""
        if self._linear_model is None:
            return None
        at, _ = self._vector(x, "x")
        curvatures = self._linear_model.curvatures(at)
        curvatures *= self._shares
        return curvatures

    @cached_property
    def _linear_model(self) -> LinearModel | None:
        return LinearModel.of(self._objective, self._samples, self.threads)

    @cached_property
    def _shares(self) -> Array:
        """The weight of every sample in its worker's function."""
        shares = np.empty(self.n_samples, self.dtype)
        for samples, weights in self._worker_shares():
            shares[samples] = weights / samples.size
        return shares

    @cached_property
    def _hessians(self) -> _core.WorkerHessians:
        model = self._linear_model
        dense, csr = ([], []) if model is None else model.features
        n = 0 if model is None else self.n_samples
        return _core.WorkerHessians(
            self.dtype.name, self.dim, n, dense, csr, self._shards, self.threads
        )

    def _penalty_triangle(self, x: ArrayLike) -> Array | None:
        """Of the regularizer's Hessian; None if there is no regularizer."""
        if self._objective.penalty is None or self._fixed_penalty is not None:
            return self._fixed_penalty
        at, _ = self._vector(x, "x")
        products = self._queries.penalty_products(ROWS)
        hessian = np.empty((self.dim, self.dim), self.dtype)
        for first in range(0, self.dim, ROWS):
            rows = np.eye(ROWS, self.dim, first, dtype=self.dtype)
            n = min(ROWS, self.dim - first)
            hessian[first : first + n] = self._ask(products, [at, rows], ONE_SAMPLE, None)[:n]
        result = triangle(hessian)
        if self._queries.penalty_is_quadratic:
            self._fixed_penalty = result
        return result
