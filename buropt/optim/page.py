"""PAGE: a recursive gradient estimate that a coin makes exact again."""

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
    rounds_within,
    until_coin,
)
from buropt.optim.sampling import require_batch, subset
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.inner import Lazy
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and the estimate g (d,) of its gradient.

    On linear models `lazy` stands for both.
    """

    x: Array
    g: Array
    lazy: Lazy | None = None


@dataclass(frozen=True)
class PAGE(FixedStep[State]):
    """PAGE, Li, Bao, Zhang and Richtarik 2020, arXiv:2008.10898.

        x+ = x - step_size g
        g+ = grad f(x+)                                       with probability p
           = g + mean_{j in S} (grad f_j(x+) - grad f_j(x))   otherwise, S a batch of b samples

    g starts at grad f(x0), and p = b/(N + b). Step size of Theorem 1,

        1/(L + L~ sqrt((1 - p)/(p b))),   which is 1/(L + L~ sqrt(N)/b) for that p,

    where L~ = sqrt(mean_j L_j^2) over the samples (the paper has the average smoothness, which L~
    bounds, in both places): the mean of E|grad f(x_t)|^2 over t < T is at most 2 (f(x0) - f*) /
    (step_size T), and f - f* + step_size/(2p) |g - grad f|^2 never grows in expectation. With
    `polyak_lojasiewicz`, min(1/(L + L~ sqrt(2 (1 - p)/(p b))), p/(2 mu)), for which f - f* +
    (step_size/p) |g - grad f|^2 contracts by 1 - step_size mu; mu may be the constant of the
    inequality.

    Parameters
    ----------
    p : float, optional
        In (0, 1]; 1 is gradient descent.
    batch_size : int, optional
        b, without replacement; None: sqrt(N), which is the best in theory.
    polyak_lojasiewicz : bool
        Take the step size of the second theorem; needs mu > 0.

    Notes
    -----
    Problems: smooth; nonconvex too.
    Step size: 1/(L + L~ sqrt((1 - p)/(p b))).
    Oracle: 2b sample gradients, or with probability p 1 full gradient; N at the start.
    Bits: d floats up, d down.
    Memory: x, g.
    Source: arXiv:2008.10898, Theorem 1.
    """

    p: float | None = None
    batch_size: int | None = None
    polyak_lojasiewicz: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)
        self.require_whole("batch_size")

    def theory(self, problem: Problem) -> PAGE:
        c, n = problem.constants, problem.n_samples
        b = max(1, math.isqrt(n)) if self.batch_size is None else self.batch_size
        require_batch("PAGE", b, n)
        p = b / (n + b) if self.p is None else self.p
        step_size = 1 / (c.L + c.L_sample_tilde * math.sqrt((1 - p) / (p * b)))
        if self.polyak_lojasiewicz:
            root = math.sqrt(2 * (1 - p) / (p * b))
            step_size = min(1 / (c.L + c.L_sample_tilde * root), p / (2 * self.require_mu(problem)))
        return self.settled(problem, step_size, p=p, batch_size=b)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None or self.batch_size is None:
            raise self.unsettled("p" if self.p is None else "batch_size")
        exact = key.fold(Purpose.COIN).coin(self.p)
        if not exact and linear_loops(self, problem, self.batch_size) is not None:
            return self.run(problem, state, key, ONE)[0]
        x = state.x - self.gamma * state.g
        problem.broadcast()
        problem.send_dense()
        if exact:
            return State(x, problem.grad(x))
        idx = subset(key.fold(Purpose.SAMPLE), problem.n_samples, self.batch_size)
        return State(x, problem.sample_grad_difference(x, state.x, idx) + state.g)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        if self.p is None or self.batch_size is None:
            raise self.unsettled("p" if self.p is None else "batch_size")
        b = self.batch_size
        rounds = rounds_within(limits, problem, 2 * b, b)
        exact, rounds = until_coin(self.p, key.fold(Purpose.COIN), rounds)
        if exact or not can_run(self, problem, b):
            return self.step(problem, state, key), 1
        old = state.x, state.g, state.lazy
        x, g, lazy, done = recursive_steps(self, problem, old, key, rounds, b, limits.seconds)
        return State(x, g, lazy), done
