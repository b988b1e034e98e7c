"""BlockTopK: the largest entries of every block."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.base import Biased, Selector, fitting, index_bits, positive


@dataclass(frozen=True)
class BlockTopK(Biased, Selector):
    """Sends the k entries of largest magnitude of each block of `block_size` entries.

    Indices within a block are short, and layers of a network, for example, all get their share. A
    last block that is shorter sends min(k, its size) entries.

    Parameters
    ----------
    k
        Entries of each block, 1 to its size.
    block_size
        If above d, the vector is one block.

    Notes
    -----
    Class: alpha = k / min(block_size, d).
    Bits: (b + ceil(log2 block_size)) k for each block.
    Source: TopK of each block; alpha is the smallest of theirs.
    """

    k: int
    block_size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("BlockTopK.k", self.k))
        size = positive("BlockTopK.block_size", self.block_size, upper="2**32 - 1")
        object.__setattr__(self, "block_size", size)

    def alpha(self, d: int) -> float:
        """Return k / block_size, or k / d for a single block."""
        size = min(self.block_size, d)
        return fitting("BlockTopK", self.k, size) / size

    def kept(self, d: int) -> int:
        return sum(min(self.k, size) for size in self._blocks(d))

    def place_bits(self, d: int) -> int:
        return sum(min(self.k, size) * index_bits(size) for size in self._blocks(d))

    def _blocks(self, d: int) -> list[int]:
        fitting("BlockTopK", self.k, min(self.block_size, d))
        return [min(self.block_size, d - first) for first in range(0, d, self.block_size)]

    def _compiled(self, d: int) -> _core.Selector:
        return _core.block_top_k(self.k, self.block_size)
