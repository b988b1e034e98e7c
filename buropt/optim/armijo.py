"""Gradient descent with Armijo's backtracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

MOST_TRIALS = 60  # of one line search; halving so often has left the floats behind


class State(NamedTuple):
    """Iterate x (d,), value f and gradient g (d,) there, and the step size that led there."""

    x: Array
    f: float
    g: Array
    accepted: float


@dataclass(frozen=True)
class Armijo(FixedStep[State]):
    """Gradient descent with backtracking, Armijo 1966.

        x+ = x - s grad f(x),   s the first of t, shrink t, shrink^2 t, ... with
        f(x+) <= f(x) - decrease s |grad f(x)|^2

    t is `step_size` in the first iteration, then the step that was accepted last, divided by
    `shrink`, so that steps may grow. Every s <= 2 (1 - decrease)/L is accepted, so no accepted one
    is below the smaller of step_size and 2 shrink (1 - decrease)/L.

    Near the solution the decrease drowns in the rounding errors of f; the test allows for them.

    Parameters
    ----------
    decrease : float
        The part of the linear decrease that is demanded, in (0, 1).
    shrink : float
        In (0, 1).

    Notes
    -----
    Problems: smooth.
    Step size: of the first trial, 1/L; then found.
    Oracle: 1 full gradient, and 1 value for each trial, two on average.
    Bits: d floats and a value for each trial up, as many down.
    Memory: x, g.
    Source: Armijo 1966; Nocedal and Wright 2006, Algorithm 3.1.
    """

    decrease: float = 0.5
    shrink: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("decrease", "shrink", at_most=1 - 1e-6)

    def theory(self, problem: Problem) -> Armijo:
        return self.settled(problem, 1 / problem.constants.L)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        f, g = problem.value_and_grad(x0)
        return State(x0, f, g, self.shrink * self.gamma)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        slope = self.decrease * float(state.g @ state.g)
        allowed = rounding_of(state.f, state.x)
        s = state.accepted / self.shrink
        for _ in range(MOST_TRIALS):
            x = state.x - s * state.g
            problem.broadcast()
            problem.send_entries(1)
            f = problem.value(x)
            if f <= state.f - s * slope + allowed:
                break
            s *= self.shrink
        problem.send_dense()
        return State(x, f, problem.grad(x), s)


def rounding_of(value: float, x: Array) -> float:
    """The error that a value of this size may have in the arithmetic of x."""
    return 8 * float(np.finfo(x.dtype).eps) * abs(value)
