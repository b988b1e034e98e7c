"""TopLEK: as few of the largest entries as the contraction of TopK needs."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.base import Biased, Selector, fitting, index_bits, positive


@dataclass(frozen=True)
class TopLEK(Biased, Selector):
    """Sends at most k entries of largest magnitude, so that E||C(x) - x||^2 = (1 - k/d) ||x||^2.

    TopK is better than its alpha on almost every vector. TopLEK spends the difference on shorter
    messages: it sends the first m - 1 or m of the sorted entries, m the least number whose squares
    make up k/d of ||x||^2, with probabilities that give this share exactly in the mean. Order and
    ties are TopK's. Of a vector of zeros nothing is sent; of one that is not finite, what TopK
    sends.

    Parameters
    ----------
    k
        Entries to send at most, 1 to d; k = d is the identity.

    Notes
    -----
    Class: alpha = k/d (exact).
    Bits: ceil(log2(k + 1)) and b + ceil(log2 d) for each entry, at most k.
    Source: arXiv:2410.08760.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("TopLEK.k", self.k))

    def alpha(self, d: int) -> float:
        """Return k / d."""
        return fitting("TopLEK", self.k, d) / d

    def kept(self, d: int) -> int:
        return fitting("TopLEK", self.k, d)

    def place_bits(self, d: int) -> int:
        count = 0 if self.k == d else self.k.bit_length()
        return count + self.k * index_bits(d)

    def _compiled(self, d: int) -> _core.Selector:
        return _core.top_lek(self.k)
