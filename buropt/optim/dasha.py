"""DASHA: compressed momentum, without dense rounds and without synchronization."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), mean g (d,) of the workers' g_i (n, d), and their gradients h_i (n, d)."""

    x: Array
    g: Array
    g_i: Array
    h_i: Array


@dataclass(frozen=True)
class DASHA(FixedStep[State]):
    """DASHA, Tyurin and Richtarik 2022, arXiv:2202.01268.

        x+ = x - step_size mean_i g_i
        worker i:  h_i+ = grad f_i(x+),   m_i = C_i(h_i+ - h_i - a (g_i - h_i)),   g_i+ = g_i + m_i

    a = 1/(2 omega + 1); g_i and h_i start at grad f_i(x0), one dense message, and there is none
    later. Step size 1/(L + L~ sqrt(2 omega (2 omega + 1)/n)), derived here and tested by
    enumeration; the paper's constant is quoted as 16 in place of 2, public code has sqrt(omega (4
    omega + 1)/n). For another a the root is that of 2 omega/(n a (2 - a (2 omega + 1))). The mean
    of E|grad f(x_t)|^2 over t < T is at most 2 (f(x0) - f*)/(step_size T). With
    `polyak_lojasiewicz`, min(1/(L + L~ sqrt(4 omega (2 omega + 1)/n)), a/(2 mu)), for which f - f*
    + (step_size/2) (c1 |g - mean h_i|^2 + c2 mean_i |g_i - h_i|^2) contracts by 1 - step_size mu,
    where c1 = 2 (2 omega + 1)^2/(6 omega + 1) and c2 = 4 omega c1/((2 omega + 1) n); for another a
    with 3/2 in place of the last 2.

    Parameters
    ----------
    a : float, optional
        In (0, 1], below 2/(2 omega + 1).
    polyak_lojasiewicz : bool
        Take the step size of the second theorem; needs mu > 0.
    compressor : Compressor
        Unbiased, drawn independently for every worker.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L~ sqrt(2 omega (2 omega + 1)/n)).
    Oracle: 1 full gradient.
    Bits: 1 compressed message up, d floats at the start; d down.
    Memory: x; g_i and h_i of every worker, mean of g_i.
    Source: arXiv:2202.01268, Algorithm 1.
    """

    a: float | None = None
    polyak_lojasiewicz: bool = False
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("a", at_most=1)
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> DASHA:
        c, n = problem.constants, problem.n_workers
        omega = unbiased_omega(self.compressor, problem.dim)
        a = 1 / (2 * omega + 1) if self.a is None else self.a
        margin = 1.5 if self.polyak_lojasiewicz else 2.0
        root = math.sqrt(momentum_error(self, a, omega, n, margin))
        step_size = 1 / (c.L + c.L_tilde * root)
        if self.polyak_lojasiewicz:
            step_size = min(step_size, a / (2 * self.require_mu(problem)))
        return self.settled(problem, step_size, a=a)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return dense_start(problem, x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = state.x - self.gamma * state.g
        problem.broadcast()
        return send_momentum(
            problem, self.compressor, self.a, x, problem.worker_grads(x), state, key
        )


def momentum_error(
    method: FixedStep[Any], a: float, omega: float, n: int, margin: float = 2.0
) -> float:
    """2 omega/(n a (margin - a (2 omega + 1))), what compression adds to the square of 1/step_size.

    Refused where it is not positive, unless the step size is given.
    """
    if omega == 0:
        return 0.0
    room = margin - a * (2 * omega + 1)
    if room <= 0 and method.step_size is None:
        raise method.no_theorem(
            f"a = {a:g} is not below {margin / (2 * omega + 1):g}; lower it, or give "
            "optimizer.step_size to run it all the same"
        )
    return 2 * omega / (n * a * room) if room > 0 else math.inf


def dense_start(problem: Problem, x0: Array) -> State:
    """The state in which the server knows every worker's gradient."""
    grads = problem.worker_grads(x0)
    problem.send_dense()
    return State(x0, mean(grads), grads, grads)


def send_momentum(
    problem: Problem,
    compressor: Compressor,
    a: float | None,
    x: Array,
    h_i: Array,
    state: State,
    key: Key,
) -> State:
    """The state at x once m_i = C_i(h_i+ - h_i - a (g_i - h_i)) is sent."""
    if a is None:
        raise ValueError("a is not settled: use the method that theory(problem) returns")
    m = problem.send(compressor, h_i - state.h_i - a * (state.g_i - state.h_i), key)
    g_i = state.g_i + m
    return State(x, mean(g_i), g_i, h_i)
