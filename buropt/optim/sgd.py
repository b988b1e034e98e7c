"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from buropt.inner import Lazy
from buropt.optim.base import Array
from buropt.optim.compiled import ONE, can_run, linear_loops, rounds_within
from buropt.optim.sampling import draw_rounds, solution_noise
from buropt.optim.schedules import CONSTANT
from buropt.optim.stochastic import Stochastic

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.inner import LinearLoops
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,). On linear models `lazy` stands for it."""

    x: Array
    lazy: Lazy | None = None


@dataclass(frozen=True)
class SGD(Stochastic[State]):
    """Minibatch SGD, Robbins and Monro 1951; step size by Gower et al. 2019, arXiv:1901.09401.

        x+ = prox(x - step_size grad f_S(x)),   S a random batch of batch_size samples

    Step size 1/(2 Ls), where Ls is the expected smoothness of the sampling (`sampling` has it for
    each). Then E|x_k - x*|^2 <= (1 - step_size mu)^k |x0 - x*|^2 + 2 step_size s / mu with s =
    E|g(x*)|^2: a constant step reaches a neighbourhood only, `Decreasing` steps converge. For
    nonconvex losses the rule is a heuristic. With psi, s is the variance at x* (arXiv:1905.11261).

    With `accuracy` the step is at most accuracy mu/(4 s), for which the neighbourhood is |x - x*|^2
    <= accuracy in the mean; s comes from the solution, which is solved for.

    Reshuffled: Mishchenko, Khaled and Richtarik 2020, arXiv:2006.05988. Step size 1/Lmax if every
    loss is strongly convex (Theorem 1: E|x_nT - x*|^2 <= (1 - step_size mu)^nT |x0 - x*|^2 + 2
    step_size s'/mu, s' = O(step_size Lmax n s)), otherwise 1/(sqrt(2) n Lmax), n batches an epoch.

    Parameters
    ----------
    accuracy : float, optional
        E|x - x*|^2 that is aimed at; needs mu > 0, a known solution and an unbiased sampling.

    Notes
    -----
    Problems: convex, with prox; others as a heuristic.
    Step size: 1/(2 Ls); reshuffled 1/Lmax or 1/(sqrt(2) n Lmax).
    Oracle: batch_size sample gradients.
    Bits: d floats up, d down.
    Memory: x.
    Source: arXiv:1901.09401, Theorem 3.1; arXiv:2006.05988, Theorems 1 and 2.
    """

    proximal: ClassVar[bool] = True

    accuracy: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("accuracy")

    def theory(self, problem: Problem) -> SGD:
        step_size = self.sgd_step_size(problem)
        if self.accuracy is not None and self.step_size is None and self.batch_size is not None:
            noise = solution_noise(problem, self.sampling, self.batch_size)
            if noise is None or problem.constants.mu == 0:
                raise self.no_theorem(
                    "accuracy needs mu > 0, a known solution and an unbiased sampling; give "
                    "optimizer.step_size"
                )
            if noise > 0:
                step_size = min(step_size, self.accuracy * problem.constants.mu / (4 * noise))
        return self.settled(problem, step_size)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self._linear_loops(problem) is not None:
            return self.run(problem, state, key, ONE)[0]
        step_size = self.step_at(key)
        g = self.batch_grad(problem, state.x, key)
        return State(problem.prox(state.x - step_size * g, step_size))

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        b = self.batch_size
        if b is None or not can_run(self, problem, b):
            return super().run(problem, state, key, limits)
        rounds = rounds_within(limits, problem, b, b)
        batch = draw_rounds(problem, self.sampling, b, key, rounds)
        linear, inner = self._linear_loops(problem), problem.inner
        if linear is not None:
            rule = self.gamma, inner.l2 or 0.0, inner.l1 or 0.0
            lazy = Lazy.at(state.x, np.zeros_like(state.x))
            if state.lazy is not None:
                lazy = state.lazy.copy()
            done = linear.core.sgd(batch.idx, batch.weights, *rule, *lazy, limits.seconds)
            new = State(linear.point(lazy, *rule), lazy)
        else:
            factors = [self.schedule.factor(key.round + k) for k in range(len(batch.idx))]
            x, (loops, prox) = state.x.copy(), inner.general_loops(batch.weights is not None)
            step_sizes = self.gamma * np.array(factors)
            done = loops.sgd(batch.idx, batch.weights, step_sizes, prox, x, limits.seconds)
            new = State(x)
        problem.count_steps(done, batch.idx.shape[1])
        return new, done

    def _linear_loops(self, problem: Problem) -> LinearLoops | None:
        if self.schedule != CONSTANT or self.batch_size is None:
            return None
        return linear_loops(self, problem, self.batch_size)
