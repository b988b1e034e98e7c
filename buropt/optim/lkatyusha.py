"""L-Katyusha: accelerated SVRG without loops."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, FixedStep
from buropt.optim.compiled import rounds_within, until_coin
from buropt.optim.coupled import Coupling, coupled_step, coupled_steps
from buropt.optim.sampling import CORRECTED, Corrected, draw, draw_rounds, largest_smoothness
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.problems.base import Problem
    from buropt.random import Key

THETA2 = 0.5


class State(NamedTuple):
    """The points y (the result), z and w (d,), and the gradient full (d,) at the snapshot w."""

    y: Array
    z: Array
    w: Array
    full: Array

    @property
    def x(self) -> Array:
        """The iterate that is reported: y."""
        return self.y


@dataclass(frozen=True)
class LKatyusha(FixedStep[State]):
    """Loopless Katyusha, Kovalev, Horvath and Richtarik 2019, arXiv:1901.08689.

        x  = theta1 z + theta2 w + (1 - theta1 - theta2) y
        g  = grad f_j(x) - grad f_j(w) + grad f(w),   j random
        z+ = (z + s mu x - s g) / (1 + s mu),         y+ = x + theta1 (z+ - z)
        w+ = y (before the step) with probability p, else w

    The paper writes s = eta/L and mu = sigma L. p = 1/N, theta2 = 1/2, theta1 = min(sqrt(2 N mu/(3
    Lmax)), 1/2), s = theta2/((1 + theta2) theta1 Lmax). The Lyapunov function of the paper
    contracts by max(1/(1 + s mu), 1 - theta1 (1 - theta2), 1 - p theta1/(1 + theta1)): O((N +
    sqrt(N Lmax/mu)) log 1/epsilon) sample gradients.

    Parameters
    ----------
    p : float, optional
        None: 1/N.
    theta1 : float, optional
        In (0, 1/2].
    mu : float, optional
        Strong convexity of f; None: the problem's.
    sampling : {"nice", "importance"}
        Uniform, or with probabilities L_j / sum_k L_k; then the mean of the L_j stands for Lmax,
        which bounds the variance of g in the same way.

    Notes
    -----
    Problems: strongly convex f, convex losses.
    Step size: theta2/((1 + theta2) theta1 Lmax).
    Oracle: 2 sample gradients; with probability p 1 full gradient.
    Bits: d floats up, d down; with probability p d more each way.
    Memory: y, z, w, grad f(w).
    Source: arXiv:1901.08689, Algorithm 2.
    """

    p: float | None = None
    theta1: float | None = None
    mu: float | None = None
    sampling: Corrected = "nice"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)
        self.require_positive("theta1", at_most=0.5)
        self.require_positive("mu")
        self.require_choice("sampling", CORRECTED)

    def theory(self, problem: Problem) -> LKatyusha:
        self.require_convex(problem)
        n, L = problem.n_samples, largest_smoothness(problem, self.sampling)
        mu = problem.constants.mu if self.mu is None else self.mu
        if mu == 0:
            raise self.no_theorem("mu = 0; give optimizer.mu, or take optimizer=katyusha")
        theta1 = min(math.sqrt(2 * n * mu / (3 * L)), 0.5) if self.theta1 is None else self.theta1
        p = 1 / n if self.p is None else self.p
        step_size = THETA2 / ((1 + THETA2) * theta1 * L)
        return self.settled(problem, step_size, p=p, theta1=theta1, mu=mu)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, x0, x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        p, coupling = self._settled()
        y, z = coupled_step(problem, state, coupling, draw(problem, self.sampling, 1, key))
        if key.fold(Purpose.COIN).coin(p):
            return self._moved(problem, y, z, state.y)
        return State(y, z, state.w, state.full)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        p, coupling = self._settled()
        if not problem.inner.has_general:
            return super().run(problem, state, key, limits)
        rounds = rounds_within(limits, problem, 2, 1)
        moves, rounds = until_coin(p, key.fold(Purpose.COIN), rounds)
        batch = draw_rounds(problem, self.sampling, 1, key, 1 if moves else rounds)
        y, z, done = coupled_steps(problem, state, coupling, batch, limits.seconds)
        if moves:
            return self._moved(problem, y, z, state.y), done
        return State(y, z, state.w, state.full), done

    def _settled(self) -> tuple[float, Coupling]:
        if self.p is None or self.theta1 is None or self.mu is None:
            raise self.unsettled("theta1")
        return self.p, Coupling(self.theta1, THETA2, self.gamma, self.mu)

    def _moved(self, problem: Problem, y: Array, z: Array, w: Array) -> State:
        problem.broadcast()
        problem.send_dense()
        return State(y, z, w, problem.grad(w))
