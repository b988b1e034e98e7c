"""Bernoulli: everything or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.base import Selector, contraction_of, truth


@dataclass(frozen=True)
class Bernoulli(Selector):
    """Sends the whole vector with probability p, times 1 / p, else nothing.

    Unbiased, and E ||C(x) - x||^2 is exactly (1/p - 1) ||x||^2. Unscaled it is the lazy compressor:
    C(x) = x with probability p, and E ||C(x) - x||^2 is exactly (1 - p) ||x||^2.

    Parameters
    ----------
    p
        In (0, 1].
    scaled
        Whether to multiply by 1 / p.

    Notes
    -----
    Class: omega = 1/p - 1 (exact); unscaled: alpha = p (exact).
    Bits: 1, and b d with probability p.
    Source: arXiv:2002.12410 (lazy).
    """

    p: float
    scaled: bool = True

    def __post_init__(self) -> None:
        p = self.p
        if isinstance(p, (bool, str)) or not 0 < p <= 1:
            raise ValueError(f"Bernoulli.p must be a number in (0, 1], got {p!r}")
        object.__setattr__(self, "p", float(p))
        truth("Bernoulli.scaled", self.scaled)

    @property
    def unbiased(self) -> bool:
        """Whether it is scaled."""
        return self.scaled

    def omega(self, d: int) -> float | None:
        """Return 1 / p - 1, or None if unscaled."""
        return 1 / self.p - 1 if self.scaled else None

    def alpha(self, d: int) -> float | None:
        """Return p if unscaled, else 1 - omega where that is positive."""
        return contraction_of(1 / self.p - 1) if self.scaled else self.p

    def kept(self, d: int) -> int:
        return d

    def place_bits(self, d: int) -> int:
        return 1

    def _compiled(self, d: int) -> _core.Selector:
        return _core.bernoulli(self.p, self.scaled)
