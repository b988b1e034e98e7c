"""Gradient descent with Polyak's step size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, Optimizer

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), and value f and gradient g (d,) there."""

    x: Array
    f: float
    g: Array


@dataclass(frozen=True)
class PolyakStep(Optimizer[State]):
    """Gradient descent with Polyak's step size, Polyak 1969; Hazan and Kakade, arXiv:1905.00313.

        x+ = x - step_size_factor (f(x) - f*) / |grad f(x)|^2 grad f(x)

    For convex f and the factor 1, |x - x*|^2 decreases by (f(x) - f*)^2 / |grad f(x)|^2 at least,
    so with |grad f|^2 <= 2 L (f - f*) the best of T iterates has f - f* <= 2 L |x0 - x*|^2 / T, and
    |x - x*|^2 contracts by 1 - mu/(4L) if f is strongly convex. No constant but f* is used.

    Parameters
    ----------
    f_star : float, optional
        The minimum of f, or a guess from below; None: the problem's.
    step_size_factor : float
        In (0, 2).

    Notes
    -----
    Problems: convex, f* known.
    Step size: (f(x) - f*) / |grad f(x)|^2.
    Oracle: 1 value and full gradient.
    Bits: d + 1 floats up, d down.
    Memory: x, g.
    Source: Polyak 1969; arXiv:1905.00313, Theorem 1.
    """

    f_star: float | None = None
    step_size_factor: float = 1.0

    def __post_init__(self) -> None:
        self.require_positive("step_size_factor", at_most=2)

    def theory(self, problem: Problem) -> PolyakStep:
        if self.f_star is not None:
            return self.settled_with(problem)
        if not problem.constants.convex:
            raise self.no_theorem("it is not known to be convex; give optimizer.f_star to run it")
        f_star = problem.constants.f_star
        if f_star is None and problem.psi is None:
            raise self.no_theorem("its minimum is not known; give optimizer.f_star")
        return self.settled_with(problem, f_star=f_star)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, *self._ask(problem, x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.f_star is None:
            raise self.unsettled("f_star")
        square = float(state.g @ state.g)
        # Rounding may put f(x) below f*, and at a solution the gradient may be 0.
        gap = max(state.f - self.f_star, 0.0)
        x = state.x - (self.step_size_factor * gap / square if gap > 0 else 0.0) * state.g
        problem.broadcast()
        return State(x, *self._ask(problem, x))

    def _ask(self, problem: Problem, x: Array) -> tuple[float, Array]:
        problem.send_dense()
        problem.send_entries(1)
        return problem.value_and_grad(x)
