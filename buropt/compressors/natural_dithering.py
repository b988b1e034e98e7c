"""Natural dithering: a grid of powers of two on every coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Quantizer, Unbiased, positive

NORMS = {1: _core.Norm.one, 2: _core.Norm.two, math.inf: _core.Norm.inf}


@dataclass(frozen=True)
class NaturalDithering(Unbiased, Quantizer):
    """Rounds |x_j| / ||x||_p at random and without bias to 0, 2^(1 - s), ..., 1/4, 1/2, 1.

    As fine as random dithering with 2^(s - 1) levels near 0, with s levels to tell apart.

    Parameters
    ----------
    levels
        s, 1 to 255.
    p
        Of the norm: 1, 2 or inf.

    Notes
    -----
    Class: omega = 1/8 + u min(1, u), u = d^(1/min(p, 2)) 2^(1 - s).
    Bits: b + (1 + ceil(log2(s + 1))) d.
    Source: arXiv:1905.10988.
    """

    levels: int
    p: float = 2.0

    def __post_init__(self) -> None:
        levels = positive("NaturalDithering.levels", self.levels, 255, "255")
        object.__setattr__(self, "levels", levels)
        if isinstance(self.p, bool) or self.p not in NORMS:
            raise ValueError(f"NaturalDithering.p must be 1, 2 or inf, got {self.p!r}")
        object.__setattr__(self, "p", float(self.p))

    def omega(self, d: int) -> float:
        """Return 1/8 + u min(1, u) with u = d^(1/min(p, 2)) 2^(1 - s)."""
        u = math.pow(d, 1 / min(self.p, 2)) * 2.0 ** (1 - self.levels)
        return 0.125 + u * min(1.0, u)

    def width(self, dtype: DTypeLike) -> int:
        return 1 + self.levels.bit_length()

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.natural_dithering(self.levels, NORMS[self.p])
