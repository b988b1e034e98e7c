"""PermK: workers that share out the coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buropt import _core
from buropt.compressors.base import Chooser, Unbiased, positive


@dataclass(frozen=True)
class PermK(Unbiased, Chooser):
    """Shares out a random permutation of the coordinates among all workers.

    For d >= n worker i sends n x on its part of about d / n coordinates, which nobody else sends:
    where the workers agree, the mean of their messages is exact. For d < n every worker sends d x
    on one coordinate, and each coordinate is sent by about n / d workers. All workers draw
    together, by the seed that everybody knows, so indices are not sent. The AB inequality holds as
    an equality,

        d >= n    A = B = 1
        d <  n    A = (d - s)/n, B = 1 - s, where, with q = floor(n/d) and r = n - q d,
                  s = d^2 (q (q - 1) + 2 q r/d)/(n (n - 1)); A = B = (d - 1)/(n - 1) if r = 0

    Where n does not divide d, parts differ by one coordinate, and it is drawn who has more, which
    keeps the probability of every worker for every coordinate at 1/n. That, and r > 0, is derived
    here; the paper has the rest.

    Parameters
    ----------
    n_workers
        n, 1 or more.

    Notes
    -----
    Class: omega = min(n, d) - 1 (exact); A = B = 1 for d >= n.
    Bits: b ceil(d/n) or b floor(d/n); b for d < n.
    Source: arXiv:2110.03300.
    """

    independent: ClassVar[bool] = False

    n_workers: int

    def __post_init__(self) -> None:
        number = positive("PermK.n_workers", self.n_workers, 2**31, "2**31")
        object.__setattr__(self, "n_workers", number)

    def omega(self, d: int) -> float:
        """Return min(n, d) - 1, for the message of one worker."""
        return min(self.n_workers, d) - 1.0

    def collective(self, d: int, n_workers: int) -> tuple[float, float]:
        """A and B; see the class."""
        n = self.n_workers
        if n_workers != n:
            raise ValueError(
                f"PermK is for n_workers = {n} and there are {n_workers} workers; write "
                f"compressor.n_workers={n_workers}"
            )
        if d >= n:
            return 1.0, 1.0
        q, r = divmod(n, d)
        if r == 0:
            return (d - 1) / (n - 1), (d - 1) / (n - 1)
        s = d * (d * q * (q - 1) + 2 * q * r) / (n * (n - 1))
        return (d - s) / n, 1 - s

    def scale(self, d: int) -> float:
        return float(min(self.n_workers, d))

    def kept(self, d: int) -> int:
        return -(-d // self.n_workers)

    def place_bits(self, d: int) -> int:
        return 0

    def _compiled(self, d: int) -> _core.Selector:
        return _core.perm_k(self.n_workers)
