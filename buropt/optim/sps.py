"""SGD with the stochastic Polyak step size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, Optimizer
from buropt.optim.sampling import require_batch, subset
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,)."""

    x: Array


@dataclass(frozen=True)
class SPS(Optimizer[State]):
    """SGD with the stochastic Polyak step, Loizou et al. 2020, arXiv:2002.10542.

        x+ = x - min((f_S(x) - l) / (c |grad f_S(x)|^2), largest) grad f_S(x),   S a random batch

    l is the minimum of f_S, or a number below it. For convex losses that share their minimizer
    (interpolation) and the exact l, c = 1/2 gives E|x_k - x*|^2 <= (1 - min(1/(2 c Lmax), largest)
    mu)^k |x0 - x*|^2 on strongly convex f; otherwise it stops at a neighbourhood that depends on
    the mean of f_j(x*) - l. No smoothness constant is used, `largest` bounds steps where the
    gradient is small but the value is not.

    Parameters
    ----------
    batch_size : int
        Without replacement.
    c : float
        1/2 is the theorem's for strong convexity, 1 for convex losses.
    largest : float, optional
        None: 1/L. The rate is the theorem's if it is at least 1/(2 c Lmax), below which no step is.
    lower_bound : float, optional
        l; None: the problem's bound for all samples, 0 for losses that are not negative.

    Notes
    -----
    Problems: convex losses with a known lower bound.
    Step size: (f_S(x) - l)/(c |grad f_S(x)|^2), at most `largest`.
    Oracle: batch_size sample gradients with values.
    Bits: d + 1 floats up, d down.
    Memory: x.
    Source: arXiv:2002.10542, Theorems 3.1 and 3.4.
    """

    batch_size: int = 1
    c: float = 0.5
    largest: float | None = None
    lower_bound: float | None = None

    def __post_init__(self) -> None:
        self.require_whole("batch_size")
        self.require_positive("c", "largest")

    def theory(self, problem: Problem) -> SPS:
        require_batch("SPS", self.batch_size, problem.n_samples)
        constants = problem.constants
        lower = constants.sample_minimum if self.lower_bound is None else self.lower_bound
        if lower is None:
            raise self.no_theorem(
                "its losses have no known lower bound; give optimizer.lower_bound"
            )
        largest = 1 / constants.L if self.largest is None else self.largest
        return self.settled_with(problem, lower_bound=lower, largest=largest)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.lower_bound is None or self.largest is None:
            raise self.unsettled("lower_bound" if self.lower_bound is None else "largest")
        idx = subset(key.fold(Purpose.SAMPLE), problem.n_samples, self.batch_size)
        problem.broadcast()
        problem.send_dense()
        problem.send_entries(1)
        value, g = problem.sample_value_and_grad(state.x, idx)
        square = float(g @ g)
        gap = max(value - self.lower_bound, 0.0)
        step = min(gap / (self.c * square), self.largest) if square > 0 else 0.0
        return State(state.x - step * g)
