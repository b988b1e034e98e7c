"""Nesterov's accelerated gradient method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from buropt.optim.base import Array, FixedStep

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), the extrapolated point y (d,), and t, which sets the convex momentum."""

    x: Array
    y: Array
    t: float


@dataclass(frozen=True)
class Nesterov(FixedStep[State]):
    """Nesterov's accelerated gradient method; with psi, FISTA (Beck and Teboulle 2009).

        x+ = prox(y - step_size grad f(y))
        y+ = x+ + b (x+ - x)

    Strongly convex: b = (sqrt(k) - 1) / (sqrt(k) + 1) with k = 1/(step_size mu), for which f(x_k) -
    f* <= (1 - 1/sqrt(k))^k (f(x0) - f* + (mu/2) |x0 - x*|^2). Convex (mu = 0): b = (t - 1) / t+,
    t+ = (1 + sqrt(1 + 4 t^2)) / 2 from t = 1, for which f(x_k) - f* <= 2 L |x0 - x*|^2 / (k+1)^2.

    Parameters
    ----------
    momentum : float, optional
        A constant b in [0, 1); 0 is gradient descent. None: the theorem's.
    mu : float, optional
        Strong convexity; None: the problem's. 0 chooses the method for convex functions.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/L.
    Oracle: 1 full gradient, at y.
    Bits: d floats up, d down.
    Memory: x, y.
    Source: Nesterov 1983; Nesterov 2018, Theorem 2.2.3; Beck and Teboulle 2009, Theorem 4.4.
    """

    proximal: ClassVar[bool] = True

    momentum: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_fraction("momentum")
        if self.mu != 0:
            self.require_positive("mu")

    def theory(self, problem: Problem) -> Nesterov:
        self.require_convex(problem)
        mu = problem.constants.mu if self.mu is None else self.mu
        method = self.settled(problem, 1 / problem.constants.L, mu=mu)
        if mu > 0 and self.momentum is None:
            root = 1 / math.sqrt(method.gamma * mu)
            momentum = max((root - 1) / (root + 1), 0.0)
            return method.settled_with(problem, momentum=momentum)
        return method

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, x0, 1.0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        problem.broadcast()
        problem.send_dense()
        x = problem.prox(state.y - self.gamma * problem.grad(state.y), self.gamma)
        t = (1 + math.sqrt(1 + 4 * state.t**2)) / 2
        b = (state.t - 1) / t if self.momentum is None else self.momentum
        return State(x, x + b * (x - state.x), t)
