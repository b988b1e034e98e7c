"""EF21 with compression in both directions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean
from buropt.optim.contractive import contraction, scaled, send_contractive, theta_beta

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), the estimate g (d,) that everybody knows, and the workers' g_i (n, d)."""

    x: Array
    g: Array
    g_i: Array


@dataclass(frozen=True)
class EF21BC(FixedStep[State]):
    """EF21-BC, Fatkhullin et al. 2021, arXiv:2110.03294.

        x+        = x - step_size g                      (known to everybody, nothing is sent)
        worker i:   g_i+ = g_i + C(grad f_i(x+) - g_i)
        server:     g+   = g + C_s(mean_i g_i+ - g)      (what the workers hear)

    Step size 1/(L + sqrt(R)), where, with theta, beta of C, theta_s, beta_s of
    C_s, k = (1 + sqrt(1 - alpha))^2, a = 2/theta_s and b = (2 + 2 k a beta_s)/theta, R = (2 k a
    beta_s + b beta) L~^2. It is derived here, since the paper's constants were not found again: f +
    (step_size/2) (a |g - mean_i g_i|^2 + b mean_i |g_i - grad f_i(x)|^2) decreases by (step_size/2)
    |grad f(x)|^2 in expectation. If the server sends everything it is EF21.

    Parameters
    ----------
    compressor, server_compressor : Compressor
        C of the workers and C_s of the server: contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + sqrt(R)).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, 1 compressed message down.
    Memory: x, g; g_i of every worker.
    Source: arXiv:2110.03294.
    """

    compressor: Compressor = IDENTITY
    server_compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_independent(self.server_compressor)

    def theory(self, problem: Problem) -> EF21BC:
        c, d = problem.constants, problem.dim
        alpha = contraction(self.compressor, d)
        theta, beta = theta_beta(alpha)
        theta_s, beta_s = theta_beta(contraction(self.server_compressor, d))
        k = (1 + math.sqrt(1 - alpha)) ** 2
        a = 2 / theta_s
        b = (2 + 2 * k * a * beta_s) / theta
        return self.settled(
            problem, 1 / (c.L + c.L_tilde * math.sqrt(2 * k * a * beta_s + b * beta))
        )

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        g_i = send_contractive(problem, self.compressor, problem.worker_grads(x0), key)
        return State(x0, self._hear(problem, mean(g_i), key), g_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = state.x - self.gamma * state.g
        grads = problem.worker_grads(x)
        g_i = state.g_i + send_contractive(problem, self.compressor, grads - state.g_i, key)
        return State(x, state.g + self._hear(problem, mean(g_i) - state.g, key), g_i)

    def _hear(self, problem: Problem, vector: Array, key: Key) -> Array:
        message = problem.broadcast_compressed(self.server_compressor, vector, key)
        return scaled(self.server_compressor, message)
