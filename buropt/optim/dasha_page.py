"""DASHA-PAGE: DASHA on local PAGE estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, unbiased_omega
from buropt.optim.dasha import State, dense_start, momentum_error, send_momentum
from buropt.optim.sampling import local_smoothness, worker_batches
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


@dataclass(frozen=True)
class DASHAPAGE(FixedStep[State]):
    """DASHA-PAGE, Tyurin and Richtarik 2022, arXiv:2202.01268: DASHA on local PAGE estimates.

        h_i+ = grad f_i(x+)                                          with probability p
             = h_i + mean_{j in I_i} (grad f_ij(x+) - grad f_ij(x))  otherwise, |I_i| = B

    and the rest as in `DASHA`; one coin for all. p = B/(m + B) with m samples a worker. Step size
    1/(L + sqrt(8 omega (2 omega + 1)/n (L~^2 + 1.5 (1 - p) M^2/B) + 2 (1 - p) M^2/(p n B))), M the
    largest L_ij; derived here. The paper's root is quoted as 48 omega (2 omega + 1)/n ((1 - p)
    M^2/B + L~^2) + 2 (1 - p) M^2/(p n B). For another a, as in `DASHA`, 2 omega (2 omega + 1)/n is
    replaced by 2 omega/(n a (2 - a (2 omega + 1))).

    Parameters
    ----------
    a : float, optional
        In (0, 1], below 2/(2 omega + 1).
    p : float, optional
        In (0, 1].
    batch_size : int
        B, drawn with replacement from each worker's samples.
    compressor : Compressor
        Unbiased, drawn independently for every worker.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + sqrt(8 omega (2 omega + 1)/n (L~^2 + 1.5 (1-p) M^2/B) + 2 (1-p) M^2/(p n B))).
    Oracle: 2B sample gradients of every worker, or with probability p 1 full gradient.
    Bits: 1 compressed message up, d floats at the start; d down.
    Memory: x; g_i and h_i of every worker, mean of g_i.
    Source: arXiv:2202.01268, Algorithm 1.
    """

    a: float | None = None
    p: float | None = None
    batch_size: int = 1
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("a", "p", at_most=1)
        self.require_whole("batch_size")
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> DASHAPAGE:
        c, n, B = problem.constants, problem.n_workers, self.batch_size
        omega = unbiased_omega(self.compressor, problem.dim)
        p = B / (problem.n_samples / n + B) if self.p is None else self.p
        a = 1 / (2 * omega + 1) if self.a is None else self.a
        spread = (1 - p) * float(local_smoothness(problem).max()) ** 2 / B
        square = 4 * momentum_error(self, a, omega, n) * (c.L_tilde**2 + 1.5 * spread)
        return self.settled(problem, 1 / (c.L + math.sqrt(square + 2 * spread / (p * n))), a=a, p=p)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return dense_start(problem, x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None:
            raise self.unsettled("p")
        x = state.x - self.gamma * state.g
        problem.broadcast()
        if key.fold(Purpose.COIN).coin(self.p):
            h_i = problem.worker_grads(x)
        else:
            idx = worker_batches(problem, self.batch_size, key)
            h_i = state.h_i + problem.worker_grad_differences(x, state.x, idx)
        return send_momentum(problem, self.compressor, self.a, x, h_i, state, key)
