"""SGD with momentum, Polyak's and Nesterov's."""

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
    """Iterate x (d,) and velocity v (d,)."""

    x: Array
    v: Array


@dataclass(frozen=True)
class Momentum(Stochastic[State]):
    """SGD with momentum (stochastic heavy ball).

        v+ = momentum v + grad f_S(x)     (no dampening)
        x+ = x - step_size v+

    Step size (1 - momentum) times that of `SGD`, so that the steps add up to SGD's; for a momentum
    that does not depend on the iteration a rule of thumb. With the full gradient this is
    `HeavyBall` with (1 - momentum)/(2L), half of what convex functions allow.

    Parameters
    ----------
    momentum : float
        In [0, 1); 0 is SGD.

    Notes
    -----
    Problems: smooth.
    Step size: (1 - momentum)/(2 Ls).
    Oracle: batch_size sample gradients.
    Bits: d floats up, d down.
    Memory: x, v.
    Source: Polyak 1964; Sutskever et al. 2013 (ICML).
    """

    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_fraction("momentum")

    def theory(self, problem: Problem) -> Momentum:
        return self.settled(problem, (1 - self.momentum) * self.sgd_step_size(problem))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        v = self.momentum * state.v + self.batch_grad(problem, state.x, key)
        return State(state.x - self.step_at(key) * v, v)


@dataclass(frozen=True)
class NesterovSGD(Momentum):
    """SGD with Nesterov's momentum.

        v+ = momentum v + grad f_S(x)
        x+ = x - step_size (grad f_S(x) + momentum v+)

    The form used for networks: x is the point at which gradients are taken, y of `Nesterov`, with
    which it agrees for full gradients and the same constant momentum. Step size as for `Momentum`.

    Notes
    -----
    Problems: smooth.
    Step size: (1 - momentum)/(2 Ls).
    Oracle: batch_size sample gradients.
    Bits: d floats up, d down.
    Memory: x, v.
    Source: Nesterov 1983; Sutskever et al. 2013 (ICML).
    """

    def step(self, problem: Problem, state: State, key: Key) -> State:
        g = self.batch_grad(problem, state.x, key)
        v = self.momentum * state.v + g
        return State(state.x - self.step_at(key) * (g + self.momentum * v), v)
