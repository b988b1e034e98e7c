"""EF21: error feedback for contractive (biased) compressors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean
from buropt.optim.contractive import contraction, send_contractive, theta_beta

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

        x+        = prox(x - step_size mean_i g_i)
        worker i:   c_i = C(grad f_i(x+) - g_i),   g_i+ = g_i + c_i

    g_i starts at C(grad f_i(x0)), or at grad f_i(x0) with `dense_start`. Step size of Theorem 1,

        1/(L + L~ r),   r = sqrt(beta / theta) = (1 + sqrt(1 - alpha)) / alpha - 1,

    where E|C(x) - x|^2 <= (1 - alpha)|x|^2 and L~ = sqrt(mean_i L_i^2). With G0 = mean_i |g_i -
    grad f_i(x0)|^2 and theta = 1 - sqrt(1 - alpha), the mean of E|grad f(x_t)|^2 over t < T is at
    most 2 (f(x0) - f*) / (step_size T) + G0 / (theta T).

    With `polyak_lojasiewicz`, min(1/(L + sqrt(2) L~ r), theta/(2 mu)) of Theorem 2, for which f -
    f* + (step_size/theta) G contracts by 1 - step_size mu, G = mean_i |g_i - grad f_i(x)|^2.

    With psi it is EF21-Prox (arXiv:2110.03294): by the same proof f + psi + (step_size/(2 theta)) G
    never grows with this step, and any shorter one gives a rate for the gradient mapping.

    An unbiased C is used as C/(1 + omega), which is contractive with alpha = 1/(1 + omega).

    The later theory of EF21 (arXiv:2402.10774) allows the smaller mean_i L_i in place of L~, a
    longer step when workers differ; `step_size_factor` gets there.

    Parameters
    ----------
    dense_start : bool
        Start from the exact gradients: one dense message, and G0 = 0.
    polyak_lojasiewicz : bool
        Take the step size of the second theorem; needs mu > 0.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth, with prox.
    Step size: 1/(L + L~ sqrt(beta / theta)).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x; g_i of every worker and their mean.
    Source: arXiv:2106.05203, Theorems 1 and 2.
    """

    proximal: ClassVar[bool] = True

    dense_start: bool = False
    polyak_lojasiewicz: bool = False
    compressor: Compressor = IDENTITY

    def theory(self, problem: Problem) -> EF21:
        c = problem.constants
        theta, beta = theta_beta(contraction(self.compressor, problem.dim))
        root = c.L_tilde * math.sqrt(beta / theta)
        step_size = 1 / (c.L + root)
        if self.polyak_lojasiewicz:
            step_size = min(1 / (c.L + math.sqrt(2) * root), theta / (2 * self.require_mu(problem)))
        return self.settled(problem, step_size)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        grads = problem.worker_grads(x0)
        if self.dense_start:
            problem.send_dense()
            return State(x0, mean(grads), grads)
        g_i = send_contractive(problem, self.compressor, grads, key)
        return State(x0, mean(g_i), g_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = problem.prox(state.x - self.gamma * state.g, self.gamma)
        problem.broadcast()
        g_i = state.g_i + send_contractive(
            problem, self.compressor, problem.worker_grads(x) - state.g_i, key
        )
        return State(x, mean(g_i), g_i)
