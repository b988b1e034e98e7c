"""3PC: the three point compressors v1 to v5."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, unbiased_omega
from buropt.optim.contractive import contraction, send_contractive, theta_beta
from buropt.optim.lag import LAG
from buropt.optim.three_point import ThreePoint
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


@dataclass(frozen=True)
class ThreePCv1(ThreePoint):
    """3PCv1, Richtarik et al. 2022, arXiv:2202.00998: differences of gradients, compressed.

        g_i+ = grad f_i(x) + C(grad f_i(x+) - grad f_i(x))

    A = 1, B = 1 - alpha. The server needs grad f_i(x), a dense message: of use as an idea only.

    Parameters
    ----------
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt(1 - alpha)).
    Oracle: 1 full gradient.
    Bits: d floats and 1 compressed message up, d floats down.
    Memory: x; g_i and the gradient of every worker, mean of g_i.
    Source: arXiv:2202.00998.
    """

    compressor: Compressor = IDENTITY

    def constants(self, dim: int) -> tuple[float, float]:
        return 1.0, 1 - contraction(self.compressor, dim)

    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        problem.send_dense()
        return y + send_contractive(problem, self.compressor, z - y, key)


@dataclass(frozen=True)
class ThreePCv2(ThreePoint):
    """3PCv2, Richtarik et al. 2022, arXiv:2202.00998: an unbiased message, then a biased one.

        b = g_i + Q(grad f_i(x+) - grad f_i(x)),   g_i+ = b + C(grad f_i(x+) - b)

    A = alpha, B = (1 - alpha) omega.

    Parameters
    ----------
    compressor : Compressor
        C: contractive such as TopK, or unbiased.
    unbiased_compressor : Compressor
        Q; also PermK, since A and B are of each worker by itself.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt((1 - alpha) omega/alpha)).
    Oracle: 1 full gradient.
    Bits: 2 compressed messages up, d floats down.
    Memory: x; g_i and the gradient of every worker, mean of g_i.
    Source: arXiv:2202.00998.
    """

    compressor: Compressor = IDENTITY
    unbiased_compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_unbiased(self.unbiased_compressor, independent=False)

    def constants(self, dim: int) -> tuple[float, float]:
        alpha = contraction(self.compressor, dim)
        return alpha, (1 - alpha) * unbiased_omega(self.unbiased_compressor, dim)

    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        b = h + problem.send(self.unbiased_compressor, z - y, key.fold(Purpose.SNAPSHOT))
        return b + send_contractive(problem, self.compressor, z - b, key)


@dataclass(frozen=True)
class ThreePCv3(ThreePoint):
    """3PCv3, Richtarik et al. 2022, arXiv:2202.00998: another member of the family, corrected.

        b = C1(g_i, grad f_i(x), grad f_i(x+)),   g_i+ = b + C(grad f_i(x+) - b)

    A = 1 - (1 - alpha)(1 - A1), B = (1 - alpha) B1; here C1 is LAG's.

    Parameters
    ----------
    zeta : float
        Of LAG, 0 or more.
    compressor : Compressor
        C: contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt((1 - alpha) zeta)).
    Oracle: 1 full gradient.
    Bits: 1 bit and 1 compressed message up, and d floats when triggered; d floats down.
    Memory: x; g_i and the gradient of every worker, mean of g_i.
    Source: arXiv:2202.00998.
    """

    zeta: float = 1.0
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        LAG(zeta=self.zeta)  # says what is wrong with zeta

    def constants(self, dim: int) -> tuple[float, float]:
        alpha = contraction(self.compressor, dim)
        A, B = LAG(zeta=self.zeta).constants(dim)
        return 1 - (1 - alpha) * (1 - A), (1 - alpha) * B

    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        b = LAG(zeta=self.zeta).send(problem, h, y, z, key)
        return b + send_contractive(problem, self.compressor, z - b, key)


@dataclass(frozen=True)
class ThreePCv4(ThreePoint):
    """3PCv4, Richtarik et al. 2022, arXiv:2202.00998: two biased messages.

        b = g_i + C2(grad f_i(x+) - g_i),   g_i+ = b + C(grad f_i(x+) - b)

    A and B are those of EF21 with 1 - (1 - alpha)(1 - alpha2) in place of alpha.

    Parameters
    ----------
    compressor, second_compressor : Compressor
        C and C2: contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt(beta/theta)) for both compressors together.
    Oracle: 1 full gradient.
    Bits: 2 compressed messages up, d floats down.
    Memory: x; g_i and the gradient of every worker, mean of g_i.
    Source: arXiv:2202.00998.
    """

    compressor: Compressor = IDENTITY
    second_compressor: Compressor = IDENTITY

    def constants(self, dim: int) -> tuple[float, float]:
        first, second = (contraction(c, dim) for c in (self.compressor, self.second_compressor))
        return theta_beta(1 - (1 - first) * (1 - second))

    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        second = key.fold(Purpose.SNAPSHOT)
        b = h + send_contractive(problem, self.second_compressor, z - h, second)
        return b + send_contractive(problem, self.compressor, z - b, key)


@dataclass(frozen=True)
class ThreePCv5(ThreePoint):
    """3PCv5, Richtarik et al. 2022, arXiv:2202.00998: MARINA with a biased compressor.

        g_i+ = grad f_i(x+)                                  with probability p, one coin for all
             = g_i + C(grad f_i(x+) - grad f_i(x))           otherwise

    A = 1 - sqrt(1 - p), B = (1 - p)(1 - alpha)/(1 - sqrt(1 - p)).

    Parameters
    ----------
    p : float
        In (0, 1]; 1 is gradient descent.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt((1 - p)(1 - alpha))/(1 - sqrt(1 - p))).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, or d floats with probability p; d floats down.
    Memory: x; g_i and the gradient of every worker, mean of g_i.
    Source: arXiv:2202.00998.
    """

    p: float = 0.1
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)

    def constants(self, dim: int) -> tuple[float, float]:
        A = 1 - math.sqrt(1 - self.p)
        return A, (1 - self.p) * (1 - contraction(self.compressor, dim)) / A

    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        if key.fold(Purpose.COIN).coin(self.p):
            problem.send_dense()
            return z
        return h + send_contractive(problem, self.compressor, z - y, key)
