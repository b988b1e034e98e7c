"""The identity: nothing is compressed."""

from __future__ import annotations

from dataclasses import dataclass

from buropt import _core
from buropt.compressors.base import Selector, Unbiased


@dataclass(frozen=True)
class Identity(Unbiased, Selector):
    """Sends every entry as it is.

    Notes
    -----
    Class: omega = 0, alpha = 1.
    Bits: b d.
    Source: no compression.
    """

    def omega(self, d: int) -> float:
        """Return 0: nothing is lost."""
        return 0.0

    def kept(self, d: int) -> int:
        return d

    def place_bits(self, d: int) -> int:
        return 0

    def _compiled(self, d: int) -> _core.Selector:
        return _core.identity()
