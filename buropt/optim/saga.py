"""SAGA: stochastic gradients corrected by a table of old ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import numpy as np

from buropt.inner import Lazy
from buropt.optim.base import Array, FixedStep, mean
from buropt.optim.compiled import ONE, can_run, linear_loops, rounds_within
from buropt.optim.lsvrg import variance_reduced_step
from buropt.optim.sampling import (
    CORRECTED,
    Batch,
    Corrected,
    draw_by_smoothness,
    draw_rounds,
    largest_smoothness,
    require_batch,
)
from buropt.optim.table import Table

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.problems.base import Problem
    from buropt.random import Key


UNIFORM = 0.5  # part of the draws with importance sampling, for every entry to be renewed


class State(NamedTuple):
    """Iterate x (d,), the table T (N, d) of gradients, and the mean (d,) of its rows.

    On linear models the table (N,) holds the slopes, of which the gradients of the losses are
    multiples of the rows of data; `mean` is that of the gradients, and `lazy` stands for x.
    """

    x: Array
    table: Table | Array
    mean: Array
    lazy: Lazy | None = None


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

    With importance sampling p_j = 1/(2N) + L_j/(2 sum_k L_k), the change of the gradient in g gets
    the weight 1/(N p_j), and the step size is 1/(6 LQ), LQ = max_j L_j/(N p_j), at most 2 mean_j
    L_j (and with a regularizer at least the smoothness of loss_j/(N p_j) + r): |x - x*|^2 +
    step_size^2 mean_j 4/(N p_j^2) |T_j - grad f_j(x*)|^2 contracts by max(1 - step_size mu, 1 -
    min_j p_j/2). This follows like the rule for batches.

    For a linear model phi_j(a_j'x) + (l2/2)|x|^2 over CSR data the table has a number for each
    sample, phi_j'(a_j'x) at the point where it was drawn last, and the regularizer's gradient is
    taken at x itself: g = (phi_j'(a_j'x) - T_j) a_j + mean_k T_k a_k + l2 x. A step costs as much
    as a_j has entries. This is SAGA on the losses with the regularizer added exactly; its variance
    is smaller, and the proof of the step is the same.

    Parameters
    ----------
    batch_size : int
        Without replacement.
    sampling : {"nice", "importance"}
        The latter for batch_size 1.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/(3 Lmax).
    Oracle: 1 sample gradient; N at the start.
    Bits: d floats up, d down.
    Memory: x, N gradients (linear models: N numbers) and their mean.
    Source: arXiv:1407.0202, Corollary 1 and section 2; arXiv:1905.11261.
    """

    proximal: ClassVar[bool] = True

    batch_size: int = 1
    sampling: Corrected = "nice"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("batch_size")
        self.require_choice("sampling", CORRECTED)
        if self.sampling == "importance" and self.batch_size != 1:
            raise ValueError("SAGA.sampling=importance needs batch_size=1, got more samples")

    def theory(self, problem: Problem) -> SAGA:
        require_batch("SAGA", self.batch_size, problem.n_samples)
        self.require_convex(problem)
        if self.sampling == "importance":
            L = largest_smoothness(problem, "importance", UNIFORM)
            return self.settled(problem, 1 / (6 * L))
        if self.batch_size == 1:
            return self.settled(problem, 1 / (3 * problem.constants.L_sample_max))
        return self.settled(problem, variance_reduced_step(problem, self.batch_size))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        linear = linear_loops(self, problem, self.batch_size)
        if linear is not None:
            problem.count(problem.n_samples)
            slopes, average = linear.slopes(x0)
            return State(x0, slopes, average, Lazy.at(x0, average))
        grads = problem.sample_grads(x0)
        return State(x0, Table(grads), mean(grads))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if linear_loops(self, problem, self.batch_size) is not None:
            return self.run(problem, state, key, ONE)[0]
        idx, weights = self._draw(problem, key, 1)
        idx = idx[0]
        problem.broadcast()
        problem.send_dense()
        if self.batch_size == 1:
            grads = problem.sample_grad(state.x, idx)[None]
        else:
            grads = problem.sample_grads(state.x, idx)
        table = cast(Table, state.table)
        change = np.add.reduce(grads - table[idx], axis=0)
        g = change if weights is None else weights[0] * change
        g = g / self.batch_size + state.mean
        x = problem.prox(state.x - self.gamma * g, self.gamma)
        return State(x, table.replaced(idx, grads), state.mean + change / problem.n_samples)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        linear = linear_loops(self, problem, self.batch_size)
        inner, lazy = problem.inner, state.lazy
        if linear is None and (self.batch_size > 1 or not can_run(self, problem, 1)):
            return super().run(problem, state, key, limits)
        rounds = rounds_within(limits, problem, self.batch_size, self.batch_size)
        idx, weights = self._draw(problem, key, rounds)
        table = np.array(state.table)
        if linear is not None and lazy is not None:
            rule = self.gamma, inner.l2 or 0.0, inner.l1 or 0.0
            lazy = lazy.copy()
            done = linear.core.saga(idx, weights, *rule, table, *lazy, limits.seconds)
            new = State(linear.point(lazy, *rule), table, lazy.q, lazy)
        else:
            x, average = state.x.copy(), state.mean.copy()
            loops, prox = inner.general_loops()
            done = loops.saga(idx, weights, self.gamma, prox, x, table, average, limits.seconds)
            new = State(x, Table(table), average)
        problem.count_steps(done, self.batch_size)
        return new, done

    def _draw(self, problem: Problem, key: Key, rounds: int) -> Batch:
        """The samples of this and the following rounds, (rounds, batch_size)."""
        if self.sampling == "importance":
            return draw_by_smoothness(problem, 1, key, rounds, UNIFORM)
        return draw_rounds(problem, "nice", self.batch_size, key, rounds)
