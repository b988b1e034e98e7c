"""MiG: accelerated SVRG with one moving point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from buropt.inner import CoupledLazy
from buropt.optim.base import Array, FixedStep
from buropt.optim.compiled import (
    ONE,
    linear_loops,
    rounds_to_end,
    rounds_within,
    snapshot_gradient,
)
from buropt.optim.coupled import (
    Coupling,
    averaged,
    coupled_step,
    coupled_steps,
    in_epoch,
    total_weight,
)
from buropt.optim.epochs import is_last
from buropt.optim.sampling import (
    CORRECTED,
    Batch,
    Corrected,
    draw,
    draw_rounds,
    largest_smoothness,
    moment_weights,
    require_batch,
)

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.inner import LinearLoops
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """The points y (the result), z and w (d,), the gradient full at w, and the mean of the y.

    On linear models `lazy` stands for z and the mean.
    """

    y: Array
    z: Array
    w: Array
    full: Array
    average: Array
    lazy: CoupledLazy | None = None

    @property
    def x(self) -> Array:
        """The iterate that is reported: y, after an epoch the snapshot."""
        return self.y


@dataclass(frozen=True)
class MiG(FixedStep[State]):
    """MiG, Zhou, Shang and Cheng 2018, arXiv:1806.11027.

        x  = theta z + (1 - theta) w
        g  = grad f_j(x) - grad f_j(w) + grad f(w),   j random (or a batch)
        z+ = prox((z + s mu x - s g) / (1 + s mu), s/(1 + s mu))
        y+ = theta z+ + (1 - theta) w
        after m steps  w+ = weighted mean of the y of the epoch, weights (1 + s mu)^i

    Katyusha without its third point: z is the only one that moves. With V = L + 2 c Lmax, where c =
    (N-b)/(b(N-1)) for batches of b, theta = min(sqrt(m mu/V), 1/2) and s = 1/(theta V), every step
    has (the tests check it by enumeration)

        E[F(y+) - F* + theta (1 + s mu)/(2s) |z+ - x*|^2]
            <= (1 - theta) (F(w) - F*) + theta/(2s) |z - x*|^2

    so that with S the sum of the weights, S (F(w) - F*) + theta (1 + s mu)^m/(2s) |z - x*|^2
    contracts in an epoch by max(1 - theta, (1 + s mu)^-m): O((N + sqrt(N V/mu)) log 1/epsilon)
    sample gradients. The paper has 3 Lmax for V, b = 1, and the strong convexity in psi. The proof
    for the above is the same: the descent lemma for f at y+; E|g - grad f(x)|^2 <= 2 c Lmax (f(w) -
    f(x) - <grad f(x), w - x>), weighed so that all terms in x cancel; the strong convexity of the
    problem that z+ solves. With importance sampling the mean of the L_j stands for Lmax, and c =
    1/b.

    With mu = 0: in epoch e = 0, 1, ... theta = 2/(e + 4), s as before (`step_size` is that of the
    first epoch), for F - F* = O((F(x0) - F*)/e^2 + V |x0 - x*|^2/(m e^2)).

    In practice V may be smaller by a factor of 4 to 8: give theta and step_size by the formulas.

    Parameters
    ----------
    m : int, optional
        Steps of an epoch; None: N/(2 batch_size), for which the theorem gains most a gradient.
    theta : float, optional
        In (0, 1/2], constant. None: the theorem's, which falls from epoch to epoch if mu = 0.
    mu : float, optional
        Strong convexity of f; None: the problem's; 0 chooses the rule for convex f.
    batch_size : int
    sampling : {"nice", "importance"}
        Batches without replacement, or independent draws with probabilities L_j / sum_k L_k; see
        `sampling`.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/(theta (L + 2 c Lmax)).
    Oracle: 2 sample gradients; every m steps 1 full gradient.
    Bits: d floats up, d down; every m steps d more each way.
    Memory: y, z, w, grad f(w), mean of y.
    Source: arXiv:1806.11027, Algorithm 1, Theorems 1 and 2.
    """

    proximal: ClassVar[bool] = True

    m: int | None = None
    theta: float | None = None
    mu: float | None = None
    batch_size: int = 1
    sampling: Corrected = "nice"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("m", "batch_size")
        self.require_positive("theta", at_most=0.5)
        if self.mu != 0:
            self.require_positive("mu")
        self.require_choice("sampling", CORRECTED)

    def theory(self, problem: Problem) -> MiG:
        require_batch("MiG", self.batch_size, problem.n_samples)
        self.require_convex(problem)
        mu = problem.constants.mu if self.mu is None else self.mu
        m = math.ceil(problem.n_samples / (2 * self.batch_size)) if self.m is None else self.m
        V = self._smoothness(problem)
        theta = self.theta
        if theta is None and mu > 0:
            theta = min(math.sqrt(m * mu / V), 0.5)
        return self.settled(problem, 1 / ((theta or 0.5) * V), m=m, theta=theta, mu=mu)

    def _smoothness(self, problem: Problem) -> float:
        """V = L + 2 c Lmax, or what stands for Lmax."""
        _, c = moment_weights(problem.n_samples, self.batch_size, self.sampling != "nice")
        return problem.constants.L + 2 * c * largest_smoothness(problem, self.sampling)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        full = snapshot_gradient(self, problem, x0, self.batch_size)
        return State(x0, x0, x0, full, np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        m, coupling = self._settled(key)
        if self._linear(problem) is not None:
            return self.run(problem, state, key, ONE)[0]
        batch = draw(problem, self.sampling, self.batch_size, key)
        y, z = coupled_step(problem, state, coupling, batch)
        average = averaged(state.average, y, coupling, (key.round - 1) % m)
        if not is_last(key, m):
            return State(y, z, state.w, state.full, average)
        return self._restarted(problem, z, average)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        m, coupling = self._settled(key)
        b, linear = self.batch_size, self._linear(problem)
        if linear is None and not problem.inner.has_general:
            return super().run(problem, state, key, limits)
        rounds = min(rounds_within(limits, problem, 2 * b, b), rounds_to_end(key, m))
        batch = draw_rounds(problem, self.sampling, b, key, rounds)
        points = (key.round - 1) % m
        lazy: CoupledLazy | None = None
        if linear is not None:
            lazy, done = self._lazy_steps(problem, linear, state, coupling, batch, limits.seconds)
            z, total = lazy.point_and_sum()
            growth = 1 + coupling.step_size * coupling.mu
            rest = (1 - coupling.theta1) * state.w
            y = coupling.theta1 * z + rest
            average = coupling.theta1 / total_weight(growth, points + done - 1) * total + rest
        else:
            average = state.average.copy()
            y, z, done = coupled_steps(
                problem, state, coupling, batch, limits.seconds, average, points
            )
        if rounds_to_end(key, m) == done:
            return self._restarted(problem, z, average), done
        return State(y, z, state.w, state.full, average, lazy), done

    def _settled(self, key: Key) -> tuple[int, Coupling]:
        """The length of an epoch, and the numbers of this one."""
        if self.m is None or self.mu is None:
            raise self.unsettled("m" if self.m is None else "mu")
        theta, s = in_epoch(self.theta, self.gamma, (key.round - 1) // self.m)
        return self.m, Coupling(theta, 1 - theta, s, self.mu)

    def _linear(self, problem: Problem) -> LinearLoops | None:
        """The loops of linear models; they have no l1 term here."""
        return linear_loops(self, problem, self.batch_size) if problem.inner.l1 == 0 else None

    def _lazy_steps(
        self,
        problem: Problem,
        linear: LinearLoops,
        state: State,
        coupling: Coupling,
        batch: Batch,
        seconds: float,
    ) -> tuple[CoupledLazy, int]:
        """Steps on linear models: the lazy state, and the number of rounds; they are counted."""
        theta, _, s, mu = coupling
        l2 = problem.inner.l2 or 0.0
        if state.lazy is None:
            constant = state.full - (theta * l2 + (1 - theta) * mu) * state.w
            lazy = CoupledLazy.at(state.z, constant)
        else:
            lazy = state.lazy.copy()
        anchor, idx = linear.anchor(state.w), batch.idx
        p, q, u, scales = lazy
        done = linear.core.mig(
            idx, batch.weights, theta, s, mu, l2, anchor, state.w, q, p, u, scales, seconds
        )
        problem.count_steps(done, 2 * idx.shape[1])
        return lazy, done

    def _restarted(self, problem: Problem, z: Array, w: Array) -> State:
        problem.broadcast()
        problem.send_dense()
        return State(w, z, w, snapshot_gradient(self, problem, w, self.batch_size), w)
