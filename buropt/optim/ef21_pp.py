"""EF21 with partial participation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean
from buropt.optim.contractive import contraction, send_contractive, theta_beta
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Index, Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), the workers' gradient estimates g_i (n, d), and their mean g (d,)."""

    x: Array
    g: Array
    g_i: Array


@dataclass(frozen=True)
class EF21PP(FixedStep[State]):
    """EF21-PP, Fatkhullin et al. 2021, arXiv:2110.03294.

        x+ = x - step_size mean_i g_i
        each worker on its own, with probability p:   g_i+ = g_i + C(grad f_i(x+) - g_i)
        otherwise:                                    g_i+ = g_i

    Step size 1/(L + sqrt(B/t)), where for some r > 0 E G+ <= (1 - t) G + B |x+ - x|^2 with t = p
    theta - r (1 - p) and B = (beta p + (1 + 1/r) (1 - p)) L~^2; r is the middle of its range, p
    theta/(2 (1 - p)). As Theorem 7 of the paper reads in public code, for equal probabilities. Only
    those who take part compute.

    Parameters
    ----------
    p : float
        In (0, 1]; 1 is EF21.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + sqrt(B/t)).
    Oracle: 1 gradient of every participant; all at the start.
    Bits: 1 compressed message up for each participant, d floats down.
    Memory: x; g_i of every worker and their mean.
    Source: arXiv:2110.03294, Theorem 7.
    """

    p: float = 0.5
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)

    def theory(self, problem: Problem) -> EF21PP:
        c, p = problem.constants, self.p
        t, B = theta_beta(contraction(self.compressor, problem.dim))
        if p < 1:
            r = p * t / (2 * (1 - p))
            t, B = p * t / 2, B * p + (1 + 1 / r) * (1 - p)
        return self.settled(problem, 1 / (c.L + c.L_tilde * math.sqrt(B / t)))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        g_i = send_contractive(problem, self.compressor, problem.worker_grads(x0), key)
        return State(x0, mean(g_i), g_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = state.x - self.gamma * state.g
        problem.broadcast()
        workers = self._participants(problem, key)
        if not len(workers):
            return State(x, state.g, state.g_i)
        differences = np.zeros_like(state.g_i)
        grads = problem.local_grads(np.tile(x, (len(workers), 1)), workers)
        differences[workers] = grads - state.g_i[workers]
        g_i = state.g_i + send_contractive(problem, self.compressor, differences, key, workers)
        return State(x, mean(g_i), g_i)

    def _participants(self, problem: Problem, key: Key) -> Index:
        draws = key.fold(Purpose.WORKER).integers(0, 2**53, problem.n_workers)
        return np.flatnonzero(draws < self.p * 2**53)
