"""DASHA-MVR: DASHA on local STORM estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, unbiased_omega
from buropt.optim.dasha import State, dense_start, momentum_error, send_momentum
from buropt.optim.sampling import average_local_smoothness, worker_batches

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


@dataclass(frozen=True)
class DASHAMVR(FixedStep[State]):
    """DASHA-MVR, Tyurin and Richtarik 2022, arXiv:2202.01268: DASHA on STORM estimates.

        h_i+ = grad f_i(x+; I_i) + (1 - b) (h_i - grad f_i(x; I_i)),   I_i a random batch of B

    and the rest as in `DASHA`; the batch is the same at both points. Step size 1/(L + sqrt(96 omega
    (2 omega + 1)/n ((1 - b)^2 A^2/B + L~^2) + 4 (1 - b)^2 A^2/(b n B))), A^2 the mean of the
    L_ij^2, as the paper's theorem is usually quoted; its text was not at hand. The proof of
    `DASHAPAGE` carries over, with 8 omega (2 omega + 1)/n (3 (1 - b)^2 A^2/B + L~^2) for the first
    term and the same second one, so the quoted step is on the safe side of it. For another a as in
    `DASHA`. A constant b leaves a neighbourhood of the size of b times the variance of the batches.

    Parameters
    ----------
    a : float, optional
        In (0, 1], below 2/(2 omega + 1).
    b : float
        In (0, 1]; 1 takes the gradient of the batch as it is.
    batch_size : int
        B, drawn with replacement from each worker's samples.
    compressor : Compressor
        Unbiased, drawn independently for every worker.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + sqrt(96 w (2w+1)/n (c/B + L~^2) + 4 c/(b n B))), w = omega, c = (1-b)^2 A^2.
    Oracle: 2B sample gradients of every worker.
    Bits: 1 compressed message up, d floats at the start; d down.
    Memory: x; g_i and h_i of every worker, mean of g_i.
    Source: arXiv:2202.01268, Algorithm 1; STORM: arXiv:1905.10018.
    """

    a: float | None = None
    b: float = 0.1
    batch_size: int = 1
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("a", "b", at_most=1)
        self.require_whole("batch_size")
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> DASHAMVR:
        c, n, b, B = problem.constants, problem.n_workers, self.b, self.batch_size
        omega = unbiased_omega(self.compressor, problem.dim)
        a = 1 / (2 * omega + 1) if self.a is None else self.a
        spread = (1 - b) ** 2 * average_local_smoothness(problem) ** 2 / B
        square = 48 * momentum_error(self, a, omega, n) * (spread + c.L_tilde**2)
        return self.settled(problem, 1 / (c.L + math.sqrt(square + 4 * spread / (b * n))), a=a)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return dense_start(problem, x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = state.x - self.gamma * state.g
        problem.broadcast()
        idx = worker_batches(problem, self.batch_size, key)
        new, old = (problem.worker_sample_grads(point, idx) for point in (x, state.x))
        h_i = new + (1 - self.b) * (state.h_i - old)
        return send_momentum(problem, self.compressor, self.a, x, h_i, state, key)
