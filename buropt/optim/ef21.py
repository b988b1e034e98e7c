"""EF21: error feedback for contractive (biased) compressors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), the workers' gradient estimates g_i (n, d) there, and their mean g (d,)."""

    x: Array
    g: Array
    g_i: Array


@dataclass(frozen=True)
class EF21(FixedStep[State]):
    """EF21, Richtarik, Sokolov and Fatkhullin 2021, arXiv:2106.05203.

        x+        = x - step_size mean_i g_i
        worker i:   c_i = C(grad f_i(x+) - g_i),   g_i+ = g_i + c_i

    g_i starts at C(grad f_i(x0)), or at grad f_i(x0) with `dense_start`. Step size of Theorem 1,

        1/(L + L~ r),   r = sqrt(beta / theta) = (1 + sqrt(1 - alpha)) / alpha - 1,

    where E|C(x) - x|^2 <= (1 - alpha)|x|^2 and L~ = sqrt(mean_i L_i^2). With G0 = mean_i |g_i -
    grad f_i(x0)|^2 and theta = 1 - sqrt(1 - alpha), the mean of E|grad f(x_t)|^2 over t < T is at
    most 2 (f(x0) - f*) / (step_size T) + G0 / (theta T).

    An unbiased C is used as C/(1 + omega), which is contractive with alpha = 1/(1 + omega).

    The later theory of EF21 (arXiv:2402.10774) allows the smaller mean_i L_i in place of L~, a
    longer step when workers differ; `step_size_factor` gets there.

    Parameters
    ----------
    dense_start : bool
        Start from the exact gradients: one dense message, and G0 = 0.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L~ sqrt(beta / theta)).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x; g_i of every worker and their mean.
    Source: arXiv:2106.05203, Theorem 1.
    """

    dense_start: bool = False
    compressor: Compressor = IDENTITY

    def theory(self, problem: Problem) -> EF21:
        c = problem.constants
        alpha = contraction(self.compressor, problem.dim)
        root = (1 + math.sqrt(1 - alpha)) / alpha - 1
        return self.settled(problem, 1 / (c.L + c.L_tilde * root))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        grads = problem.worker_grads(x0)
        if self.dense_start:
            problem.send_dense()
            return State(x0, mean(grads), grads)
        g_i = self._send(problem, grads, key)
        return State(x0, mean(g_i), g_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = state.x - self.gamma * state.g
        problem.broadcast()
        g_i = state.g_i + self._send(problem, problem.worker_grads(x) - state.g_i, key)
        return State(x, mean(g_i), g_i)

    def _send(self, problem: Problem, vectors: Array, key: Key) -> Array:
        """What the server receives: contractive messages, (n, d)."""
        message = problem.send(self.compressor, vectors, key)
        if not self.compressor.unbiased:
            return message
        omega = unbiased_omega(self.compressor, problem.dim)
        return message / (1 + omega) if omega > 0 else message


def contraction(compressor: Compressor, dim: int) -> float:
    """The alpha of the compressor, or of its scaled version when it is unbiased."""
    if compressor.unbiased:
        return 1 / (1 + unbiased_omega(compressor, dim))
    alpha = compressor.alpha(dim)
    if alpha is None:
        raise ValueError(f"EF21 needs a contractive compressor and {compressor!r} states no alpha")
    return alpha
