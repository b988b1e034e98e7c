"""PowerSGD: a projection of low rank, by one power step."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.lowrank import LowRank


@dataclass(frozen=True)
class PowerSGD(LowRank):
    """The vector taken for a matrix M and projected: P = orthonormal basis of M Q0, Q = M'P.

    C(x) = P Q' = P P'M, see `LowRank`. Far cheaper than `RankR`. Compressors have no state, so Q0
    is random in every round, where the paper starts from the last round's Q. For random entries the
    contraction can be proved: the projection keeps at least ||M Q1||^2, Q1 an orthonormal basis of
    Q0, and E Q1 Q1' = (R/c) I, because changing signs or the order of the rows of Q0 changes
    nothing. It is exact where the rank of M is at most R.

    Notes
    -----
    Class: alpha = R/min(a, c).
    Bits: b R (a + c).
    Source: arXiv:1905.13727; alpha is derived here.
    """

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.power_sgd(self.rank, self.rows or 0)
