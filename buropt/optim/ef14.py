"""EF14: error compensation, the original error feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean
from buropt.optim.contractive import contraction, send_contractive
from buropt.optim.sampling import worker_batches

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and the errors e_i (n, d) that the workers still have to send."""

    x: Array
    e_i: Array


@dataclass(frozen=True)
class EF14(FixedStep[State]):
    """Error feedback (EC-SGD), Seide et al. 2014; Stich et al. 2018, arXiv:1809.07599.

        worker i:  p_i = e_i + step_size grad f_i(x),   m_i = C(p_i),   e_i+ = p_i - m_i
        server:    x+  = x - mean_i m_i

    The point x - mean_i e_i follows gradient descent with gradients taken at x. Step size alpha/(4
    L): with mean_i |grad f_i|^2 <= |grad f|^2 + z^2, the mean of |grad f(x_t)|^2 is at most 4
    (f(x0) - f*)/(step_size T), plus a term of order step_size^2 L^2 z^2/alpha^2 when workers
    differ: a constant step reaches a neighbourhood only, whose gradients shrink with the step.
    `EF21` has none. The step follows from the invariant and the bound sum |e_i|^2 <= (step_size
    (2/alpha - 1))^2 sum |grad f_i|^2; Stich and Karimireddy (arXiv:1909.05350) have 1/(10 L
    (2/alpha + M)) for stochastic gradients, quoted as usual. An unbiased C is used as C/(1 +
    omega).

    Parameters
    ----------
    batch_size : int, optional
        Samples of each worker, drawn with replacement; None: all.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: alpha/(4 L).
    Oracle: 1 full gradient, or batch_size sample gradients of every worker.
    Bits: 1 compressed message up, d floats down.
    Memory: x; e_i of every worker.
    Source: Seide et al. 2014 (Interspeech); arXiv:1809.07599; arXiv:2010.12292.
    """

    batch_size: int | None = None
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("batch_size")

    def theory(self, problem: Problem) -> EF14:
        alpha = contraction(self.compressor, problem.dim)
        return self.settled(problem, alpha / (4 * problem.constants.L))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros((problem.n_workers, problem.dim), x0.dtype))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        problem.broadcast()
        if self.batch_size is None:
            grads = problem.worker_grads(state.x)
        else:
            idx = worker_batches(problem, self.batch_size, key)
            grads = problem.worker_sample_grads(state.x, idx)
        p = state.e_i + self.gamma * grads
        m = send_contractive(problem, self.compressor, p, key)
        return State(state.x - mean(m), p - m)
