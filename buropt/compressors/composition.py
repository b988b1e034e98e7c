"""Kept entries, quantized."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import CompiledCompressor, Quantizer, Selector, contraction_of
from buropt.compressors.scaled import Scaled


@dataclass(frozen=True)
class Composition(CompiledCompressor):
    """Keeps the entries that `first` keeps, and sends them as `second` does: C = C2 C1.

    C2 acts on the vector of the k kept entries, so its omega and alpha are those for k, and its
    error has no part outside of them. Then, with k entries kept at most,

        C1, C2 unbiased (RandK, then dithering)     1 + omega = (1 + omega1) (1 + omega2(k))
        C1 x = x_S (TopK), C2 contractive           alpha = alpha1 alpha2(k)
        C1 x = x_S (TopK), C2 unbiased              alpha = alpha1 (1 - omega2(k)) if omega2(k) < 1

    Since ||C2 x_S - x||^2 = ||x - x_S||^2 + ||C2 x_S - x_S||^2 in the mean, the last two follow
    from E ||x_S||^2 >= alpha1 ||x||^2. The AB inequality has A + (1 + omega1) omega2(k) / n and B,
    where A and B belong to the first one. `Scaled(C2)` is a better second one than C2 after TopK.
    The draws of both are independent.

    Parameters
    ----------
    first : Selector
        RandK, RandSeqK, TopK, TopLEK, BlockTopK, PermK, Bernoulli or Identity.
    second : Quantizer or Scaled
        NaturalCompression, RandomDithering, NaturalDithering, TernGrad, ScaledSign, Sign, or
        `Scaled` of an unbiased one of these.

    Notes
    -----
    Class: 1 + omega = (1 + omega1)(1 + omega2); alpha = alpha1 alpha2.
    Bits: the places of the first, and the message of the second for k entries.
    Source: arXiv:1905.10988; alpha is derived here.
    """

    first: Selector
    second: Quantizer | Scaled

    def __post_init__(self) -> None:
        if not isinstance(self.first, Selector):
            raise TypeError(
                "Composition.first must be a compressor that keeps entries, such as RandK or TopK, "
                f"got {self.first!r}"
            )
        inner = self.second.compressor if isinstance(self.second, Scaled) else self.second
        if not isinstance(inner, Quantizer):
            raise TypeError(
                "Composition.second must be a quantizer, such as NaturalCompression, or Scaled of "
                f"one, got {self.second!r}"
            )

    @property
    def independent(self) -> bool:  # type: ignore[override]
        """As the first one."""
        return self.first.independent

    @property
    def unbiased(self) -> bool:
        """Whether both are."""
        return self.first.unbiased and self.second.unbiased

    def omega(self, d: int) -> float | None:
        """Return (1 + omega1) (1 + omega2) - 1, or None if one of them is biased."""
        omega1, omega2 = self.first.omega(d), self.second.omega(self.first.kept(d))
        if omega1 is None or omega2 is None:
            return None
        return (1 + omega1) * (1 + omega2) - 1

    def alpha(self, d: int) -> float | None:
        """The product of both, see the class; None where no contraction is known."""
        omega = self.omega(d)
        if omega is not None:
            return contraction_of(omega)
        alpha1, alpha2 = self.first.alpha(d), self.second.alpha(self.first.kept(d))
        if self.first.unbiased or alpha1 is None or alpha2 is None:
            return None
        return alpha1 * alpha2

    def collective(self, d: int, n_workers: int) -> tuple[float, float]:
        """A and B of the first one, and what the second adds to A; see the class."""
        A, B = self.first.collective(d, n_workers)
        omega1, omega2 = self.first.omega(d), self.second.omega(self.first.kept(d))
        if omega1 is None or omega2 is None:
            raise ValueError(f"{self!r} is biased: there is no A and B for it")
        return A + (1 + omega1) * omega2 / n_workers, B

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Bits of the places, and of the second one's message."""
        return self.first.place_bits(d) + self.second.bits(self.first.kept(d), dtype)

    def _compiled(self, d: int) -> _core.Compressor:
        kept = self.first.kept(d)
        return _core.composition(self.first._compiled(d), self.second._compiled(kept))
