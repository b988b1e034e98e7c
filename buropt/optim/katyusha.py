"""Katyusha: accelerated SVRG."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep
from buropt.optim.compiled import rounds_to_end, rounds_within
from buropt.optim.coupled import Coupling, averaged, coupled_step, coupled_steps, in_epoch
from buropt.optim.epochs import is_last
from buropt.optim.sampling import draw, draw_rounds

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.problems.base import Problem
    from buropt.random import Key

TAU2 = 0.5


class State(NamedTuple):
    """The points y (the result), z and w (d,), the gradient full at w, and the mean of the y."""

    y: Array
    z: Array
    w: Array
    full: Array
    average: Array

    @property
    def x(self) -> Array:
        """The iterate that is reported: y."""
        return self.y


@dataclass(frozen=True)
class Katyusha(FixedStep[State]):
    """Katyusha, Allen-Zhu 2016, arXiv:1603.05953.

        x  = tau1 z + w/2 + (1/2 - tau1) y
        g  = grad f_j(x) - grad f_j(w) + grad f(w),   j random
        z+ = prox((z + s mu x - s g) / (1 + s mu), s/(1 + s mu)),   y+ = x + tau1 (z+ - z)
        after m steps  w+ = weighted mean of the y of the epoch, weights (1 + s mu)^i

    m = 2N, tau1 = min(sqrt(m mu/(3 Lmax)), 1/2), s = 1/(3 tau1 Lmax): O((N + sqrt(N Lmax/mu)) log
    1/epsilon) sample gradients. With mu = 0, Katyusha^ns: in epoch e = 0, 1, ... tau1 = 2/(e + 4),
    s as before (`step_size` is that of the first epoch), for f - f* = O((f(x0) - f*)/e^2 + Lmax
    |x0 - x*|^2/(N e^2)).

    The paper has the strong convexity in psi; f is brought to that form by moving (mu/2)|x|^2 from
    f to psi, which gives the terms with mu above (and those of L-Katyusha). Parameters as the paper
    is usually quoted; they agree with L-Katyusha's, which were checked.

    Parameters
    ----------
    m : int, optional
        Steps of an epoch; None: 2N.
    tau1 : float, optional
        In (0, 1/2], constant. None: the paper's, which falls from epoch to epoch if mu = 0.
    mu : float, optional
        Strong convexity of f; None: the problem's; 0 chooses Katyusha^ns.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/(3 tau1 Lmax).
    Oracle: 2 sample gradients; every m steps 1 full gradient.
    Bits: d floats up, d down; every m steps d more each way.
    Memory: y, z, w, grad f(w), mean of y.
    Source: arXiv:1603.05953, Algorithms 1 (option II) and 2.
    """

    proximal: ClassVar[bool] = True

    m: int | None = None
    tau1: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("m")
        self.require_positive("tau1", at_most=0.5)
        if self.mu != 0:
            self.require_positive("mu")

    def theory(self, problem: Problem) -> Katyusha:
        self.require_convex(problem)
        L = problem.constants.L_sample_max
        mu = problem.constants.mu if self.mu is None else self.mu
        m = 2 * problem.n_samples if self.m is None else self.m
        tau1 = self.tau1
        if tau1 is None and mu > 0:
            tau1 = min(math.sqrt(m * mu / (3 * L)), 0.5)
        return self.settled(problem, 1 / (3 * (tau1 or 0.5) * L), m=m, tau1=tau1, mu=mu)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, x0, x0, problem.grad(x0), np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        m, coupling = self._settled(key)
        y, z = coupled_step(problem, state, coupling, draw(problem, "nice", 1, key))
        average = averaged(state.average, y, coupling, (key.round - 1) % m)
        if not is_last(key, m):
            return State(y, z, state.w, state.full, average)
        return self._restarted(problem, y, z, average)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        m, coupling = self._settled(key)
        if not problem.inner.has_general:
            return super().run(problem, state, key, limits)
        rounds = min(rounds_within(limits, problem, 2, 1), rounds_to_end(key, m))
        batch = draw_rounds(problem, "nice", 1, key, rounds)
        average, points = state.average.copy(), (key.round - 1) % m
        y, z, done = coupled_steps(problem, state, coupling, batch, limits.seconds, average, points)
        if rounds_to_end(key, m) == done:
            return self._restarted(problem, y, z, average), done
        return State(y, z, state.w, state.full, average), done

    def _settled(self, key: Key) -> tuple[int, Coupling]:
        """The length of an epoch, and the numbers of this one."""
        if self.m is None or self.mu is None:
            raise self.unsettled("m" if self.m is None else "mu")
        tau1, s = in_epoch(self.tau1, self.gamma, (key.round - 1) // self.m)
        return self.m, Coupling(tau1, TAU2, s, self.mu)

    def _restarted(self, problem: Problem, y: Array, z: Array, w: Array) -> State:
        problem.broadcast()
        problem.send_dense()
        return State(y, z, w, problem.grad(w), w)
