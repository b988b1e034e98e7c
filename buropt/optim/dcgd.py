"""Distributed compressed gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and the mean g (d,) of the compressed gradients there."""

    x: Array
    g: Array


@dataclass(frozen=True)
class DCGD(FixedStep[State]):
    """Distributed compressed gradient descent, Khirirat et al. 2018, arXiv:1806.06573.

        worker i:  m_i = C_i(grad f_i(x))
        server:    g   = mean_i m_i,   x+ = prox(x - step_size g)

    Step size 1/(L + 2 omega Lmax / n), from E|g|^2 <= 2 (L + 2 omega Lmax / n) (f - f*) + (2 omega
    / n) s, s = mean_i |grad f_i(x*)|^2, on convex f_i. Then E|x_k - x*|^2 <= (1 - step_size mu)^k
    |x0 - x*|^2 + 2 step_size omega s / (n mu): unless all workers share the minimiser, a constant
    step stops at a floor proportional to it. `Diana` removes the floor.

    The compressor must be unbiased: with Top1 there is a strongly convex problem of three workers
    on which the iterates grow for every step size (Beznosikov et al., arXiv:2002.12410).

    Notes
    -----
    Problems: convex, with prox; others as a heuristic.
    Step size: 1/(L + 2 omega Lmax / n).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, d floats down.
    Memory: x, g.
    Source: arXiv:1806.06573; arXiv:1905.11261, Theorem 4.1.
    """

    proximal: ClassVar[bool] = True

    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        self.require_positive("step_size", "step_size_factor")
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> DCGD:
        c = problem.constants
        omega = unbiased_omega(self.compressor, problem.dim)
        return self.settled(problem, 1 / (c.L + 2 * omega * c.L_max / problem.n_workers))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, mean(problem.send(self.compressor, problem.worker_grads(x0), key)))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = problem.prox(state.x - self.gamma * state.g, self.gamma)
        problem.broadcast()
        return State(x, mean(problem.send(self.compressor, problem.worker_grads(x), key)))
