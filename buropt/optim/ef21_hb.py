"""EF21 with heavy ball momentum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean
from buropt.optim.contractive import contraction, send_contractive, theta_beta

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), velocity v (d,), the workers' estimates g_i (n, d), their mean g (d,)."""

    x: Array
    v: Array
    g: Array
    g_i: Array


@dataclass(frozen=True)
class EF21HB(FixedStep[State]):
    """EF21-HB, Fatkhullin et al. 2021, arXiv:2110.03294.

        v+        = momentum v + mean_i g_i,   x+ = x - step_size v+
        worker i:   c_i = C(grad f_i(x+) - g_i),   g_i+ = g_i + c_i

    Step size (1 - momentum)/(L + sqrt(2 (L~^2 beta/theta + L^2 momentum^2/(1 - momentum)^2))). It
    is derived here, since the paper's constants were not found again: along z = x - (step_size
    momentum/(1 - momentum)) v, which follows plain EF21 with step s = step_size/(1 - momentum), the
    mean of |grad f(z_t)|^2 is at most 2 (f(x0) - f*)/(s T) + 2 G0/(theta T).

    Parameters
    ----------
    momentum : float
        In [0, 1); 0 is EF21.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: (1 - momentum)/(L + sqrt(2 (L~^2 beta/theta + L^2 momentum^2/(1 - momentum)^2))).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x, v; g_i of every worker and their mean.
    Source: arXiv:2110.03294.
    """

    momentum: float = 0.9
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_fraction("momentum")

    def theory(self, problem: Problem) -> EF21HB:
        c, b = problem.constants, self.momentum
        theta, beta = theta_beta(contraction(self.compressor, problem.dim))
        root = math.sqrt(2 * (c.L_tilde**2 * beta / theta + (c.L * b / (1 - b)) ** 2))
        return self.settled(problem, (1 - b) / (c.L + root))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        g_i = send_contractive(problem, self.compressor, problem.worker_grads(x0), key)
        return State(x0, np.zeros_like(x0), mean(g_i), g_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        v = self.momentum * state.v + state.g
        x = state.x - self.gamma * v
        problem.broadcast()
        grads = problem.worker_grads(x)
        g_i = state.g_i + send_contractive(problem, self.compressor, grads - state.g_i, key)
        return State(x, v, mean(g_i), g_i)
