"""What the factories of problems over samples check and prepare alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from buropt.data.dataset import Array, is_sparse
from buropt.data.split import Shards, contiguous

Split: TypeAlias = int | Sequence[NDArray[np.integer[Any]]] | None
"""None: one worker. A number: contiguous blocks. Index arrays: as `buropt.data` makes them."""


class Samples(NamedTuple):
    """Checked data and shards."""

    A: Any  # as given: ndarray or CSR array, (n_samples, dim)
    y: Array  # (n_samples,)
    A64: Any  # the same in float64, for constants
    shards: Shards


def prepare(name: str, A: Any, y: Any, split: Split) -> Samples:
    """Check data and split of problem `name`.

    Raises
    ------
    ValueError
        If shapes do not fit, a number is not finite or the split is not a partition.
    """
    A = _canonical(sp.csr_array(A)) if is_sparse(A) else np.asarray(A)
    y = np.asarray(y)
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
    return Samples(A, y, A.astype(np.float64, copy=False), _shards(name, split, len(y)))


def require_signs(name: str, y: Array) -> None:
    """Refuse labels other than -1 and +1: the loss would be wrong without a sign of it."""
    if not np.isin(y, (-1, 1)).all():
        found = ", ".join(f"{label:g}" for label in np.unique(y)[:6])
        raise ValueError(
            f"{name}: labels must be -1 and +1, found {found}; read the data with "
            'labels="auto" (two classes) or take one class against the rest with positive=...'
        )


def _canonical(A: Any) -> Any:
    """Without repeated entries, which would spoil sums over `A.data`; the caller's matrix stays."""
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A


def _shards(name: str, split: Split, n_samples: int) -> Shards:
    if split is None or isinstance(split, (int, np.integer)):
        return contiguous(n_samples, 1 if split is None else int(split))
    shards = [np.asarray(shard, dtype=np.int64) for shard in split]
    together = np.concatenate(shards) if shards else np.zeros(0, np.int64)
    if not np.array_equal(np.sort(together), np.arange(n_samples)):
        raise ValueError(
            f"{name}: the split has to hold each of the {n_samples} samples exactly once, and has "
            f"{len(together)} indices, {len(np.unique(together))} of them distinct; see buropt.data"
        )
    empty = [worker for worker, shard in enumerate(shards) if len(shard) == 0]
    if empty:
        raise ValueError(f"{name}: worker {empty[0]} of the split has no samples; leave it out")
    return shards
