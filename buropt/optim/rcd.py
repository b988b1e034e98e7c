"""Randomized coordinate descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from buropt.optim.base import Array, FixedStep
from buropt.optim.sampling import proportional
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

Coordinates: TypeAlias = Literal["uniform", "importance"]


class State(NamedTuple):
    """Iterate x (d,)."""

    x: Array


@dataclass(frozen=True)
class RCD(FixedStep[State]):
    """Randomized coordinate descent, Nesterov 2012.

        c    = a random coordinate
        x_c+ = x_c - (step_size / L_c) d_c f(x)       (scaled)
             = x_c - step_size d_c f(x)               (otherwise)

    L_c is the smoothness of f along coordinate c. With step_size = 1, scaled, E(f+ - f*) <= (1 -
    mu/(d max_c L_c)) (f - f*) for uniform coordinates and 1 - mu/sum_c L_c for the probabilities
    L_c / sum L_c ("importance"). Unscaled steps are 1/max_c L_c, with the first rate.

    Parameters
    ----------
    coordinates : {"uniform", "importance"}
    scaled : bool
        Each coordinate has its own step.

    Notes
    -----
    Problems: smooth; rates for convex and Polyak-Lojasiewicz.
    Step size: 1/L_c.
    Oracle: 1 entry of the full gradient, 1/d of its cost in passes over the data.
    Bits: 1 float up, d down.
    Memory: x.
    Source: Nesterov 2012 (SIAM J. Optim. 22), Theorem 2.
    """

    coordinates: Coordinates = "uniform"
    scaled: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_choice("coordinates", get_args(Coordinates))

    def theory(self, problem: Problem) -> RCD:
        needed = self.step_size is None or self.scaled or self.coordinates == "importance"
        if needed and problem.constants.L_coordinates is None:
            raise self.no_theorem(
                "its smoothness along coordinates is not known; give optimizer.step_size and "
                "write optimizer.scaled=false optimizer.coordinates=uniform"
            )
        if self.scaled or self.step_size is not None:
            return self.settled(problem, 1.0)
        return self.settled(problem, 1 / float(np.max(self._smoothness(problem))))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        key = key.fold(Purpose.COORDINATE)
        if self.coordinates == "importance":
            coords = proportional(key, self._smoothness(problem), 1)
        else:
            coords = key.integers(0, problem.dim, 1)
        problem.broadcast()
        problem.send_entries(1)
        step = self.gamma * problem.partial_grad(state.x, coords)
        if self.scaled:
            step /= self._smoothness(problem)[coords]
        x = state.x.copy()
        x[coords] -= step
        return State(x)

    def _smoothness(self, problem: Problem) -> NDArray[np.float64]:
        """All L_c, those of coordinates that do not matter made tiny instead of 0."""
        L_c = problem.constants.L_coordinates
        if L_c is None:
            raise self.unsettled("step_size")
        positive: NDArray[np.float64] = np.maximum(L_c, np.finfo(np.float64).tiny)
        return positive
