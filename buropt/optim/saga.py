"""SAGA: stochastic gradients corrected by a table of old ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep, mean
from buropt.optim.lsvrg import variance_reduced_step
from buropt.optim.sampling import require_batch, subset
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
class SAGA(FixedStep[State]):
    """SAGA, Defazio, Bach and Lacoste-Julien 2014, arXiv:1407.0202.

        g   = grad f_j(x) - T_j + mean_k T_k,   j random (or a batch)
        T_j = grad f_j(x)
        x+  = prox(x - step_size g)

    T starts at the gradients at x0. Step size 1/(3 Lmax), for which the error contracts by 1 -
    min(1/(4N), mu/(3 Lmax)) on strongly convex f and the mean iterate has an error of O(N/k) on
    convex f. With batches of b > 1 samples, and as a rule for which one step can be checked, 1/(2
    Ls + 4 c Lmax) of `LSVRG` (1/(6 Lmax) for b = 1): |x - x*|^2 + 4 c (N/b) step_size^2 mean_j |T_j
    - grad f_j(x*)|^2 contracts by max(1 - step_size mu, 1 - b/(2N)). The rate of 1/(3 Lmax) was
    not found again word for word, the step was.

    Parameters
    ----------
    batch_size : int
        Without replacement.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/(3 Lmax).
    Oracle: 1 sample gradient; N at the start.
    Bits: d floats up, d down.
    Memory: x, N gradients and their mean.
    Source: arXiv:1407.0202, Corollary 1 and section 2; arXiv:1905.11261.
    """

    proximal: ClassVar[bool] = True

    batch_size: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("batch_size")

    def theory(self, problem: Problem) -> SAGA:
        require_batch("SAGA", self.batch_size, problem.n_samples)
        self.require_convex(problem)
        if self.batch_size == 1:
            return self.settled(problem, 1 / (3 * problem.constants.L_sample_max))
        return self.settled(problem, variance_reduced_step(problem, self.batch_size))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        grads = problem.sample_grads(x0)
        return State(x0, Table(grads), mean(grads))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        idx = subset(key.fold(Purpose.SAMPLE), problem.n_samples, self.batch_size)
        problem.broadcast()
        problem.send_dense()
        grads = problem.sample_grads(state.x, idx)
        change = np.add.reduce(grads - state.table[idx], axis=0)
        g = change / self.batch_size + state.mean
        x = problem.prox(state.x - self.gamma * g, self.gamma)
        return State(x, state.table.replaced(idx, grads), state.mean + change / problem.n_samples)
