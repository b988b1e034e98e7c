"""ProxSkip: local steps whose drift is learned, with provably fewer communications."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep, mean
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """The mean x (d,) of the workers' x_i (n, d), and their control variates h (n, d).

    With psi x is what was sent last.
    """

    x: Array
    x_i: Array
    h: Array


@dataclass(frozen=True)
class ProxSkip(FixedStep[State]):
    """ProxSkip for consensus (Scaffnew), Mishchenko et al. 2022, arXiv:2202.09357.

        worker i:  y_i = x_i - step_size (grad f_i(x_i) - h_i)
        one coin for all, c = 1 with probability p:
            c = 1:  x_i+ = prox(mean_k (y_k - (step_size/p) h_k), step_size/p)   (communication)
            c = 0:  x_i+ = y_i
        h_i+ = h_i + (p/step_size) (x_i+ - y_i)

    h starts at 0. Without psi the sum of the h_i stays 0. Step size 1/Lmax, p = 1/sqrt(k), k =
    Lmax/mu, where every f_i is mu-strongly convex: sum_i |x_i - x*|^2 + (step_size/p)^2 sum_i |h_i
    - grad f_i(x*)|^2 contracts in expectation by 1 - min(step_size mu, p^2), so k log 1/epsilon
    steps need sqrt(k) log 1/epsilon communications. With a fixed period 1/p it is Scaffold, option
    II. All workers take part in every round, as in the theorem.

    Parameters
    ----------
    p : float, optional
        In (0, 1]; 1 is gradient descent. None: sqrt(mu/Lmax).

    Notes
    -----
    Problems: every f_i strongly convex, with prox.
    Step size: 1/Lmax.
    Oracle: 1 full gradient, every worker's at its own point.
    Bits: d floats up and d down, with probability p.
    Memory: x_i, h_i of every worker.
    Source: arXiv:2202.09357, Algorithm 2, Theorem 3.6.
    """

    proximal: ClassVar[bool] = True

    p: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)

    def theory(self, problem: Problem) -> ProxSkip:
        self.require_convex(problem)
        L_max, mu = problem.constants.L_max, problem.constants.mu_worker
        if self.p is None and mu == 0:
            raise self.no_theorem(
                "not every worker's function is known to be strongly convex; give optimizer.p"
            )
        p = math.sqrt(mu / L_max) if self.p is None else self.p
        return self.settled(problem, 1 / L_max, p=p)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        x_i = np.tile(x0, (problem.n_workers, 1))
        return State(x0, x_i, np.zeros_like(x_i))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None:
            raise self.unsettled("p")
        gamma, p = self.gamma, self.p
        y = state.x_i - gamma * (problem.local_grads(state.x_i) - state.h)
        if not key.fold(Purpose.COIN).coin(p):
            # With psi, the mean need not be a point that psi allows.
            return State(mean(y) if problem.psi is None else state.x, y, state.h)
        problem.send_dense()
        x = problem.prox(mean(y - (gamma / p) * state.h), gamma / p)
        problem.broadcast()
        return State(x, np.tile(x, (len(y), 1)), state.h + (p / gamma) * (x - y))
