"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt.optim.base import Array, Optimizer
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

Index = NDArray[np.integer[Any]]


class State(NamedTuple):
    """Iterate x (d,)."""

    x: Array


@dataclass(frozen=True)
class SGD(Optimizer[State]):
    """Minibatch SGD, Robbins and Monro 1951; step size by Gower et al. 2019, arXiv:1901.09401.

        S  = a random batch of batch_size samples out of all N
        x+ = x - step_size mean_{j in S} grad f_j(x)

    Step size 1/(2 Ls), where Ls is the expected smoothness of the sampling,
    E|g(x) - g(x*)|^2 <= 2 Ls (f(x) - f*). With L for f and Lmax for the samples' losses (convex):

        without replacement   Ls = N (b-1) / (b (N-1)) L + (N-b) / (b (N-1)) Lmax
        with replacement      Ls = (1 - 1/b) L + Lmax / b

    The first is the paper's constant for nice sampling. Both follow from the exact second moment of
    the batch mean of u_j = grad f_j(x) - grad f_j(x*), which is mean_j|u_j|^2 and |mean_j u_j|^2
    with those two weights, and from |u|^2 <= 2 L D for convex smooth functions; the tests check the
    moment by enumeration. Then E|x_k - x*|^2 <= (1 - step_size mu)^k |x0 - x*|^2 + 2 step_size s /
    mu with s = E|g(x*)|^2: a constant step reaches a neighbourhood only. For nonconvex losses the
    rule is a heuristic.

    Counted like GD, one dense vector a round in each direction, so that curves can share an axis.

    Parameters
    ----------
    batch_size : int
        Samples in a batch; at most N without replacement.
    replacement : bool
        Draw with replacement. The default, without, has the smaller variance.
    """

    batch_size: int = 1
    replacement: bool = False

    def __post_init__(self) -> None:
        self.require_positive("step_size", "step_size_factor")
        if (
            isinstance(self.batch_size, bool)
            or self.batch_size != int(self.batch_size)
            or self.batch_size < 1
        ):
            raise ValueError(f"SGD.batch_size must be a whole number >= 1, got {self.batch_size!r}")

    def theory(self, problem: Problem) -> SGD:
        n_samples = problem.n_samples
        if not self.replacement and self.batch_size > n_samples:
            raise ValueError(
                f"SGD.batch_size={self.batch_size} is more than the {n_samples} samples: "
                "lower it or write replacement=true"
            )
        c = problem.constants
        weight_full, weight_sample = moment_weights(n_samples, self.batch_size, self.replacement)
        return self.settled(1 / (2 * (weight_full * c.L + weight_sample * c.L_sample_max)))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        idx = draw_batch(key, problem.n_samples, self.batch_size, self.replacement)
        problem.broadcast()
        problem.send_dense()
        return State(state.x - self.gamma * problem.sample_grad(state.x, idx))


def moment_weights(n_samples: int, batch_size: int, replacement: bool) -> tuple[float, float]:
    """The weights (A, B) in E|mean of a batch of u|^2 = A |mean u|^2 + B mean |u|^2."""
    if replacement:
        return 1 - 1 / batch_size, 1 / batch_size
    if n_samples == 1:
        return 1.0, 0.0
    scale = batch_size * (n_samples - 1)
    return n_samples * (batch_size - 1) / scale, (n_samples - batch_size) / scale


def draw_batch(key: Key, n_samples: int, batch_size: int, replacement: bool) -> Index:
    """Sample indices of one batch.

    Without replacement the batch is the first `batch_size` distinct values of a sequence of
    independent draws, which is a uniform subset; beyond half of the samples the complement is drawn
    instead.
    """
    key = key.fold(Purpose.SAMPLE)
    if replacement or batch_size == 1:
        return key.integers(0, n_samples, batch_size)
    size = min(batch_size, n_samples - batch_size)
    chosen = np.empty(0, dtype=np.int64)
    draws = size + size // 2 + 8
    while chosen.size < size:
        values, first = np.unique(key.integers(0, n_samples, draws), return_index=True)
        chosen = values[np.argsort(first)][:size]
        draws *= 2
    if size == batch_size:
        return chosen
    rest = np.ones(n_samples, dtype=bool)
    rest[chosen] = False
    return np.flatnonzero(rest)
