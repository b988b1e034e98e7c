"""MARINA: compressed gradient differences with rare dense rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, unbiased_omega
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and gradient estimate g (d,) there."""

    x: Array
    g: Array


@dataclass(frozen=True)
class Marina(FixedStep[State]):
    """MARINA, Gorbunov et al. 2021, arXiv:2102.07845.

        x+ = x - step_size g
        c  = 1 with probability p, one coin for all workers
        g+ = grad f(x+)                                        if c = 1 (dense messages)
           = g + mean_i C_i(grad f_i(x+) - grad f_i(x))        otherwise

    g starts at grad f(x0), a dense message.  p = 1/(1 + omega). Step size of Theorem 2.1,

        1/(L + L+ sqrt((1 - p) omega / (p n))),

    for which the mean of E|grad f(x_t)|^2 over t < T is at most 2 (f(x0) - f*) / (step_size T). L+
    is the smallest constant with mean_i |grad f_i(x) - grad f_i(y)|^2 <= L+^2 |x - y|^2; where the
    problem does not know it, L~ = sqrt(mean_i L_i^2) >= L+ takes its place. With
    `polyak_lojasiewicz`, min(1/(L + L+ sqrt(2 (1 - p) omega / (p n))), p/(2 mu)), for which f - f*
    + (step_size/p) |g - grad f|^2 contracts by 1 - step_size mu in expectation.

    Compressors that draw for all workers together, `PermK`, have the AB inequality
    (arXiv:2110.03300)

        E|mean_i C_i(a_i) - mean_i a_i|^2 <= A mean_i |a_i|^2 - B |mean_i a_i|^2

    in place of omega/n, and the step size 1/(L + sqrt((1 - p)/p ((A - B) L+^2 + B L+-^2))), L+- the
    Hessian variance, which is 0 where the workers agree; L+ >= L+- where the problem does not know
    it. A = omega/n and B = 0 is the theorem above.

    The coin is a function of the seed and the round, which everybody knows, and is not counted in
    bits.

    Parameters
    ----------
    p : float, optional
        Probability of a dense round, in (0, 1]; None: 1/(1 + omega).
    polyak_lojasiewicz : bool
        Take the step size of the second theorem; needs mu > 0.
    compressor : Compressor
        Unbiased; also PermK.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L+ sqrt((1 - p) omega / (p n))).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, or d floats with probability p; d floats down.
    Memory: x, g; the gradient of every worker, or what it is made of.
    Source: arXiv:2102.07845, Theorems 2.1 and 2.2; arXiv:2110.03300.
    """

    p: float | None = None
    polyak_lojasiewicz: bool = False
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        self.require_positive("step_size", "step_size_factor")
        self.require_positive("p", at_most=1)
        self.require_unbiased(self.compressor, independent=False)

    def theory(self, problem: Problem) -> Marina:
        c, n = problem.constants, problem.n_workers
        omega = unbiased_omega(self.compressor, problem.dim)
        p = 1 / (1 + omega) if self.p is None else self.p
        L_plus = c.L_tilde if c.L_plus is None else c.L_plus
        L_pm = L_plus if c.L_pm is None else c.L_pm
        A, B = self.compressor.collective(problem.dim, n)
        root = math.sqrt((1 - p) / p * ((A - B) * L_plus**2 + B * L_pm**2))
        step_size = 1 / (c.L + root)
        if self.polyak_lojasiewicz:
            step_size = min(1 / (c.L + math.sqrt(2) * root), p / (2 * self.require_mu(problem)))
        return self.settled(problem, step_size, p=p)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None:
            raise self.unsettled("p")
        x = state.x - self.gamma * state.g
        problem.broadcast()
        if key.fold(Purpose.COIN).coin(self.p):
            problem.send_dense()
            return State(x, problem.grad(x))
        return State(x, state.g + problem.send_mean_difference(self.compressor, x, state.x, key))
