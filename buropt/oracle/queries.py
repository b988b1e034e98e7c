"""`OracleQueries`: what an oracle can be asked beside value and gradient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buropt import _core
from buropt.oracle.data import OracleData, csr_array
from buropt.oracle.hessian_products import HessianProducts
from buropt.oracle.objective import Array, Objective
from buropt.oracle.query_programs import QueryPrograms
from buropt.oracle.workers import OracleWorkers
from buropt.tree import check_plain

# Places in a parameter are numbers of the graph's dtype.
_EXACT = {np.dtype(np.float32): 2**24, np.dtype(np.float64): 2**53}
ROWS = 8  # of a Hessian in one pass over the data


class OracleQueries(OracleWorkers):
    """The part of `Oracle` that answers questions about derivatives."""

    threads: int
    _objective: Objective
    _samples: OracleData
    # The last point of a Hessian product, and what the next one there needs.
    _common: tuple[bytes, list[Any]] = b"", []

    @abstractmethod
    def _x_shape(self) -> tuple[int, ...]:
        """The shape of x0, if that is one array."""

    def hvp(
        self,
        x: ArrayLike,
        v: ArrayLike,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """Product of the Hessian of `value` at x with v, shape of `x`.

        One pass over the samples, at the cost of one to three gradients; no matrix is formed. Over
        all samples, the oracle keeps what products at one x have in common (see `hvp_at`), for the
        next one.
        ``scipy.optimize.minimize(oracle.value, x0, jac=oracle.grad, hessp=oracle.hvp)`` works.

        Raises
        ------
        ValueError, TypeError, IndexError
            As `value` does, and if `v` has not the shape of `x`.
        """
        at, shape = self._vector(x, "x")
        along, _ = self._vector(v, "v")
        target = None if out is None else _rows_of(out, shape, 1)
        if idx is None and weights is None and self._products.is_split:
            at = np.asarray(at, self.dtype)
            key = at.tobytes()
            known, common = self._common
            if known != key:
                common = self._products.at(at)
                self._common = key, common
            result = self._products.times(at, common, along, target)
            return out if out is not None else result.reshape(shape)
        weights = self._weights_for(weights, idx)
        query = self._queries.hessian_products(weights is not None, 1)
        result = self._ask(query, [at, along.reshape(1, -1)], idx, weights, target)
        return out if out is not None else result.reshape(shape)

    def hvp_at(self, x: ArrayLike) -> Callable[[ArrayLike], Array]:
        """Products with the Hessian of `value` at x, for many directions v.

        What the directions have in common is computed once, if it is a few numbers a sample, as in
        generalized linear models: a product is then about as cheap as a gradient.

        Parameters
        ----------
        x : array, shape (dim,)

        Returns
        -------
        callable
            ``product(v)`` gives an array of the shape of v: ``hvp(x, v)`` to rounding.
        """
        at, _ = self._vector(x, "x")
        at = np.array(at, self.dtype)
        products = self._products
        if not products.is_split:
            return lambda v: self.hvp(at, v)
        common = products.at(at)

        def product(v: ArrayLike) -> Array:
            along, shape = self._vector(v, "v")
            return products.times(at, common, along).reshape(shape)

        return product

    def hessian(
        self, x: ArrayLike, idx: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> Array:
        """Hessian of `value` at x, shape (dim, dim); raises as `value` does.

        Eight rows come from one pass over the samples.
        """
        at, _ = self._vector(x, "x")
        weights = self._weights_for(weights, idx)
        count = min(ROWS, max(1, self.dim))
        query = self._queries.hessian_products(weights is not None, count)
        hessian = np.empty((self.dim, self.dim), self.dtype)
        for first in range(0, self.dim, count):
            rows = np.eye(count, self.dim, first, dtype=self.dtype)
            n = min(count, self.dim - first)
            hessian[first : first + n] = self._ask(query, [at, rows], idx, weights)[:n]
        return hessian

    def jvp(
        self,
        x: ArrayLike,
        v: ArrayLike,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> float:
        """Derivative of `value` at x along v, which is ``grad(x) @ v``; no gradient is formed."""
        at, _ = self._vector(x, "x")
        along, _ = self._vector(v, "v")
        weights = self._weights_for(weights, idx)
        query = self._queries.slope(weights is not None)
        return cast(float, self._ask(query, [at, along], idx, weights))

    def per_sample_grads(
        self,
        x: ArrayLike,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        out: Array | None = None,
        *,
        sparse: bool = False,
    ) -> Any:
        """Gradients of the samples one by one, shape (n, dim).

        Row j is w_j times the gradient of the loss of sample j plus the gradient of the
        regularizer, so that the mean of the rows is `grad` of the same arguments.

        Parameters
        ----------
        x : array, shape (dim,)
        idx : integer array, shape (n,), optional
            Which samples; all by default.
        weights : array, shape (n,), optional
            The weights w_j of these samples; by default those of the oracle, or 1.
        out : ndarray, shape (n, dim), optional
        sparse : bool
            Give a SciPy CSR array with the entries of the data, and *without* the regularizer's
            gradient. For a loss that depends on x by ``a @ x`` alone, with a from a sparse
            ``data[0]``: a generalized linear model, whose gradients are multiples of the rows.

        Raises
        ------
        ValueError, TypeError, IndexError
            As `value` does; if the oracle has no data; if `sparse` is asked of another loss.
        """
        self._require_data("per_sample_grads needs")
        at, _ = self._vector(x, "x")
        weights = self._weights_for(weights, idx)
        if not sparse:
            query = self._queries.per_sample_grads(weights is not None)
            return self._ask(query, [at], idx, weights, out)
        if out is not None:
            raise TypeError("per_sample_grads: sparse=True has no out=. Instead: use the result.")
        coefficients = self._queries.coefficients(weights is not None)
        if coefficients is None:
            raise ValueError(
                "per_sample_grads: sparse=True needs data[0] to be a sparse matrix and a loss that "
                "depends on x only by a @ x with its row a. Instead: leave sparse out."
            )
        factors = self._ask(coefficients, [at], idx, weights)
        rows = self._samples.arrays[0]
        if idx is not None:
            rows = rows[np.asarray(idx).ravel()]
        values = rows.data * np.repeat(factors, np.diff(rows.indptr))
        return csr_array((values, rows.indices.copy(), rows.indptr.copy()), shape=rows.shape)

    # Tagged values

    def intermediates(
        self,
        x: ArrayLike,
        idx: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Give the values that the loss names by `buropt.tag`, at x.

        Parameters
        ----------
        x : array, shape (dim,)
        idx : integer array, shape (n,), optional
            Which samples; all by default.
        names : list of str, optional
            Which values; all by default. Only what they need is computed.

        Returns
        -------
        dict
            By name an array (n, ...) with a row for each sample; of a value that does not depend
            on the sample just the value. Of the oracle's dtype, int64, or bool.

        Raises
        ------
        ValueError, TypeError, IndexError
            As `value` does, and if a name is unknown.
        """
        kinds = self._objective.functions.tags
        chosen = tuple(kinds) if names is None else tuple(names)
        for name in chosen:
            if name not in kinds:
                known = ", ".join(map(repr, kinds)) or "none"
                raise ValueError(
                    f"there is no intermediate value {name!r}; the loss tags {known}. Name values "
                    'by bo.tag(value, "name") inside of the loss.'
                )
        if not chosen:
            return {}
        at, _ = self._vector(x, "x")
        query = self._queries.intermediates(chosen)
        results = cast("list[Any]", query([at], idx, None, 1.0, [None] * len(chosen)))
        dtypes = {"f": self.dtype, "i": np.dtype(np.int64), "b": np.dtype(bool)}
        return {
            name: np.asarray(result, dtypes[kinds[name]])
            for name, result in zip(chosen, results, strict=True)
        }

    def save_intermediates(
        self,
        path: str | PathLike[str],
        x: ArrayLike,
        idx: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """Save `intermediates` in a file that `buropt.load_arrays` reads."""
        from buropt.saving import save_arrays  # here, since few programs save anything

        save_arrays(path, self.intermediates(x, idx, names))

    def partial_grad(
        self,
        x: ArrayLike,
        coords: ArrayLike,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """Entries of the gradient, ``grad(x, idx, weights)[coords]``, shape (len(coords),).

        Only what they need is computed: of a parameter without coordinates, nothing; of a matrix
        in a product, the lines of its factors. New coordinates need no new program as long as
        about as many of them (up to the next power of two) lie in each parameter.

        Parameters
        ----------
        x : array, shape (dim,)
        coords : integer array, shape (k,)
            Positions in the flat vector, 0 to dim - 1; repeats are allowed.
        idx, weights
            As for `grad`.
        out : ndarray, shape (k,), optional

        Raises
        ------
        ValueError, TypeError, IndexError
            As `grad` does, and for coordinates that do not exist or are no integers.
        """
        at, _ = self._vector(x, "x")
        chosen = self._coordinates(coords)
        weights = self._weights_for(weights, idx)
        offsets = np.asarray(self._objective.spec.offsets)
        owner = np.searchsorted(offsets, chosen, side="right") - 1  # the parameter of each
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner, minlength=len(offsets))
        counts = [0 if size == 0 else 1 << (int(size) - 1).bit_length() for size in sizes]
        ends = np.cumsum(counts)
        # Where each coordinate stands among the places; those beyond the last one are spare.
        starts = ends - counts
        slots = np.concatenate([np.arange(k, k + n) for k, n in zip(starts, sizes, strict=True)])
        within = (chosen - offsets[owner])[order]
        if within.max() >= _EXACT[self.dtype]:
            return np.take(self.grad(x, idx, weights), chosen, out=out)
        places = np.zeros(int(ends[-1]), self.dtype)
        places[slots] = within
        query = self._queries.partial(weights is not None, tuple(counts))
        entries = self._ask(query, [at, places], idx, weights)
        result = np.empty(chosen.size, self.dtype) if out is None else out
        if out is not None and (not isinstance(out, np.ndarray) or out.shape != chosen.shape):
            raise ValueError(f"out must be an array of shape {chosen.shape}")
        result[order] = entries[slots]
        return result

    def _coordinates(self, coords: ArrayLike) -> NDArray[np.int64]:
        chosen = np.asarray(coords)
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise ValueError(
                "coords must be a non-empty 1-D array of integers, got dtype "
                f"{chosen.dtype} and shape {chosen.shape}"
            )
        low, high = int(chosen.min()), int(chosen.max())
        if low < 0 or high >= self.dim:
            raise IndexError(
                f"coords contains {low if low < 0 else high}, but coordinates go from 0 to "
                f"{self.dim - 1}"
            )
        return chosen.astype(np.int64, copy=False)

    # How they are asked

    @cached_property
    def _products(self) -> HessianProducts:
        weights = self._weights_for(None, None)
        chosen = None if weights is None else np.asarray(weights)
        return HessianProducts(self._objective.copy(), self._samples, chosen, self.threads)

    @cached_property
    def _queries(self) -> QueryPrograms:
        return QueryPrograms(self._objective, self._samples, self.threads)

    def _vector(self, array: ArrayLike, name: str) -> tuple[Array, tuple[int, ...]]:
        """A point or direction as a vector (dim,), and the shape in which it came."""
        check_plain(array, name)
        given = np.asarray(array)
        if given.shape not in ((self.dim,), self._x_shape()):
            raise ValueError(f"{name} must have shape ({self.dim},), got {given.shape}")
        return given.reshape(-1), given.shape

    def _ask(
        self,
        query: _core.Query,
        arguments: list[Any],
        idx: ArrayLike | None,
        weights: ArrayLike | None,
        out: NDArray[Any] | None = None,
    ) -> Any:
        count = self.n_samples if idx is None else np.size(idx)
        results = cast("list[Any]", query(arguments, idx, weights, 1 / max(1, count), [out]))
        return results[0]


def _rows_of(out: Any, shape: tuple[int, ...], count: int) -> Any:
    """The caller's array as (count, dim), itself and no copy; the core refuses other arrays."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an array of shape {shape}, got {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out must have shape {shape}, got {out.shape}")
    return out.reshape(count, -1) if out.flags.c_contiguous else out
