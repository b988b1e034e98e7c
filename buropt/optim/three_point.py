"""Three point compressors: what LAG, CLAG and 3PC share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, FixedStep, mean

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), mean g (d,) of the estimates g_i (n, d), the workers' gradients (n, d)."""

    x: Array
    g: Array
    g_i: Array
    grads: Array


@dataclass(frozen=True)
class ThreePoint(FixedStep[State]):
    """A method of the 3PC family, Richtarik et al. 2022, arXiv:2202.00998.

        x+        = x - step_size mean_i g_i
        worker i:   g_i+ = C(g_i, grad f_i(x), grad f_i(x+))

    where E|C(h, y, z) - z|^2 <= (1 - A) |h - y|^2 + B |z - y|^2. g_i starts at grad f_i(x0), one
    dense message. Step size 1/(L + L+ sqrt(B/A)): the mean of E|grad f(x_t)|^2 over t < T is at
    most 2 (f(x0) - f*)/(step_size T).
    """

    @abstractmethod
    def constants(self, dim: int) -> tuple[float, float]:
        """A and B."""

    @abstractmethod
    def send(self, problem: Problem, h: Array, y: Array, z: Array, key: Key) -> Array:
        """C(h, y, z) of all workers, (n, d) each, and the messages that it takes."""

    def theory(self, problem: Problem) -> ThreePoint:
        c = problem.constants
        A, B = self.constants(problem.dim)
        L_plus = c.L_tilde if c.L_plus is None else c.L_plus
        return self.settled(problem, 1 / (c.L + L_plus * math.sqrt(B / A)))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        grads = problem.worker_grads(x0)
        problem.send_dense()
        return State(x0, mean(grads), grads, grads)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = state.x - self.gamma * state.g
        problem.broadcast()
        grads = problem.worker_grads(x)
        g_i = self.send(problem, state.g_i, state.grads, grads, key)
        return State(x, mean(g_i), g_i, grads)
