"""The heavy ball: gradient descent with momentum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), its gradient g (d,), and the velocity v (d,) that led there."""

    x: Array
    g: Array
    v: Array


@dataclass(frozen=True)
class HeavyBall(FixedStep[State]):
    """The heavy ball, Polyak 1964.

        v+ = momentum v + grad f(x)                             (no dampening)
        x+ = x - step_size v+ = x - step_size grad f(x) + momentum (x - x_previous)

    On strongly convex problems, unless the momentum is given,

        step_size = 4 / (sqrt(L) + sqrt(mu))^2,
        momentum  = ((sqrt(L) - sqrt(mu)) / (sqrt(L) + sqrt(mu)))^2,

    which is optimal on quadratics, where the error shrinks by sqrt(momentum) a step in the long
    run. For other functions that holds near the solution only, and there are some on which this
    choice does not converge (Lessard, Recht and Packard, arXiv:1408.3595). A given momentum, and
    0.9 where mu = 0, is combined with (1 - momentum)/L, which converges for every convex f
    (Ghadimi, Feyzmahdavian and Johansson, arXiv:1412.7457: any step below 2 (1 - momentum)/L).

    Parameters
    ----------
    momentum : float, optional
        In [0, 1); 0 is gradient descent.

    Notes
    -----
    Problems: smooth; theorems for convex ones.
    Step size: 4/(sqrt(L) + sqrt(mu))^2, or (1 - momentum)/L.
    Oracle: 1 full gradient.
    Bits: d floats up, d down.
    Memory: x, g, v.
    Source: Polyak 1964; Ghadimi et al. 2014, arXiv:1412.7457.
    """

    momentum: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_fraction("momentum")

    def theory(self, problem: Problem) -> HeavyBall:
        L, mu = problem.constants.L, problem.constants.mu
        if self.momentum is None and mu > 0:
            root_L, root_mu = math.sqrt(L), math.sqrt(mu)
            return self.settled(
                problem,
                4 / (root_L + root_mu) ** 2,
                momentum=((root_L - root_mu) / (root_L + root_mu)) ** 2,
            )
        momentum = 0.9 if self.momentum is None else self.momentum
        return self.settled(problem, (1 - momentum) / L, momentum=momentum)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0), np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.momentum is None:
            raise self.unsettled("momentum")
        v = self.momentum * state.v + state.g
        x = state.x - self.gamma * v
        problem.broadcast()
        problem.send_dense()
        return State(x, problem.grad(x), v)
