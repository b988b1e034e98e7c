"""Gradient descent with a line search for the weak Wolfe conditions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.armijo import MOST_TRIALS, rounding_of
from buropt.optim.base import Array, FixedStep

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), value f and gradient g (d,) there, and the step size that led there."""

    x: Array
    f: float
    g: Array
    accepted: float


@dataclass(frozen=True)
class Wolfe(FixedStep[State]):
    """Gradient descent with a bracketing search for the weak Wolfe conditions, Wolfe 1969.

        x+ = x - s g,  g = grad f(x), with
        f(x+) <= f(x) - decrease s |g|^2          (else s is too long)
        <grad f(x+), g> <= curvature |g|^2        (else s is too short)

    Steps are doubled until one is too long, then the bracket is halved. The search starts at the
    step accepted last, the first time at `step_size`. It ends for every f that is bounded below.
    For L-smooth f an accepted step has s >= (1 - curvature)/L, hence f decreases by decrease (1 -
    curvature) |g|^2 / L at least (Zoutendijk).

    Parameters
    ----------
    decrease, curvature : float
        With 0 < decrease < curvature < 1.

    Notes
    -----
    Problems: smooth.
    Step size: of the first trial, 1/L; then found.
    Oracle: 1 value and full gradient for each trial.
    Bits: d + 1 floats up for each trial, d down.
    Memory: x, g.
    Source: Wolfe 1969; Nocedal and Wright 2006, Theorem 3.2; bisection as Burke, Lewis and Overton.
    """

    decrease: float = 1e-4
    curvature: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("decrease", "curvature", at_most=1 - 1e-6)
        if not self.decrease < self.curvature:
            raise ValueError(
                f"Wolfe.decrease must be below curvature, got {self.decrease} and {self.curvature}"
            )

    def theory(self, problem: Problem) -> Wolfe:
        return self.settled(problem, 1 / problem.constants.L)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, *self._ask(problem, x0), self.gamma)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        square = float(state.g @ state.g)
        allowed = rounding_of(state.f, state.x)
        low, high, s = 0.0, math.inf, state.accepted
        for _ in range(MOST_TRIALS):
            x = state.x - s * state.g
            problem.broadcast()
            f, g = self._ask(problem, x)
            if not f <= state.f - self.decrease * s * square + allowed:
                high = s
            elif float(g @ state.g) > self.curvature * square:
                low = s
            else:
                break
            s = 2 * s if high == math.inf else (low + high) / 2
        return State(x, f, g, s)

    def _ask(self, problem: Problem, x: Array) -> tuple[float, Array]:
        problem.send_dense()
        problem.send_entries(1)
        return problem.value_and_grad(x)
