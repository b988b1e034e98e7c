"""Signs times the mean magnitude."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Biased, Quantizer


@dataclass(frozen=True)
class ScaledSign(Biased, Quantizer):
    """Sends the mean magnitude ||x||_1 / d, and the sign of every entry.

    ||C(x) - x||^2 = (1 - a) ||x||^2 with a = ||x||_1^2 / (d ||x||_2^2), which is 1/d in the worst
    case, a vector with one entry, and 1 where all magnitudes are equal.

    Notes
    -----
    Class: alpha = 1/d (tight).
    Bits: b + d.
    Source: arXiv:1901.09847.
    """

    def alpha(self, d: int) -> float:
        """Return 1 / d."""
        return 1 / d

    def width(self, dtype: DTypeLike) -> int:
        return 1

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.scaled_sign()
