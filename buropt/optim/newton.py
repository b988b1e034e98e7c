"""Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and its gradient g (d,)."""

    x: Array
    g: Array


@dataclass(frozen=True)
class Newton(FixedStep[State]):
    """Newton's method, damped by `step_size`.

        x+ = x - step_size H^-1 grad f(x),   H = Hessian of f at x

    With step size 1, convergence is quadratic near the solution: |x+ - x*| <= M |x - x*|^2 / (2 (mu
    - M |x - x*|)) where M is the Lipschitz constant of the Hessian. It is not global; from far away
    take `CubicNewton` or a smaller step. On a quadratic the first step is the last. Of a singular H
    the pseudo-inverse is used.

    Notes
    -----
    Problems: convex.
    Step size: 1.
    Oracle: 1 full gradient, 1 Hessian.
    Bits: d + d(d+1)/2 floats up, d down.
    Memory: x, g; H while a step is taken.
    Source: Nesterov 2018, Theorem 1.2.5.
    """

    def theory(self, problem: Problem) -> Newton:
        if not problem.constants.convex:
            raise self.no_theorem(
                "it is not known to be convex, and Newton goes to saddle points as well; take "
                "optimizer=cubic_newton"
            )
        return self.settled(problem, 1.0)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        problem.send_entries(problem.dim * (problem.dim + 1) // 2)
        hessian = problem.hessian(state.x)
        x = state.x - self.gamma * solve(hessian, state.g)
        problem.broadcast()
        problem.send_dense()
        return State(x, problem.grad(x))


def solve(hessian: Array, g: Array) -> Array:
    """The shortest d with H d = g up to least squares; anything that is not finite gives NaN."""
    if not np.isfinite(hessian).all():
        return np.full_like(g, np.nan)
    solution: Array = np.linalg.lstsq(hessian, g, rcond=None)[0]
    return solution.astype(g.dtype, copy=False)
