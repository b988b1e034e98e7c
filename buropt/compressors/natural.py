"""Natural compression: powers of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Quantizer, Unbiased, value_bits


@dataclass(frozen=True)
class NaturalCompression(Unbiased, Quantizer):
    """Rounds every entry to one of the two powers of two around it, at random and without bias.

    What is sent are sign and exponent of the float. The variance is largest at 4/3 times a power of
    two, where it is 1/8 of the square. Numbers below the smallest normal one become 0 or that one:
    unbiased, but their variance is larger. Those above the largest power of two become that one, so
    that no infinity is made. Infinities and NaN stay what they are.

    Notes
    -----
    Class: omega = 1/8 (tight).
    Bits: 9 d in float32, 12 d in float64.
    Source: arXiv:1905.10988.
    """

    has_header: ClassVar[bool] = False

    def omega(self, d: int) -> float:
        """Return 1 / 8."""
        return 0.125

    def width(self, dtype: DTypeLike) -> int:
        return 9 if value_bits(dtype) == 32 else 12

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.natural_compression()
