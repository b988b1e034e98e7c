"""SAG: the average of the gradients seen last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep, mean
from buropt.optim.sampling import subset
from buropt.optim.table import Table
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), the table T (N, d) of gradients, and the mean (d,) of its rows."""

    x: Array
    table: Table
    mean: Array


@dataclass(frozen=True)
class SAG(FixedStep[State]):
    """Stochastic average gradient, Schmidt, Le Roux and Bach 2013, arXiv:1309.2388.

        T_j = grad f_j(x),   j random
        x+  = x - step_size mean_k T_k

    T starts at the gradients at x0. The direction is biased, and its variance goes to 0. Step size
    1/(16 Lmax): E f(x_k) - f* <= (1 - min(mu/(16 Lmax), 1/(8N)))^k C0 on strongly convex f, and the
    mean iterate has an error of O(N/k) on convex f.

    Notes
    -----
    Problems: convex.
    Step size: 1/(16 Lmax).
    Oracle: 1 sample gradient; N at the start.
    Bits: d floats up, d down.
    Memory: x, N gradients and their mean.
    Source: arXiv:1309.2388, Theorem 1.
    """

    def theory(self, problem: Problem) -> SAG:
        self.require_convex(problem)
        return self.settled(problem, 1 / (16 * problem.constants.L_sample_max))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        grads = problem.sample_grads(x0)
        return State(x0, Table(grads), mean(grads))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        idx = subset(key.fold(Purpose.SAMPLE), problem.n_samples, 1)
        problem.broadcast()
        problem.send_dense()
        grads = problem.sample_grads(state.x, idx)
        change = np.add.reduce(grads - state.table[idx], axis=0)
        average: Array = state.mean + change / problem.n_samples
        return State(state.x - self.gamma * average, state.table.replaced(idx, grads), average)
