"""EF21 on local PAGE estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean
from buropt.optim.contractive import contraction, send_contractive, theta_beta
from buropt.optim.sampling import average_local_smoothness, worker_batches
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), mean g (d,) of the workers' g_i (n, d), and their estimates v_i (n, d)."""

    x: Array
    g: Array
    g_i: Array
    v_i: Array


@dataclass(frozen=True)
class EF21PAGE(FixedStep[State]):
    """EF21-PAGE, Fatkhullin et al. 2021, arXiv:2110.03294.

        x+ = x - step_size mean_i g_i
        v_i+ = grad f_i(x+)                                          with probability p
             = v_i + mean_{j in I_i} (grad f_ij(x+) - grad f_ij(x))  otherwise, |I_i| = batch_size
        g_i+ = g_i + C(v_i+ - g_i)

    One coin for all. p = batch_size/(m + batch_size) with m samples a worker, as in public code.
    Step size 1/(L + sqrt((4 beta/theta) L~^2 + 2 (3 beta/theta + 1/p) A)), A = (1 - p)/batch_size
    times the mean square of the L_ij. It is derived here: with P = mean_i |v_i - grad f_i|^2 and G
    = mean_i |g_i - v_i|^2, f + (step_size/2) ((2/p + 4 beta/theta) P + (2/theta) G) decreases by
    (step_size/2) |grad f(x)|^2 in expectation.

    Parameters
    ----------
    p : float, optional
        In (0, 1]; 1 is EF21.
    batch_size : int
        Drawn with replacement from each worker's samples.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + sqrt((4 beta/theta) L~^2 + 2 (3 beta/theta + 1/p) A)).
    Oracle: 2 batch_size sample gradients of every worker, or with probability p 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x; g_i and v_i of every worker, mean of g_i.
    Source: arXiv:2110.03294.
    """

    p: float | None = None
    batch_size: int = 1
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)
        self.require_whole("batch_size")

    def theory(self, problem: Problem) -> EF21PAGE:
        c, b = problem.constants, self.batch_size
        m = problem.n_samples / problem.n_workers
        p = b / (m + b) if self.p is None else self.p
        theta, beta = theta_beta(contraction(self.compressor, problem.dim))
        ratio, A = beta / theta, (1 - p) / b * average_local_smoothness(problem) ** 2
        root = math.sqrt(4 * ratio * c.L_tilde**2 + 2 * (3 * ratio + 1 / p) * A)
        return self.settled(problem, 1 / (c.L + root), p=p)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        v_i = problem.worker_grads(x0)
        g_i = send_contractive(problem, self.compressor, v_i, key)
        return State(x0, mean(g_i), g_i, v_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None:
            raise self.unsettled("p")
        x = state.x - self.gamma * state.g
        problem.broadcast()
        if key.fold(Purpose.COIN).coin(self.p):
            v_i = problem.worker_grads(x)
        else:
            idx = worker_batches(problem, self.batch_size, key)
            v_i = state.v_i + problem.worker_grad_differences(x, state.x, idx)
        g_i = state.g_i + send_contractive(problem, self.compressor, v_i - state.g_i, key)
        return State(x, mean(g_i), g_i, v_i)
