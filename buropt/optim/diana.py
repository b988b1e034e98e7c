"""DIANA: compressed differences of gradients against a learned shift."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

Convexity: TypeAlias = Literal["auto", "strong", "weak", "none"]


class State(NamedTuple):
    """Iterate x (d,), gradient estimate g (d,) there, and the workers' shifts h (n, d)."""

    x: Array
    g: Array
    h: Array


@dataclass(frozen=True)
class Diana(FixedStep[State]):
    """DIANA, Mishchenko et al. 2019, arXiv:1901.09269; Horvath et al. 2019, arXiv:1904.05115.

        worker i:  m_i = C_i(grad f_i(x) - h_i),   h_i+ = h_i + alpha m_i
        server:    g   = mean_i (h_i + m_i),       x+   = prox(x - step_size g)

    h_i starts at 0, which costs no message.  alpha = 1/(1 + omega). The step size depends on the
    problem:

        strongly convex    1/(Lmax (1 + 6 omega / n))
        convex             1/(Lmax (1 + 4 omega / n))
        nonconvex          1/(10 Lmax sqrt(1 + omega / n) (2 + omega))

    In the first case |x - x*|^2 + M step_size^2 mean_i |h_i - grad f_i(x*)|^2 with M = 4 omega / (n
    alpha) contracts by max(1 - step_size mu, 1 - alpha/2). The third is Theorem 4 of 1904.05115
    with m = 1, which assumes that every f_i is L-smooth, so its L is read as Lmax.

    Parameters
    ----------
    alpha : float, optional
        Step of the shifts; None: 1/(1 + omega), of which the first two rules allow a part.
    convexity : {"auto", "strong", "weak", "none"}
        Which of the three rules holds. "auto" takes the last, which is always safe, unless the
        problem knows that every f_i is convex; then the first if it knows a mu > 0, else the
        second.
    compressor : Compressor
        Unbiased.

    Notes
    -----
    Problems: smooth, with prox if convex.
    Step size: 1/(Lmax (1 + 6 omega / n)), strongly convex.
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x, g; h_i of every worker.
    Source: arXiv:1901.09269; arXiv:1904.05115, Theorem 4.
    """

    proximal: ClassVar[bool] = True

    alpha: float | None = None
    convexity: Convexity = "auto"
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        self.require_positive("step_size", "step_size_factor")
        self.require_positive("alpha", at_most=1)
        if self.convexity not in get_args(Convexity):
            choices = ", ".join(get_args(Convexity))
            raise ValueError(f"Diana.convexity must be one of {choices}, got {self.convexity!r}")
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> Diana:
        c, n = problem.constants, problem.n_workers
        omega = unbiased_omega(self.compressor, problem.dim)
        convexity = self.convexity
        if convexity == "auto":
            convexity = "none" if not c.convex else "strong" if c.mu > 0 else "weak"
        if convexity == "strong":
            step_size = 1 / (c.L_max * (1 + 6 * omega / n))
        elif convexity == "weak":
            step_size = 1 / (c.L_max * (1 + 4 * omega / n))
        else:
            step_size = 1 / (10 * c.L_max * math.sqrt(1 + omega / n) * (2 + omega))
        alpha = self.shift_step(1 / (1 + omega), smaller=convexity != "none")
        return self.settled(problem, step_size, alpha=alpha)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        h = np.zeros((problem.n_workers, problem.dim), dtype=x0.dtype)
        return self._estimate(problem, x0, h, key)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = problem.prox(state.x - self.gamma * state.g, self.gamma)
        problem.broadcast()
        return self._estimate(problem, x, state.h, key)

    def _estimate(self, problem: Problem, x: Array, h: Array, key: Key) -> State:
        if self.alpha is None:
            raise self.unsettled("alpha")
        m = problem.send(self.compressor, problem.worker_grads(x) - h, key)
        return State(x, mean(h + m), h + self.alpha * m)
