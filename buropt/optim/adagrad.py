"""AdaGrad with a step for each coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array
from buropt.optim.stochastic import Stochastic

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and the sum v (d,) of squared gradients."""

    x: Array
    v: Array


@dataclass(frozen=True)
class AdaGrad(Stochastic[State]):
    """AdaGrad, Duchi, Hazan and Singer 2011.

        v+ = v + g^2,   g = grad f_S(x)     (by coordinates)
        x+ = x - step_size g / (sqrt(v+) + epsilon)

    Convex losses and iterates within |x - x*|_inf <= D: with step_size = D/sqrt(2) the regret after
    T steps is at most sqrt(2) D sum_c sqrt(sum_t g_tc^2). D is not known, and the default 0.1 is a
    habit, no theorem.

    Parameters
    ----------
    epsilon : float
        Against division by 0.

    Notes
    -----
    Problems: convex; others as a heuristic.
    Step size: 0.1.
    Oracle: batch_size sample gradients.
    Bits: d floats up, d down.
    Memory: x, v.
    Source: Duchi, Hazan and Singer 2011 (JMLR 12), Theorem 5.
    """

    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("epsilon")

    def theory(self, problem: Problem) -> AdaGrad:
        return self.settled(problem, 0.1)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        g = self.batch_grad(problem, state.x, key)
        v = state.v + g * g
        return State(state.x - self.step_at(key) * g / (np.sqrt(v) + self.epsilon), v)
