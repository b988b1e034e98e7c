"""RandK: random entries."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.base import Chooser, contraction_of, fitting, index_bits, positive, truth


@dataclass(frozen=True)
class RandK(Chooser):
    """Sends k entries, drawn uniformly without replacement, times d / k.

    C(x) = (d / k) x_S with S uniform among the k-subsets: unbiased, and E ||C(x) - x||^2 is exactly
    (d / k - 1) ||x||^2. Unscaled, C(x) = x_S is biased, and E ||C(x) - x||^2 is exactly (1 - k / d)
    ||x||^2.

    Parameters
    ----------
    k
        Entries to send, 1 to d; k = d is the identity.
    scaled
        Whether to multiply by d / k.
    shared_seed
        Whether the receiver knows the key, so that indices are not sent: b k bits a message
        instead of (b + ceil(log2 d)) k.

    Raises
    ------
    TypeError
        If k is not an integer, or scaled or shared_seed not a bool.
    ValueError
        If k is below 1; in every call, if k is above d.

    Notes
    -----
    Class: omega = d/k - 1 (exact); unscaled: alpha = k/d (exact).
    Bits: (b + ceil(log2 d)) k; b k with a shared seed.
    Source: arXiv:1809.07599; arXiv:1901.09269.
    """

    k: int
    scaled: bool = True
    shared_seed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("RandK.k", self.k))
        truth("RandK.scaled", self.scaled)
        truth("RandK.shared_seed", self.shared_seed)

    @property
    def unbiased(self) -> bool:
        """Whether it is scaled."""
        return self.scaled

    def omega(self, d: int) -> float | None:
        """Return d / k - 1, or None if unscaled."""
        k = fitting("RandK", self.k, d)
        return d / k - 1 if self.scaled else None

    def alpha(self, d: int) -> float | None:
        """Return k / d if unscaled, else 1 - omega where that is positive."""
        k = fitting("RandK", self.k, d)
        return contraction_of(d / k - 1) if self.scaled else k / d

    def scale(self, d: int) -> float:
        return d / self.k if self.scaled else 1.0

    def kept(self, d: int) -> int:
        return fitting("RandK", self.k, d)

    def place_bits(self, d: int) -> int:
        return 0 if self.shared_seed else self.k * index_bits(d)

    def _compiled(self, d: int) -> _core.Selector:
        return _core.rand_k(self.k, self.scaled, self.shared_seed)
