"""What compressors share that take the vector for a matrix and send two factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt.compressors.base import Biased, CompiledCompressor, positive, value_bits


@dataclass(frozen=True)
class LowRank(Biased, CompiledCompressor):
    """Sends P (a, rank) and Q (c, rank); the receiver has P Q'.

    The vector fills the a x c matrix row by row, the rest of the last row is 0.

    Parameters
    ----------
    rank
        1 to min(a, c).
    rows
        a; None: ceil(sqrt(d)). c is ceil(d / a).
    """

    rank: int
    rows: int | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "rank", positive(f"{name}.rank", self.rank))
        if self.rows is not None:
            rows = positive(f"{name}.rows", self.rows, upper="2**32 - 1")
            object.__setattr__(self, "rows", rows)

    def alpha(self, d: int) -> float:
        """Return rank / min(a, c)."""
        return self.rank / min(self.shape(d))

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Return b rank (a + c)."""
        return value_bits(dtype) * self.rank * sum(self.shape(d))

    def shape(self, d: int) -> tuple[int, int]:
        """The matrix for d entries, (a, c).

        Raises
        ------
        ValueError
            If it has no such rank.
        """
        self._compiled(d).check(d)
        rows = math.isqrt(d - 1) + 1 if self.rows is None else self.rows
        return rows, -(-d // rows)
