"""ADIANA: accelerated DIANA."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

THETA2 = 0.5


class State(NamedTuple):
    """The points y (the result), z and w (d,), and the workers' shifts h (n, d)."""

    y: Array
    z: Array
    w: Array
    h: Array

    @property
    def x(self) -> Array:
        """The iterate that is reported: y."""
        return self.y


@dataclass(frozen=True)
class ADiana(FixedStep[State]):
    """ADIANA, Li, Kovalev, Qian and Richtarik 2020, arXiv:2002.11364.

        x   = theta1 z + w/2 + (1/2 - theta1) y
        g   = mean_i (h_i + C_i(grad f_i(x) - h_i))
        h_i+ = h_i + alpha C_i'(grad f_i(w) - h_i)        (a second message, drawn on its own)
        y+  = x - s g,   z+ = b z + (1 - b) x + (r/s) (y+ - x)
        w+  = y (before the step) with probability p, else w

    alpha = 1/(1 + omega), p = min(1, max(alpha/2, (alpha/2) (sqrt(n/(32 omega)) - 1))), step size s
    = min(1/(2L), n/(64 omega L (2p (omega + 1) + 1)^2)), theta1 = min(1/4, sqrt(s mu/p)), r = s/(2
    (theta1 + s mu)), b = 1 - r mu, L the largest smoothness of the f_i; for omega = 0 p = 1 and s =
    1/(2L). These are the parameters of public code of an author (FedNL's repository); the paper's
    text was not at hand. The tests check that second moments shrink on quadratics; the complexity
    is stated to be of the order omega + sqrt(L/mu) (1 + omega/sqrt(n)).

    Parameters
    ----------
    alpha : float, optional
        Step of the shifts; None: 1/(1 + omega).
    p : float, optional
        In (0, 1].
    theta1 : float, optional
        In (0, 1/2].
    mu : float, optional
        Strong convexity of f; None: the problem's.
    compressor : Compressor
        Unbiased.

    Notes
    -----
    Problems: strongly convex f, convex f_i.
    Step size: min(1/(2L), n/(64 omega L (2p (omega + 1) + 1)^2)).
    Oracle: 2 full gradients, at x and w.
    Bits: 2 compressed messages up; d floats down, 2d where w is new.
    Memory: y, z, w; h_i of every worker.
    Source: arXiv:2002.11364, Algorithm 1.
    """

    alpha: float | None = None
    p: float | None = None
    theta1: float | None = None
    mu: float | None = None
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("alpha", "p", at_most=1)
        self.require_positive("theta1", at_most=0.5)
        self.require_positive("mu")
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> ADiana:
        self.require_convex(problem)
        n, L = problem.n_workers, problem.constants.L_max
        omega = unbiased_omega(self.compressor, problem.dim)
        mu = problem.constants.mu if self.mu is None else self.mu
        if mu == 0:
            raise self.no_theorem("mu = 0; give optimizer.mu, or take optimizer=diana")
        alpha = self.shift_step(1 / (1 + omega))
        p, step_size = 1.0, 1 / (2 * L)
        if omega > 0:
            p = min(1.0, max(alpha / 2, alpha / 2 * (math.sqrt(n / (32 * omega)) - 1)))
        p = p if self.p is None else self.p
        if omega > 0:
            step_size = min(step_size, n / (64 * omega * L * (2 * p * (omega + 1) + 1) ** 2))
        method = self.settled(problem, step_size, alpha=alpha, p=p, mu=mu)
        theta1 = min(0.25, math.sqrt(method.gamma * mu / p))
        return method.settled_with(problem, theta1=theta1 if self.theta1 is None else self.theta1)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, x0, x0, np.zeros((problem.n_workers, problem.dim), x0.dtype))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.theta1 is None or self.mu is None or self.alpha is None or self.p is None:
            raise self.unsettled("theta1")
        s, mu, theta1 = self.gamma, self.mu, self.theta1
        r = s / (2 * (theta1 + s * mu))
        x = theta1 * state.z + THETA2 * state.w + (1 - theta1 - THETA2) * state.y
        problem.broadcast()
        m = problem.send(self.compressor, problem.worker_grads(x) - state.h, key)
        shift = problem.worker_grads(state.w) - state.h
        h = state.h + self.alpha * problem.send(self.compressor, shift, key.fold(Purpose.SNAPSHOT))
        y = x - s * mean(state.h + m)
        z = (1 - r * mu) * state.z + r * mu * x + (r / s) * (y - x)
        if key.fold(Purpose.COIN).coin(self.p):
            problem.broadcast()
            return State(y, z, state.y, h)
        return State(y, z, state.w, h)
