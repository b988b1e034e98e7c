"""Random dithering (QSGD): a uniform grid on every coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Quantizer, Unbiased, positive

MOST_LEVELS = 2**30


@dataclass(frozen=True)
class RandomDithering(Unbiased, Quantizer):
    """Rounds |x_j| / ||x|| to multiples of 1 / levels at random and without bias: QSGD.

    With one level E ||C(x)||^2 = ||x||_2 ||x||_1, so omega = sqrt(d) - 1 is attained where all
    magnitudes are equal; with s levels omega <= min(d / s^2, sqrt(d) / s).

    Parameters
    ----------
    levels
        s, 1 or more.

    Notes
    -----
    Class: omega = min(d/s^2, sqrt(d)/s); sqrt(d) - 1 for s = 1 (tight).
    Bits: b + (1 + ceil(log2(s + 1))) d.
    Source: arXiv:1610.02132.
    """

    levels: int

    def __post_init__(self) -> None:
        levels = positive("RandomDithering.levels", self.levels, MOST_LEVELS, "2**30")
        object.__setattr__(self, "levels", levels)

    def omega(self, d: int) -> float:
        """Return min(d / s^2, sqrt(d) / s), or sqrt(d) - 1 for s = 1."""
        if self.levels == 1:
            return math.sqrt(d) - 1
        return min(d / self.levels**2, math.sqrt(d) / self.levels)

    def width(self, dtype: DTypeLike) -> int:
        return 1 + self.levels.bit_length()

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.random_dithering(self.levels)
