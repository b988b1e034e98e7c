"""Signs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import DTypeLike

from buropt import _core
from buropt.compressors.base import Biased, Quantizer


@dataclass(frozen=True)
class Sign(Biased, Quantizer):
    """Sends 1 or -1 for every entry.

    Neither unbiased nor contractive, so no method with a theorem takes it; `ScaledSign` contracts.
    One bit has two values: zeros and NaN count as positive.

    Notes
    -----
    Class: none.
    Bits: d.
    Source: Seide et al. 2014 (Interspeech).
    """

    has_header: ClassVar[bool] = False

    def alpha(self, d: int) -> None:
        """Return None: signs do not contract."""
        return None

    def width(self, dtype: DTypeLike) -> int:
        return 1

    def _compiled(self, d: int) -> _core.Compressor:
        return _core.sign()
