"""SARAH: a recursive gradient estimate, exact again at the start of every epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, FixedStep
from buropt.optim.compiled import (
    ONE,
    can_run,
    linear_loops,
    recursive_steps,
    rounds_to_end,
    rounds_within,
    until_pick,
)
from buropt.optim.epochs import RESTARTS, Restart, is_last, pick_one
from buropt.optim.sampling import require_batch, subset
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.inner import Lazy
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), the estimate v (d,) of its gradient, and a candidate for the next start.

    On linear models `lazy` stands for x and v.
    """

    x: Array
    v: Array
    picked: Array
    lazy: Lazy | None = None


@dataclass(frozen=True)
class SARAH(FixedStep[State]):
    """SARAH, Nguyen, Liu, Scheinberg and Takac 2017, arXiv:1703.00102.

        x+ = x - step_size v
        v+ = grad f_j(x+) - grad f_j(x) + v,   j random (or a batch)
        after the full step and m such inner steps  v+ = grad f(x+)   (restart "last"), or the next
        epoch starts at a random one of the m + 1 points of this one

    Within an epoch v is biased, and its error only adds up over the epoch. Theorem (restart
    "random"), for convex losses and strongly convex f, s the step size, L = Lmax of the samples:
    E|grad f(next start)|^2 <= r |grad f(start)|^2 with r = 1/(mu s (m+1)) + s L/(2 - s L). With s =
    1/(2 Lmax) and m = 4.5 Lmax/mu, r < 7/9. (The statement was not found again word for word; the
    tests check r on quadratics, over all draws of an epoch.)

    Parameters
    ----------
    m : int, optional
        Inner steps of an epoch, 0 or more; None: 4.5 Lmax/mu, at most 2N, and 2N if mu = 0.
    batch_size : int
        Without replacement.
    restart : {"last", "random"}

    Notes
    -----
    Problems: convex.
    Step size: 1/(2 Lmax).
    Oracle: 2 sample gradients; every m + 1 steps 1 full gradient.
    Bits: d floats up, d down.
    Memory: x, v.
    Source: arXiv:1703.00102, Algorithm 1.
    """

    m: int | None = None
    batch_size: int = 1
    restart: Restart = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("m", least=0)
        self.require_whole("batch_size")
        self.require_choice("restart", RESTARTS)

    def theory(self, problem: Problem) -> SARAH:
        require_batch("SARAH", self.batch_size, problem.n_samples)
        self.require_convex(problem)
        L, mu = problem.constants.L_sample_max, problem.constants.mu
        m = self.m
        if m is None:
            m = 2 * problem.n_samples
            m = m if mu == 0 else min(m, math.ceil(4.5 * L / mu))
        return self.settled(problem, 1 / (2 * L), m=m)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0), x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.m is None:
            raise self.unsettled("m")
        last = is_last(key, self.m + 1)
        if not last and linear_loops(self, problem, self.batch_size) is not None:
            return self.run(problem, state, key, ONE)[0]
        x = state.x - self.gamma * state.v
        random = self.restart == "random"
        picked = pick_one(state.picked, state.x, key, self.m + 1) if random else x
        problem.broadcast()
        problem.send_dense()
        if last:
            return State(picked, problem.grad(picked), picked)
        idx = subset(key.fold(Purpose.SAMPLE), problem.n_samples, self.batch_size)
        return State(x, problem.sample_grad_difference(x, state.x, idx) + state.v, picked)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        if self.m is None:
            raise self.unsettled("m")
        inner_rounds = rounds_to_end(key, self.m + 1) - 1
        b = self.batch_size
        if inner_rounds == 0 or not can_run(self, problem, b):
            return self.step(problem, state, key), 1
        rounds = min(inner_rounds, rounds_within(limits, problem, 2 * b, b))
        picked = state.picked
        if self.restart == "random":
            picks, rounds = until_pick(key, self.m + 1, rounds)
            picked = state.x if picks else picked
        old = state.x, state.v, state.lazy
        x, v, lazy, done = recursive_steps(self, problem, old, key, rounds, b, limits.seconds)
        return State(x, v, x if self.restart == "last" else picked, lazy), done
