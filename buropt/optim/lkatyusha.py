"""L-Katyusha: accelerated SVRG without loops."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.optim.base import Array, FixedStep
from buropt.optim.sampling import subset
from buropt.random import Purpose

if TYPE_CHECKING:
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

    Notes
    -----
    Problems: strongly convex f, convex losses.
    Step size: theta2/((1 + theta2) theta1 Lmax).
    Oracle: 2 sample gradients; with probability p 1 full gradient.
    Bits: d floats up, d down.
    Memory: y, z, w, grad f(w).
    Source: arXiv:1901.08689, Algorithm 2.
    """

    p: float | None = None
    theta1: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)
        self.require_positive("theta1", at_most=0.5)
        self.require_positive("mu")

    def theory(self, problem: Problem) -> LKatyusha:
        self.require_convex(problem)
        n, L = problem.n_samples, problem.constants.L_sample_max
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
        if self.p is None or self.theta1 is None or self.mu is None:
            raise self.unsettled("theta1")
        s, mu, theta1 = self.gamma, self.mu, self.theta1
        x = theta1 * state.z + THETA2 * state.w + (1 - theta1 - THETA2) * state.y
        idx = subset(key.fold(Purpose.SAMPLE), problem.n_samples, 1)
        problem.broadcast()
        problem.send_dense()
        g = problem.sample_grad_difference(x, state.w, idx) + state.full
        z = (state.z + s * mu * x - s * g) / (1 + s * mu)
        y = x + theta1 * (z - state.z)
        if key.fold(Purpose.COIN).coin(self.p):
            problem.broadcast()
            problem.send_dense()
            return State(y, z, state.y, problem.grad(state.y))
        return State(y, z, state.w, state.full)
