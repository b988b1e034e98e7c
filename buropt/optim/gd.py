"""Gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from buropt.optim.base import Array, FixedStep

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and its gradient g (d,)."""

    x: Array
    g: Array


@dataclass(frozen=True)
class GD(FixedStep[State]):
    """Gradient descent (Cauchy 1847).

        x+ = prox(x - step_size grad f(x))

    With step size 1/L, f(x_k) - f* <= L |x0 - x*|^2 / (2k) on convex f; f - f* contracts by 1 -
    mu/L under strong convexity (or the Polyak-Lojasiewicz inequality); and in general the mean of
    |grad f(x_t)|^2 over t < T is at most 2 L (f(x0) - f*) / T.

    Counted as a distributed method: each round a worker sends its dense gradient.

    Notes
    -----
    Problems: smooth, with prox.
    Step size: 1/L.
    Oracle: 1 full gradient.
    Bits: d floats up, d down.
    Memory: x, g.
    Source: Cauchy 1847; the rates are textbook, e.g. Nesterov 2018, Theorems 2.1.14 and 2.1.15.
    """

    proximal: ClassVar[bool] = True

    def theory(self, problem: Problem) -> GD:
        return self.settled(problem, 1 / problem.constants.L)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = problem.prox(state.x - self.gamma * state.g, self.gamma)
        problem.broadcast()
        problem.send_dense()
        return State(x, problem.grad(x))
