"""SVRG: stochastic gradients corrected by those at a snapshot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from buropt.optim.base import Array, FixedStep
from buropt.optim.compiled import (
    ONE,
    can_run,
    corrected_steps,
    linear_loops,
    rounds_to_end,
    rounds_within,
    snapshot_gradient,
    until_pick,
)
from buropt.optim.epochs import RESTARTS, Restart, is_last, pick_one
from buropt.optim.sampling import (
    CORRECTED,
    Corrected,
    draw,
    draw_rounds,
    largest_smoothness,
    require_batch,
)

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.inner import Lazy
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), snapshot w (d,), its gradient full (d,), and a candidate for the next one.

    On linear models `lazy` stands for x.
    """

    x: Array
    w: Array
    full: Array
    picked: Array
    lazy: Lazy | None = None


@dataclass(frozen=True)
class SVRG(FixedStep[State]):
    """SVRG, Johnson and Zhang 2013; with psi, Prox-SVRG, arXiv:1403.4699.

        g  = grad f_j(x) - grad f_j(w) + grad f(w),   j random (or a batch)
        x+ = prox(x - step_size g)
        after m steps  w+ = x+ (restart "last"), or both are a random one of the m iterates

    Theorem 1 (restart "random"), for convex losses and strongly convex f: E f(w+) - f* <= r (f(w) -
    f*) with r = 1/(mu s (1 - 2 L s) m) + 2 L s/(1 - 2 L s), s the step size, L = Lmax of the
    samples. With s = 1/(10 Lmax) and m = 50 Lmax/mu, r = 1/2. The last iterate is what is used in
    practice. With importance sampling the mean of the L_j stands for Lmax (arXiv:1403.4699),
    with a regularizer the Ls of `sampling` for one sample.

    Parameters
    ----------
    m : int, optional
        Steps of an epoch; None: 50 Lmax/mu, at most 2N/batch_size (two passes, which the paper's
        experiments take), and that if mu = 0.
    batch_size : int
    sampling : {"nice", "importance"}
        Batches without replacement, or independent draws with probabilities L_j / sum_k L_k; see
        `sampling`.
    restart : {"last", "random"}
        Options I and II of the paper.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/(10 Lmax).
    Oracle: 2 sample gradients; every m steps 1 full gradient.
    Bits: d floats up, d down; every m steps d more up.
    Memory: x, w, grad f(w).
    Source: Johnson and Zhang 2013 (NIPS), Theorem 1; arXiv:1403.4699.
    """

    proximal: ClassVar[bool] = True

    m: int | None = None
    batch_size: int = 1
    sampling: Corrected = "nice"
    restart: Restart = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_choice("sampling", CORRECTED)
        self.require_whole("m", "batch_size")
        self.require_choice("restart", RESTARTS)

    def theory(self, problem: Problem) -> SVRG:
        require_batch("SVRG", self.batch_size, problem.n_samples)
        self.require_convex(problem)
        L, mu = largest_smoothness(problem, self.sampling), problem.constants.mu
        m = self.m
        if m is None:
            m = math.ceil(2 * problem.n_samples / self.batch_size)
            m = m if mu == 0 else min(m, math.ceil(50 * L / mu))
        return self.settled(problem, 1 / (10 * L), m=m)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, x0, snapshot_gradient(self, problem, x0, self.batch_size), x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.m is None:
            raise self.unsettled("m")
        if linear_loops(self, problem, self.batch_size) is not None:
            return self.run(problem, state, key, ONE)[0]
        idx, weights = draw(problem, self.sampling, self.batch_size, key)
        problem.broadcast()
        problem.send_dense()
        g = problem.sample_grad_difference(state.x, state.w, idx, weights) + state.full
        x = problem.prox(state.x - self.gamma * g, self.gamma)
        random = self.restart == "random"
        picked = pick_one(state.picked, state.x, key, self.m) if random else x
        if not is_last(key, self.m):
            return State(x, state.w, state.full, picked)
        return self._restarted(problem, picked)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        if self.m is None:
            raise self.unsettled("m")
        b = self.batch_size
        if not can_run(self, problem, b):
            return super().run(problem, state, key, limits)
        rounds = rounds_within(limits, problem, 2 * b, b)
        rounds = min(rounds, rounds_to_end(key, self.m))
        picked = state.picked
        if self.restart == "random":
            picks, rounds = until_pick(key, self.m, rounds)
            picked = state.x if picks else picked
        batch = draw_rounds(problem, self.sampling, b, key, rounds)
        x, lazy, done = corrected_steps(self, problem, state, batch, limits.seconds)
        if self.restart == "last":
            picked = x
        if rounds_to_end(key, self.m) == done:
            return self._restarted(problem, picked), done
        return State(x, state.w, state.full, picked, lazy), done

    def _restarted(self, problem: Problem, w: Array) -> State:
        problem.send_dense()  # at the point of the next round, whose broadcast it is
        return State(w, w, snapshot_gradient(self, problem, w, self.batch_size), w)
