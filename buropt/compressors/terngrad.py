"""TernGrad: three values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Quantizer, Unbiased


@dataclass(frozen=True)
class TernGrad(Unbiased, Quantizer):
    """Sends max|x| sign(x_j) with probability |x_j| / max|x|, else 0.

    E ||C(x)||^2 = max|x| ||x||_1; omega = (sqrt(d) - 1)/2 is attained at (1, t, ..., t), t = 1/(1 +
    sqrt(d)), which is derived here.

    Notes
    -----
    Class: omega = (sqrt(d) - 1)/2 (tight).
    Bits: b + 2 d.
    Source: arXiv:1705.07878.
    """

    def omega(self, d: int) -> float:
        """Return (sqrt(d) - 1) / 2."""
        return (math.sqrt(d) - 1) / 2

    def width(self, dtype: DTypeLike) -> int:
        return 2

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.terngrad()
