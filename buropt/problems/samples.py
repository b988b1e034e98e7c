"""What the factories of problems over samples do alike: check, prepare, compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buropt import oracle as oracles
from buropt.data.dataset import Array, is_sparse
from buropt.oracle import Oracle
from buropt.oracle.data import check_real, read_csr, read_shards
from buropt.tree import check_plain

Split: TypeAlias = int | Sequence[NDArray[np.integer[Any]]] | None
"""None: one worker. A number: contiguous blocks. Index arrays: as `buropt.data` makes them."""


class Samples(NamedTuple):
    """Checked data and shards."""

    A: Any  # as given: ndarray or CSR array, (n_samples, dim)
    y: Array  # (n_samples,)
    A64: Any  # the same in float64, for constants
    shards: list[NDArray[np.int64]]

    def compile(
        self,
        loss: Callable[[Any, Any, Any], Any],
        regularizer: Callable[[Any], Any] | None,
        dtype: str | None,
        threads: int | None,
    ) -> Oracle:
        """Oracle of the mean of loss(x, a_j, y_j) plus the regularizer; starts at 0."""
        return oracles.compile(
            loss,
            np.zeros(self.A.shape[1], dtype or self.A.dtype),
            data=(self.A, self.y),
            regularizer=regularizer,
            threads=threads,
            workers=self.shards,
        )


def prepare(name: str, A: Any, y: Any, split: Split) -> Samples:
    """Check data and split of problem `name`.

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit, a number is not real or not finite, or the split is not a partition.
    """
    check_plain(A, f"{name}: A")
    check_plain(y, f"{name}: y")
    A = read_csr(A, f"{name}: A") if is_sparse(A) else np.asarray(A)
    y = np.asarray(y)
    check_real(A, f"{name}: A")
    check_real(y, f"{name}: y")
    if A.dtype not in (np.float32, np.float64):
        A = A.astype(np.float64)
    if A.ndim != 2 or y.ndim != 1 or A.shape[0] != len(y) or 0 in A.shape:
        raise ValueError(
            f"{name}: A has shape {A.shape} and y has shape {y.shape}; pass samples as rows, "
            "A (n_samples, dim), with one label a row, y (n_samples,)"
        )
    y = y.astype(A.dtype)
    if not (np.isfinite(A.data if is_sparse(A) else A).all() and np.isfinite(y).all()):
        raise ValueError(f"{name}: A or y has nan or inf; drop or replace those samples")
    shards = read_shards(split, len(y), f"{name}: split")
    return Samples(A, y, A.astype(np.float64, copy=False), shards)


def require_signs(name: str, y: Array) -> None:
    """Refuse labels other than -1 and +1: the loss would be wrong without a sign of it."""
    if not np.isin(y, (-1, 1)).all():
        found = ", ".join(f"{label:g}" for label in np.unique(y)[:6])
        raise ValueError(
            f"{name}: labels must be -1 and +1, found {found}; for two classes read the data with "
            'labels="auto" or write np.where(y == ..., 1.0, -1.0), and take one of several against '
            "the rest with positive=..."
        )


def require_weight(name: str, parameter: str, weight: float) -> None:
    """Refuse a regularizer's weight that is negative or not finite."""
    if not 0 <= weight < np.inf:
        raise ValueError(f"{name}: {parameter}={weight} is out of range; write 0 or more")


def ridge(l2: float) -> Callable[[Any], Any] | None:
    """The regularizer (l2/2) |x|^2; None where it would be nothing but work."""
    return (lambda x: 0.5 * l2 * (x @ x)) if l2 > 0 else None
