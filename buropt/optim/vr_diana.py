"""VR-DIANA: DIANA on variance-reduced local gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega
from buropt.optim.sampling import local_smoothness, worker_batches
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), shifts h (n, d), snapshot w (d,), and the workers' gradients full (n, d)."""

    x: Array
    h: Array
    w: Array
    full: Array


@dataclass(frozen=True)
class VRDiana(FixedStep[State]):
    """VR-DIANA, Horvath et al. 2019, arXiv:1904.05115 (the L-SVRG version).

        worker i:  g_i = grad f_ij(x) - grad f_ij(w) + grad f_i(w),   j random (or a batch)
                   m_i = C_i(g_i - h_i),   h_i+ = h_i + alpha m_i
        server:    x+  = prox(x - step_size mean_i (h_i + m_i))
        w+ = x (before the step) with probability p, one coin for all, else w

    h_i starts at 0, p = 1/m with m the number of batches in a worker's samples. On convex functions
    alpha = min(p/3, 1/(1 + omega)) and step size 1/(A + M C) of the unified theory
    (arXiv:1905.11261) with A = (1 + (4 omega + 2)/n) Lmax, C = (p + 4 alpha) Lmax, M = 4 (omega +
    1)/(n alpha), Lmax over the f_ij: max(1 - step_size mu, 1 - alpha/2) is the rate. The constants
    follow from E|g_i - h_i|^2 <= 4 Lmax D + 2 H + 2 W, H and W the mean squares of h_i - grad
    f_i(x*) and grad f_ij(w) - grad f_ij(x*), D = f - f*; the tests check the contraction by
    enumeration. Otherwise Theorem 4 of the paper, with 1/p for its m: alpha = 1/(1 + omega), 1/(10
    Lmax sqrt(1 + omega/n) (p^(-2/3) + omega + 1)).

    Parameters
    ----------
    alpha : float, optional
        Step of the shifts; None: the above, of which the first rule allows a part.
    p : float, optional
        Probability of a new snapshot, in (0, 1]; None: 1/m.
    batch_size : int
        Drawn with replacement from each worker's samples.
    compressor : Compressor
        Unbiased.

    Notes
    -----
    Problems: smooth, with prox if convex.
    Step size: 1/(A + M C); nonconvex 1/(10 Lmax sqrt(1 + omega/n) (p^(-2/3) + omega + 1)).
    Oracle: 2 batch_size sample gradients of every worker; with probability p 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x, w; h_i and grad f_i(w) of every worker.
    Source: arXiv:1904.05115, Theorem 4; arXiv:1905.11261.
    """

    proximal: ClassVar[bool] = True

    alpha: float | None = None
    p: float | None = None
    batch_size: int = 1
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("alpha", "p", at_most=1)
        self.require_whole("batch_size")
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> VRDiana:
        n, omega = problem.n_workers, unbiased_omega(self.compressor, problem.dim)
        p = min(1.0, n * self.batch_size / problem.n_samples) if self.p is None else self.p
        L_max = float(np.max(local_smoothness(problem)))
        if problem.constants.convex:
            alpha = self.shift_step(min(p / 3, 1 / (1 + omega)), smaller=True)
            A = (1 + (4 * omega + 2) / n) * L_max
            C, M = (p + 4 * alpha) * L_max, 4 * (omega + 1) / (n * alpha)
            step_size = 1 / (A + M * C)
        else:
            alpha = self.shift_step(1 / (1 + omega))
            growth = float(p ** (-2 / 3)) + omega + 1
            step_size = 1 / (10 * L_max * math.sqrt(1 + omega / n) * growth)
        return self.settled(problem, step_size, alpha=alpha, p=p)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        full = problem.worker_grads(x0)
        return State(x0, np.zeros_like(full), x0, full)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.alpha is None or self.p is None:
            raise self.unsettled("alpha" if self.alpha is None else "p")
        idx = worker_batches(problem, self.batch_size, key)
        g_i = problem.worker_grad_differences(state.x, state.w, idx) + state.full
        problem.broadcast()
        m_i = problem.send(self.compressor, g_i - state.h, key)
        x = problem.prox(state.x - self.gamma * mean(state.h + m_i), self.gamma)
        h = state.h + self.alpha * m_i
        if key.fold(Purpose.COIN).coin(self.p):
            return State(x, h, state.x, problem.worker_grads(state.x))
        return State(x, h, state.w, state.full)
