"""Unbiased compressors made contractive."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Biased, CompiledCompressor


@dataclass(frozen=True)
class Scaled(Biased, CompiledCompressor):
    """C / (1 + omega) of an unbiased C with that omega: contractive, alpha = 1/(1 + omega).

    Messages are C's; the receiver divides. Methods with error feedback do this by themselves when
    they are given an unbiased compressor.

    Parameters
    ----------
    compressor : CompiledCompressor
        Unbiased.

    Notes
    -----
    Class: alpha = 1/(1 + omega).
    Bits: those of C.
    Source: arXiv:2002.12410.
    """

    compressor: CompiledCompressor

    def __post_init__(self) -> None:
        if not isinstance(self.compressor, CompiledCompressor):
            raise TypeError(f"Scaled.compressor must be a compressor, got {self.compressor!r}")
        if not self.compressor.unbiased:
            raise ValueError(
                f"Scaled is for unbiased compressors and {self.compressor!r} is biased; use it as "
                "it is"
            )

    def alpha(self, d: int) -> float:
        """Return 1 / (1 + omega)."""
        omega = self.compressor.omega(d)
        assert omega is not None
        return 1 / (1 + omega)

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Bits of the message of C."""
        return self.compressor.bits(d, dtype)

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.scaled(self.compressor._compiled(d), self.alpha(d))
