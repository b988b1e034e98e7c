"""TopK: the largest entries."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.base import Biased, Selector, fitting, index_bits, positive


@dataclass(frozen=True)
class TopK(Biased, Selector):
    """Sends the k entries of largest magnitude, as they are.

    ||C(x) - x||^2 <= (1 - k / d) ||x||^2 for every x, with equality where all magnitudes are equal.
    Deterministic: of equal magnitudes the lowest index is sent; a NaN counts as larger than
    infinity.

    Parameters
    ----------
    k
        Entries to send, 1 to d; k = d is the identity.

    Raises
    ------
    TypeError
        If k is not an integer.
    ValueError
        If k is below 1; in every call, if k is above d.

    Notes
    -----
    Class: alpha = k/d.
    Bits: (b + ceil(log2 d)) k.
    Source: arXiv:1809.07599; arXiv:2002.12410.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("TopK.k", self.k))

    def alpha(self, d: int) -> float:
        """Return k / d."""
        return fitting("TopK", self.k, d) / d

    def kept(self, d: int) -> int:
        return fitting("TopK", self.k, d)

    def place_bits(self, d: int) -> int:
        return self.k * index_bits(d)

    def _compiled(self, d: int) -> _core.Selector:
        return _core.top_k(self.k)
