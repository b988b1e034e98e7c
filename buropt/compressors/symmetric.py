"""Compressors of symmetric matrices, given as triangles (see `buropt.triangle`).

Methods that send Hessians take them in place of the compressors of rectangular matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Biased, CompiledCompressor, Compressor, value_bits
from buropt.compressors.powersgd import PowerSGD
from buropt.compressors.rankr import RankR


def for_triangles(compressor: Compressor) -> Compressor:
    """The compressor that does to a triangle what the given one does to a matrix.

    Others than those of low rank take the entries of the triangle one by one, and are the same.
    """
    if isinstance(compressor, RankR):
        return SymmetricRankR(compressor.rank)
    return SymmetricPowerSGD(compressor.rank) if isinstance(compressor, PowerSGD) else compressor


@dataclass(frozen=True)
class _Symmetric(Biased, CompiledCompressor):
    """A compressor of triangles with d (d + 1) / 2 entries.

    Parameters
    ----------
    rank
        1 to d.
    """

    rank: int

    def alpha(self, d: int) -> float:
        """Return rank / d for d (d + 1) / 2 entries."""
        return self.rank / side(d)


@dataclass(frozen=True)
class SymmetricRankR(_Symmetric):
    """The best approximation of rank R: the R eigenvalues of largest magnitude with their vectors.

    Notes
    -----
    Class: alpha = R/d.
    Bits: (b d + 1) R: a vector sqrt|w| v and the sign of w for each.
    Source: arXiv:2106.02969.
    """

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Return (b d + 1) R for d (d + 1) / 2 entries."""
        return self.rank * (value_bits(dtype) * side(d) + 1)

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.symmetric_rank_r(self.rank)


@dataclass(frozen=True)
class SymmetricPowerSGD(_Symmetric):
    """The symmetric part of what `PowerSGD` makes of the matrix.

    Notes
    -----
    Class: alpha = R/d.
    Bits: 2 b d R.
    Source: arXiv:1905.13727; arXiv:2106.02969.
    """

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Return 2 b d R for d (d + 1) / 2 entries."""
        return 2 * self.rank * value_bits(dtype) * side(d)

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.symmetric_power_sgd(self.rank)


def side(n: int) -> int:
    """The d of n = d (d + 1) / 2."""
    return (math.isqrt(8 * n + 1) - 1) // 2
