"""What Katyusha, L-Katyusha and MiG share: the step that couples three points.

    x  = theta1 z + theta2 w + (1 - theta1 - theta2) y
    g  = grad f_j(x) - grad f_j(w) + grad f(w),   j random (or a batch)
    z+ = prox((z + s mu x - s g) / (1 + s mu), s/(1 + s mu))
    y+ = x + theta1 (z+ - z)

w is the snapshot. MiG has theta2 = 1 - theta1 and does without y. `coupled_step` is NumPy's
arithmetic, `coupled_steps` many of them in one call of the core, with the same bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

from buropt.optim.base import Array

if TYPE_CHECKING:
    from buropt.optim.sampling import Batch
    from buropt.problems.base import Problem


class Coupling(NamedTuple):
    """The numbers of a step; s is `step_size`."""

    theta1: float
    theta2: float
    step_size: float
    mu: float


class HasPoints(Protocol):
    """The state: points y, z, snapshot w and grad f(w); shapes (d,)."""

    @property
    def y(self) -> Array:
        """The point that is reported."""

    @property
    def z(self) -> Array:
        """The point that makes the long steps."""

    @property
    def w(self) -> Array:
        """The snapshot."""

    @property
    def full(self) -> Array:
        """The gradient at the snapshot."""


def in_epoch(theta1: float | None, step_size: float, epoch: int) -> tuple[float, float]:
    """theta1 and the step size of an epoch: where theta1 is None it falls, and the step grows."""
    if theta1 is not None:
        return theta1, step_size
    theta1 = 2 / (epoch + 4)
    return theta1, step_size * (0.5 / theta1)


def coupled_step(
    problem: Problem, state: HasPoints, coupling: Coupling, batch: Batch
) -> tuple[Array, Array]:
    """The points y and z after a step; counted."""
    theta1, theta2, s, mu = coupling
    x = theta1 * state.z + theta2 * state.w + (1 - theta1 - theta2) * state.y
    problem.broadcast()
    problem.send_dense()
    g = problem.sample_grad_difference(x, state.w, *batch) + state.full
    z = problem.prox((state.z + s * mu * x - s * g) / (1 + s * mu), s / (1 + s * mu))
    y = x + theta1 * (z - state.z)
    return y, z


def coupled_steps(
    problem: Problem,
    state: HasPoints,
    coupling: Coupling,
    batch: Batch,
    seconds: float,
    average: Array | None = None,
    points: int = 0,
) -> tuple[Array, Array, int]:
    """Steps in compiled loops, for problems that have them.

    Parameters
    ----------
    batch : Batch
        A row for each step.
    average : ndarray, shape (d,), optional
        Changed in place, by `averaged` after every step.
    points : int
        Points that it holds already.

    Returns
    -------
    y, z, and the number of rounds made; they are counted
    """
    idx, weights = batch
    loops, prox = problem.inner.general_loops(weights is not None)
    y, z = state.y.copy(), state.z.copy()
    done = loops.coupled(
        idx, weights, coupling, prox, state.w, state.full, y, z, average, points, seconds
    )
    problem.count_steps(done, 2 * idx.shape[1])
    return y, z, done


def averaged(average: Array, y: Array, coupling: Coupling, i: int) -> Array:
    """The mean of the points y of an epoch, with weights (1 + s mu)^k, when y is number i."""
    new: Array = average + (y - average) / total_weight(1 + coupling.step_size * coupling.mu, i)
    return new


def total_weight(growth: float, i: int) -> float:
    """(1 + growth + ... + growth^i) / growth^i, without the overflow of its terms."""
    if growth == 1:
        return i + 1.0
    q = 1 / growth
    return -math.expm1((i + 1) * math.log(q)) / (1 - q)
