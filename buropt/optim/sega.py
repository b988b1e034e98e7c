"""SEGA: a gradient estimate learned from single coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and the sketched gradient h (d,)."""

    x: Array
    h: Array


@dataclass(frozen=True)
class SEGA(FixedStep[State]):
    """SEGA with coordinate sketches, Hanzely, Mishchenko and Richtarik 2018, arXiv:1809.03054.

        c  = a random coordinate,  e = (d_c f(x) - h_c) e_c
        g  = h + d e,   h+ = h + e
        x+ = prox(x - step_size g)

    Unlike `RCD` it moves along all coordinates, and so allows any psi. Step size 1/((6 d - 4) L),
    by the unified theory (arXiv:1905.11261) with E|g - grad f(x*)|^2 <= 4 d L D + 2 (d - 1) |h -
    grad f(x*)|^2: |x - x*|^2 + 4 d (d - 1) step_size^2 |h - grad f(x*)|^2 contracts by max(1 -
    step_size mu, 1 - 1/(2d)). The paper's own conditions (for some s > 0: step_size (2 (d - 1) + s
    mu) <= s/d and step_size d <= (1/L - s/d)/2) give a step of the same order; they were not found
    again word for word, which is why the derived one is the default.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/((6 d - 4) L).
    Oracle: 1 entry of the full gradient, 1/d of its cost in passes over the data.
    Bits: 1 float up, d down.
    Memory: x, h.
    Source: arXiv:1809.03054; arXiv:1905.11261, Theorem 4.1.
    """

    proximal: ClassVar[bool] = True

    def theory(self, problem: Problem) -> SEGA:
        self.require_convex(problem)
        return self.settled(problem, 1 / ((6 * problem.dim - 4) * problem.constants.L))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        coords = key.fold(Purpose.COORDINATE).integers(0, problem.dim, 1)
        problem.broadcast()
        problem.send_entries(1)
        e = problem.partial_grad(state.x, coords) - state.h[coords]
        g, h = state.h.copy(), state.h.copy()
        g[coords] += problem.dim * e
        h[coords] += e
        return State(problem.prox(state.x - self.gamma * g, self.gamma), h)
