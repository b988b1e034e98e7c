"""RankR: the nearest matrix of low rank."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.lowrank import LowRank


@dataclass(frozen=True)
class RankR(LowRank):
    """The best approximation of rank R of the vector taken for a matrix, see `LowRank`.

    R singular values and vectors, the values folded into one factor. ||C(x) - x||^2 <= (1 -
    R/min(a, c)) ||x||^2, with equality where all singular values are equal.

    Notes
    -----
    Class: alpha = R/min(a, c).
    Bits: b R (a + c).
    Source: arXiv:2106.02969.
    """

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.rank_r(self.rank, self.rows or 0)
