"""A table of vectors, one for each sample, that is replaced row by row and never changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Index = NDArray[np.integer[Any]]


class Table:
    """Rows of shape (d,), one a sample, in about sqrt(N) blocks.

    A new table shares with the old one all the blocks that hold no new row, so that a step copies
    O(sqrt(N) d) numbers for each row, not N d, and states stay what they were.

    Parameters
    ----------
    rows : ndarray, shape (N, d)
    """

    def __init__(self, rows: Array) -> None:
        self.shape: tuple[int, ...] = rows.shape
        self.dtype = rows.dtype
        self._height = max(1, math.isqrt(len(rows)))
        self._blocks = tuple(
            rows[first : first + self._height] for first in range(0, len(rows), self._height)
        )

    def __getitem__(self, idx: Index) -> Array:
        """The rows `idx`, shape (len(idx), d)."""
        return np.stack([self._blocks[j // self._height][j % self._height] for j in idx.tolist()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.concatenate(self._blocks).astype(dtype or self.dtype, copy=False)

    def replaced(self, idx: Index, rows: Array) -> Table:
        """The table in which the rows `idx`, distinct numbers, are the given ones."""
        blocks = list(self._blocks)
        fresh: set[int] = set()
        for j, row in zip(idx.tolist(), rows, strict=True):
            block, place = divmod(j, self._height)
            if block not in fresh:
                blocks[block] = blocks[block].copy()
                fresh.add(block)
            blocks[block][place] = row
        new = object.__new__(Table)
        new.shape, new.dtype, new._height = self.shape, self.dtype, self._height
        new._blocks = tuple(blocks)
        return new
