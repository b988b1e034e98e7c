"""LAG and CLAG: workers that send only when their gradient has changed enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array
from buropt.optim.contractive import contraction, scaled, theta_beta
from buropt.optim.three_point import ThreePoint

if TYPE_CHECKING:
    from buropt.problems.base import Index, Problem
    from buropt.random import Key


@dataclass(frozen=True)
class LAG(ThreePoint):
    """Lazily aggregated gradients, Chen et al. 2018, arXiv:1805.09965, as in arXiv:2202.00998.

        x+        = x - step_size mean_i g_i
        worker i:   d_i  = grad f_i(x+) - grad f_i(x)
                    g_i+ = grad f_i(x+)  if |grad f_i(x+) - g_i|^2 > zeta |d_i|^2,  else g_i

    A three point compressor with A = 1, B = zeta. Everybody tells in one bit whether a vector
    follows.

    Parameters
    ----------
    zeta : float
        0 or more; 0 is gradient descent.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt(zeta)).
    Oracle: 1 full gradient.
    Bits: 1 bit up, and d floats when triggered; d floats down.
    Memory: x; g_i and the gradient of every worker, mean of g_i.
    Source: arXiv:1805.09965; arXiv:2202.00998.
    """

    zeta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zeta != 0:
            self.require_positive("zeta")

    def constants(self, dim: int) -> tuple[float, float]:
        return 1.0, self.zeta

    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        triggered = who_changed(h, y, z, self.zeta)
        problem.send_flag()
        problem.send_dense(len(triggered) / len(h))
        g_i: Array = h.copy()
        g_i[triggered] = z[triggered]
        return g_i


@dataclass(frozen=True)
class CLAG(ThreePoint):
    """Compressed lazily aggregated gradients, Richtarik et al. 2022, arXiv:2202.00998.

        x+        = x - step_size mean_i g_i
        worker i:   g_i+ = g_i + C(grad f_i(x+) - g_i)  if triggered as in `LAG`, else g_i

    A three point compressor with A = theta, B = max(beta, zeta), theta and beta of EF21. zeta = 0
    is EF21 with a dense start, C the identity LAG.

    Parameters
    ----------
    zeta : float
        0 or more.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt(max(beta, zeta)/theta)).
    Oracle: 1 full gradient.
    Bits: 1 bit up, and 1 compressed message when triggered; d floats down.
    Memory: x; g_i and the gradient of every worker, mean of g_i.
    Source: arXiv:2202.00998.
    """

    zeta: float = 1.0
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zeta != 0:
            self.require_positive("zeta")

    def constants(self, dim: int) -> tuple[float, float]:
        theta, beta = theta_beta(contraction(self.compressor, dim))
        return theta, max(beta, self.zeta)

    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        triggered = who_changed(h, y, z, self.zeta)
        problem.send_flag()
        message = problem.send(self.compressor, z - h, key, triggered)
        return h + scaled(self.compressor, message)


def who_changed(h: Array, y: Array, z: Array, zeta: float) -> Index:
    """The workers with |z - h|^2 > zeta |z - y|^2."""
    far, moved = z - h, z - y
    trigger = np.einsum("ij,ij->i", far, far) > zeta * np.einsum("ij,ij->i", moved, moved)
    return np.flatnonzero(trigger)
