"""AdGD: gradient descent whose step size follows the local smoothness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, FixedStep

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), its gradient g (d,), and both with the step before: x_old, g_old, lam, theta.

    lam is the step size that led from x_old to x, theta its ratio to the one before.
    """

    x: Array
    g: Array
    x_old: Array
    g_old: Array
    lam: float
    theta: float


@dataclass(frozen=True)
class AdGD(FixedStep[State]):
    """Adaptive gradient descent without descent, Malitsky and Mishchenko 2019, arXiv:1910.09529.

        lam+   = min(sqrt(1 + theta) lam, |x - x_old| / (2 |grad f(x) - grad f(x_old)|))
        x+     = x - lam+ grad f(x),    theta+ = lam+ / lam

    The first step has lam = step_size, and theta starts at infinity. Every other step needs neither
    L nor a line search. For convex f, f(average of x) - f* = O(1/k), and linear convergence if f is
    strongly convex, with the smoothness of f on the convex hull of the iterates.

    Notes
    -----
    Problems: convex, smooth near the iterates.
    Step size: of the first step, 1/(2L); then adaptive.
    Oracle: 1 full gradient.
    Bits: d floats up, d down.
    Memory: x, g, x_old, g_old.
    Source: arXiv:1910.09529, Algorithm 1, Theorems 1 and 2.
    """

    def theory(self, problem: Problem) -> AdGD:
        self.require_convex(problem)
        return self.settled(problem, 1 / (2 * problem.constants.L))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        g = problem.grad(x0)
        return State(x0, g, x0, g, 0.0, math.inf)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x_old, g_old = state.x, state.g
        if state.lam == 0:
            lam, theta = self.gamma, math.inf
        else:
            dx, dg = x_old - state.x_old, g_old - state.g_old
            curvature = 2 * math.sqrt(float(dg @ dg))
            growth = math.sqrt(1 + state.theta) * state.lam
            local = math.sqrt(float(dx @ dx)) / curvature if curvature > 0 else math.inf
            lam = min(growth, local)
            if lam == math.inf:  # no curvature was seen yet
                lam = state.lam
            theta = lam / state.lam
        x = x_old - lam * g_old
        problem.broadcast()
        problem.send_dense()
        return State(x, problem.grad(x), x_old, g_old, lam, theta)
