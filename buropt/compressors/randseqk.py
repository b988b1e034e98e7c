"""RandSeqK: consecutive entries from a random place on."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.base import Chooser, Unbiased, fitting, index_bits, positive, truth


@dataclass(frozen=True)
class RandSeqK(Unbiased, Chooser):
    """Sends k consecutive entries, the first drawn uniformly, times d / k.

    After the last entry comes the first. One draw and one stretch of memory instead of k, with
    RandK's variance.

    Parameters
    ----------
    k
        Entries to send, 1 to d; k = d is the identity.
    shared_seed
        Whether the receiver knows the key, so that the first index is not sent.

    Notes
    -----
    Class: omega = d/k - 1 (exact).
    Bits: b k + ceil(log2 d); b k with a shared seed.
    Source: arXiv:2410.08760.
    """

    k: int
    shared_seed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("RandSeqK.k", self.k))
        truth("RandSeqK.shared_seed", self.shared_seed)

    def omega(self, d: int) -> float:
        """Return d / k - 1."""
        return d / fitting("RandSeqK", self.k, d) - 1

    def scale(self, d: int) -> float:
        return d / self.k

    def kept(self, d: int) -> int:
        return fitting("RandSeqK", self.k, d)

    def place_bits(self, d: int) -> int:
        return 0 if self.shared_seed else index_bits(d)

    def _compiled(self, d: int) -> _core.Selector:
        return _core.rand_seq_k(self.k, self.shared_seed)
