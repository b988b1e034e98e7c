"""Jacobians as sparse matrices: a few products instead of a column, or a line, for each entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from buropt.autodiff import jvp, vjp
from buropt.scipy.structure import Marks, jacobian_structure


class SparseJacobian:
    """The Jacobian of a function of (n,) with a result (m,), as a CSR array of exact values.

    Columns that share no row of the structure come from one product with a sum of unit vectors, and
    likewise rows; it is columns or rows, whichever fall into fewer groups.

    Attributes
    ----------
    structure : csr_array, shape (m, n)
    n_products : int
        Products for one Jacobian.
    """

    def __init__(self, function: Callable[..., Any], n: int, args: tuple[Any, ...] = ()) -> None:
        self.structure = jacobian_structure(lambda x: function(x, *args), n)
        columns, rows = grouped(self.structure), grouped(sp.csr_array(self.structure.T))
        self._by_columns = columns.max(initial=-1) <= rows.max(initial=-1)
        self._groups = columns if self._by_columns else rows
        self.n_products = int(self._groups.max(initial=-1)) + 1
        entries = self.structure.tocoo()
        self._rows, self._columns = entries.row, entries.col
        self._seeds = 1.0 * (np.arange(self.n_products)[:, None] == self._groups)
        self._args = args
        fixed = _fixed(function, args)
        self._forward, self._reverse = jvp(fixed), vjp(fixed)

    def __call__(self, x: NDArray[Any]) -> Marks:
        """The Jacobian at x, (m, n)."""
        seeds = self._seeds.astype(x.dtype)
        if self._by_columns:
            products = [self._forward((x,), (seed,))[1] for seed in seeds]
            group, place = self._groups[self._columns], self._rows
        else:
            _, pull = self._reverse(x)
            products = [pull(seed)[0] for seed in seeds]
            group, place = self._groups[self._rows], self._columns
        compressed = np.asarray(products, np.float64).reshape(len(seeds), -1)
        values = compressed[group, place]
        return sp.csr_array((values, (self._rows, self._columns)), shape=self.structure.shape)


def _fixed(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[Any], Any]:
    def of_x(x: Any) -> Any:
        return function(x, *args)

    of_x.__wrapped__ = function  # type: ignore[attr-defined]  # messages name the user's function
    return of_x


def grouped(structure: Marks) -> NDArray[np.int64]:
    """A group for each column, (n,), such that columns of one group share no row.

    Greedy, the columns with the most entries first.
    """
    rows = sp.csr_array(structure)
    columns = sp.csc_array(structure)
    n = columns.shape[1]
    groups = np.full(n, -1)
    for k in np.argsort(-np.diff(columns.indptr), kind="stable"):
        touched = columns.indices[columns.indptr[k] : columns.indptr[k + 1]]
        beside = [rows.indices[rows.indptr[i] : rows.indptr[i + 1]] for i in touched]
        taken = set(groups[np.concatenate(beside)].tolist()) if beside else set()
        groups[k] = next(group for group in range(n + 1) if group not in taken)
    return groups
