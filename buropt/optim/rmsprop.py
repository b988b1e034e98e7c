"""RMSProp: gradients divided by a running mean of their size."""

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
    """Iterate x (d,) and the running mean v (d,) of squared gradients."""

    x: Array
    v: Array


@dataclass(frozen=True)
class RMSProp(Stochastic[State]):
    """RMSProp, Tieleman and Hinton 2012.

        v+ = beta v + (1 - beta) g^2,   g = grad f_S(x)     (by coordinates)
        x+ = x - step_size g / (sqrt(v+) + epsilon)

    Step size 0.001 and beta = 0.9, as in the lecture; no theorem. v starts at 0, so the first step
    moves every coordinate by step_size/sqrt(1 - beta).

    Parameters
    ----------
    beta : float
        In [0, 1).
    epsilon : float
        Against division by 0.

    Notes
    -----
    Problems: smooth, as a heuristic.
    Step size: 0.001.
    Oracle: batch_size sample gradients.
    Bits: d floats up, d down.
    Memory: x, v.
    Source: Tieleman and Hinton 2012, lecture 6.5 of "Neural networks for machine learning".
    """

    beta: float = 0.9
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_fraction("beta")
        self.require_positive("epsilon")

    def theory(self, problem: Problem) -> RMSProp:
        return self.settled(problem, 0.001)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        g = self.batch_grad(problem, state.x, key)
        v = self.beta * state.v + (1 - self.beta) * (g * g)
        return State(state.x - self.step_at(key) * g / (np.sqrt(v) + self.epsilon), v)
