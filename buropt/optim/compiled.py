"""What the methods share whose iterations run in compiled loops, many in one call.

A segment is a number of iterations between two that need something else: a full gradient, or the
point where an epoch may start again. `run` makes one segment, or a part of it. On generalized
linear models over CSR data the loops keep the point as a `Lazy` state, and then `step` is a segment
of one iteration: the same bits, however iterations are grouped. On other losses `step` is NumPy's
arithmetic, and the loops repeat it bit by bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from buropt.budget import Limits
from buropt.inner import Lazy
from buropt.optim.base import Array, FixedStep
from buropt.optim.sampling import Batch
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.inner import LinearLoops
    from buropt.problems.base import Problem
    from buropt.random import Key

ONE = Limits(1)
MOST_DRAWS = 2**16  # sample numbers in memory at once


class HasSnapshot(Protocol):
    """The state: x, snapshot w, and grad f(w); shapes (d,). `lazy` stands for x."""

    @property
    def x(self) -> Array:
        """The iterate."""

    @property
    def w(self) -> Array:
        """The snapshot."""

    @property
    def full(self) -> Array:
        """The gradient at the snapshot."""

    @property
    def lazy(self) -> Lazy | None:
        """What stands for x on linear models; None where it is the same."""


def linear_loops(method: FixedStep[Any], problem: Problem, batch_size: int) -> LinearLoops | None:
    """The loops of linear models, if this method runs in them on this problem."""
    return problem.inner.linear(method.gamma, batch_size)


def can_run(method: FixedStep[Any], problem: Problem, batch_size: int) -> bool:
    """Whether there is any compiled loop for this."""
    linear = linear_loops(method, problem, batch_size)
    return linear is not None or problem.inner.has_general


def snapshot_gradient(method: FixedStep[Any], problem: Problem, w: Array, batch_size: int) -> Array:
    """The gradient of f at a snapshot; counted. Linear models take it from the slopes there."""
    linear = linear_loops(method, problem, batch_size)
    if linear is None:
        return problem.grad(w)
    problem.count(problem.n_samples)
    full: Array = linear.mean_gradient(linear.anchor(w)) + (problem.inner.l2 or 0.0) * w
    return full


def rounds_within(limits: Limits, problem: Problem, sample_grads: float, batch_size: int) -> int:
    """Iterations up to the first limit, of a vector up and so many gradients each; at least 1."""
    rounds = min(
        limits.iterations,
        limits.sample_grads / sample_grads,
        limits.bits_up / problem.dense_bits,
        MOST_DRAWS // batch_size,
    )
    return max(1, int(rounds))


def until_coin(p: float | NDArray[np.float64], key: Key, rounds: int) -> tuple[bool, int]:
    """Whether the coin of this round falls, and rounds before the next one whose coin does.

    p is the probability, or that of each round.
    """
    falls = np.flatnonzero(key.uniforms(rounds) < p)
    first = falls.size > 0 and falls[0] == 0
    later = falls[1:] if first else falls
    return bool(first), int(later[0]) if later.size else rounds


def until_pick(key: Key, length: int, rounds: int) -> tuple[bool, int]:
    """The same for the coins of `epochs.pick_one`."""
    t = (key.round - 1) % length + 1 + np.arange(rounds)
    return until_coin(1 / t, key.fold(Purpose.SNAPSHOT), rounds)


def rounds_to_end(key: Key, length: int) -> int:
    """Rounds of this epoch that are left, this one among them."""
    return length - (key.round - 1) % length


def corrected_steps(
    method: FixedStep[Any],
    problem: Problem,
    state: HasSnapshot,
    batch: Batch,
    seconds: float,
) -> tuple[Array, Lazy | None, int]:
    """Steps of SVRG: x <- prox(x - step_size (grad f_S(x) - grad f_S(w) + grad f(w))).

    Parameters
    ----------
    batch : Batch
        A row for each step.

    Returns
    -------
    x, its lazy state, and the number of rounds made; they are counted
    """
    idx, weights = batch
    linear, inner = linear_loops(method, problem, idx.shape[1]), problem.inner
    lazy: Lazy | None = None
    if linear is not None:
        rule = method.gamma, inner.l2 or 0.0, inner.l1 or 0.0
        if state.lazy is None:
            lazy = Lazy.at(state.x, state.full - rule[1] * state.w)
        else:
            lazy = state.lazy.copy()
        done = linear.core.svrg(idx, weights, *rule, linear.anchor(state.w), *lazy, seconds)
        x = linear.point(lazy, *rule)
    else:
        x = state.x.copy()
        loops, prox = inner.general_loops(weights is not None)
        done = loops.svrg(idx, weights, method.gamma, prox, state.w, state.full, x, seconds)
    problem.count_steps(done, 2 * idx.shape[1])
    return x, lazy, done


def recursive_steps(
    method: FixedStep[Any],
    problem: Problem,
    state: tuple[Array, Array, Lazy | None],
    key: Key,
    rounds: int,
    batch_size: int,
    seconds: float,
) -> tuple[Array, Array, Lazy | None, int]:
    """Steps of SARAH: x+ = x - step_size v, v+ = grad f_S(x+) - grad f_S(x) + v.

    Returns
    -------
    x, v, their lazy state, and the number of rounds made; they are counted
    """
    x, v, lazy = state
    idx = key.fold(Purpose.SAMPLE).subsets(rounds, problem.n_samples, batch_size)
    linear, inner = linear_loops(method, problem, batch_size), problem.inner
    if linear is not None:
        lazy = Lazy.at(x, v) if lazy is None else lazy.copy()
        l2 = inner.l2 or 0.0
        done = linear.core.sarah(idx, method.gamma, l2, *lazy[:3], seconds)
        x, v = linear.point_and_estimate(lazy)
    else:
        x, v = x.copy(), v.copy()
        loops, _ = inner.general_loops()
        done = loops.sarah(idx, method.gamma, x, v, seconds)
    problem.count_steps(done, 2 * batch_size)
    return x, v, lazy, done
