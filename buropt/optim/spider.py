"""SPIDER and SpiderBoost: a recursive gradient estimate, exact again every q steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, FixedStep
from buropt.optim.epochs import is_last
from buropt.optim.sampling import require_batch, subset
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and the estimate v (d,) of its gradient."""

    x: Array
    v: Array


@dataclass(frozen=True)
class SpiderBoost(FixedStep[State]):
    """SpiderBoost, Wang, Ji, Zhou, Liang and Tarokh 2018, arXiv:1810.10690.

        x+ = x - step_size v
        v+ = grad f(x+)                                        every q-th step
           = v + mean_{j in S} (grad f_j(x+) - grad f_j(x))    otherwise, S a batch

    Step size 1/(2 L~) with q = |S| = sqrt(N), for a point with |grad f| <= epsilon in O(N + sqrt(N)
    L~ / epsilon^2) sample gradients; L~ = sqrt(mean_j L_j^2) bounds the average smoothness of the
    paper. For smaller batches than q 1/(L~ (1 + sqrt(q/|S|))): the proof needs step_size L~ +
    step_size^2 L~^2 q/|S| <= 1, then the mean of E|grad f(x_t)|^2 is at most 2 (f(x0) -
    f*)/(step_size T).

    Parameters
    ----------
    q : int, optional
        None: sqrt(N), rounded up; 1 is gradient descent.
    batch_size : int, optional
        Without replacement; None: sqrt(N), rounded up.

    Notes
    -----
    Problems: smooth; nonconvex too.
    Step size: 1/(2 L~).
    Oracle: 2 batch_size sample gradients; every q steps 1 full gradient.
    Bits: d floats up, d down.
    Memory: x, v.
    Source: arXiv:1810.10690, Theorem 1.
    """

    q: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("q", "batch_size")

    def theory(self, problem: Problem) -> SpiderBoost:
        root = math.isqrt(problem.n_samples - 1) + 1
        q = root if self.q is None else self.q
        batch_size = root if self.batch_size is None else self.batch_size
        require_batch(type(self).__name__, batch_size, problem.n_samples)
        growth = max(2.0, 1 + math.sqrt(q / batch_size))
        step_size = 1 / (growth * problem.constants.L_sample_tilde)
        return self.settled(problem, step_size, q=q, batch_size=batch_size)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.q is None or self.batch_size is None:
            raise self.unsettled("q" if self.q is None else "batch_size")
        x = state.x - self.length(state.v) * state.v
        problem.broadcast()
        problem.send_dense()
        if is_last(key, self.q):
            return State(x, problem.grad(x))
        idx = subset(key.fold(Purpose.SAMPLE), problem.n_samples, self.batch_size)
        return State(x, state.v + problem.sample_grad_difference(x, state.x, idx))

    def length(self, v: Array) -> float:
        """What multiplies v."""
        return self.gamma


@dataclass(frozen=True)
class Spider(SpiderBoost):
    """SPIDER-SFO, Fang, Li, Lin and Zhang 2018, arXiv:1807.01695.

        x+ = x - step_size min(1, 2 epsilon / |v|) v
        v+ as in `SpiderBoost`

    The paper has min(epsilon / (L n0 |v|), 1/(2 L n0)), which is this with step_size = 1/(2 L n0),
    batches of sqrt(N)/n0 and q = n0 sqrt(N); here n0 = 1. While |v| > 2 epsilon every step has the
    length epsilon/L~, so that the estimate cannot drift far. Finds |grad f| = O(epsilon) in O(N +
    sqrt(N) L~ / epsilon^2) sample gradients. The constants are those of the paper's algorithm as it
    is usually quoted, its text was not at hand; the bounds on the drift are `SpiderBoost`'s.

    Parameters
    ----------
    epsilon : float
        The accuracy |grad f| that is aimed at.

    Notes
    -----
    Problems: smooth; nonconvex too.
    Step size: 1/(2 L~), normalized while the gradient is large.
    Oracle: 2 batch_size sample gradients; every q steps 1 full gradient.
    Bits: d floats up, d down.
    Memory: x, v.
    Source: arXiv:1807.01695, Algorithm 1 (option II).
    """

    epsilon: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("epsilon")

    def length(self, v: Array) -> float:
        norm = math.sqrt(float(v @ v))
        return self.gamma * (1.0 if norm <= 2 * self.epsilon else 2 * self.epsilon / norm)
