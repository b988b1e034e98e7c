"""VR-MARINA: MARINA on differences of batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega
from buropt.optim.sampling import average_local_smoothness, worker_batches
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and gradient estimate g (d,) there."""

    x: Array
    g: Array


@dataclass(frozen=True)
class VRMarina(FixedStep[State]):
    """VR-MARINA for finite sums, Gorbunov et al. 2021, arXiv:2102.07845.

        x+ = x - step_size g
        g+ = grad f(x+)                                          with probability p (dense messages)
           = g + mean_i C_i(mean_{j in I_i} (grad f_ij(x+) - grad f_ij(x)))   otherwise

    One coin for all; I_i is a batch of worker i, the same at both points. p = min(1/(1 + omega),
    batch_size/(m + batch_size)), m samples a worker. Step size of Theorem 3.1, 1/(L + sqrt((1 - p)/
    (p n) (omega L+^2 + (1 + omega) M^2/batch_size))), where M^2 is the mean of the L_ij^2, a bound
    of the paper's average smoothness. With all samples in the batches it is MARINA, with one worker
    and C the identity PAGE.

    The paper on `PermK` (arXiv:2110.03300) has MARINA alone; the proof is the same here. With A, B
    of the AB inequality (see `Marina`) the batches add an independent error of at most V =
    M^2/batch_size to every worker's difference, and the root is that of (1 - p)/p ((A - B) L+^2 + B
    L+-^2 + (A + (1 - B)/n) V), which for A = omega/n and B = 0 is the theorem above.

    Parameters
    ----------
    p : float, optional
        In (0, 1].
    batch_size : int
        Drawn with replacement from each worker's samples.
    compressor : Compressor
        Unbiased; also PermK.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + sqrt((1 - p)/(p n) (omega L+^2 + (1 + omega) M^2/batch_size))).
    Oracle: 2 batch_size sample gradients of every worker, or with probability p 1 full gradient.
    Bits: 1 compressed message up, or d floats with probability p; d floats down.
    Memory: x, g.
    Source: arXiv:2102.07845, Theorem 3.1; arXiv:2110.03300.
    """

    p: float | None = None
    batch_size: int = 1
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)
        self.require_whole("batch_size")
        self.require_unbiased(self.compressor, independent=False)

    def theory(self, problem: Problem) -> VRMarina:
        c, n, b = problem.constants, problem.n_workers, self.batch_size
        omega = unbiased_omega(self.compressor, problem.dim)
        m = problem.n_samples / n
        p = min(1 / (1 + omega), b / (m + b)) if self.p is None else self.p
        L_plus = c.L_tilde if c.L_plus is None else c.L_plus
        L_pm = L_plus if c.L_pm is None else c.L_pm
        A, B = self.compressor.collective(problem.dim, n)
        spread = (A - B) * L_plus**2 + B * L_pm**2
        spread += (A + (1 - B) / n) * average_local_smoothness(problem) ** 2 / b
        return self.settled(problem, 1 / (c.L + math.sqrt((1 - p) / p * spread)), p=p)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None:
            raise self.unsettled("p")
        x = state.x - self.gamma * state.g
        problem.broadcast()
        if key.fold(Purpose.COIN).coin(self.p):
            problem.send_dense()
            return State(x, problem.grad(x))
        idx = worker_batches(problem, self.batch_size, key)
        differences = problem.worker_grad_differences(x, state.x, idx)
        return State(x, state.g + mean(problem.send(self.compressor, differences, key)))
