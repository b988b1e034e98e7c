"""EF21 with weights: error feedback reloaded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep
from buropt.optim.contractive import contraction, send_contractive, theta_beta
from buropt.optim.ef21 import State

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


@dataclass(frozen=True)
class EF21W(FixedStep[State]):
    """EF21-W, Richtarik, Gasanov and Burlachenko 2024, arXiv:2402.10774.

        w_i       = L_i / sum_k L_k
        x+        = x - step_size sum_i w_i g_i
        worker i:   g_i+ = g_i + C(grad f_i(x+) / (n w_i) - g_i)

    Step size 1/(L + M sqrt(beta/theta)) with M = mean_i L_i, where EF21 has L~ >= M. With a
    positively homogeneous C that draws nothing, such as TopK, the iterates are those of EF21, which
    therefore has the same theory; so they are when all L_i are equal.

    Parameters
    ----------
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + mean_i L_i sqrt(beta/theta)).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x; g_i of every worker and their weighted mean.
    Source: arXiv:2402.10774, Theorems 2 and 3.
    """

    compressor: Compressor = IDENTITY

    def theory(self, problem: Problem) -> EF21W:
        c = problem.constants
        theta, beta = theta_beta(contraction(self.compressor, problem.dim))
        return self.settled(problem, 1 / (c.L + np.mean(c.L_i) * math.sqrt(beta / theta)))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        w = weights(problem)
        v = problem.worker_grads(x0) / (len(w) * w)
        g_i = send_contractive(problem, self.compressor, v, key)
        return State(x0, np.add.reduce(w * g_i, axis=0), g_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        w = weights(problem)
        x = state.x - self.gamma * state.g
        problem.broadcast()
        v = problem.worker_grads(x) / (len(w) * w)
        g_i = state.g_i + send_contractive(problem, self.compressor, v - state.g_i, key)
        return State(x, np.add.reduce(w * g_i, axis=0), g_i)


def weights(problem: Problem) -> NDArray[np.floating[Any]]:
    """The w_i as a column (n, 1); of workers without any curvature a tiny one."""
    L_i = np.maximum(problem.constants.L_i, 1e-12 * problem.constants.L_max)
    w: NDArray[np.floating[Any]] = (L_i / L_i.sum())[:, None].astype(problem.x0.dtype)
    return w
