"""PP-MARINA: MARINA with partial participation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, unbiased_omega
from buropt.optim.sampling import participants, require_clients
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and gradient estimate g (d,) there."""

    x: Array
    g: Array


@dataclass(frozen=True)
class PPMarina(FixedStep[State]):
    """PP-MARINA, Gorbunov et al. 2021, arXiv:2102.07845.

        x+ = x - step_size g
        g+ = grad f(x+)                                                 with probability p
           = g + (1/r) sum_{i in S} C_i(grad f_i(x+) - grad f_i(x))     otherwise, |S| = r

    One coin for all; in rounds of the second kind r random workers compute and send. p = r/(n (1 +
    omega)), step size of Theorem 4.1, 1/(L + L~ sqrt((1 - p)(1 + omega)/(p r))). The theorem has r
    independent draws; here S is drawn without replacement, as in public code, whose variance is
    smaller. With S = all it is MARINA.

    Parameters
    ----------
    clients : int, optional
        r; None: a tenth of the workers, at least 1.
    p : float, optional
        In (0, 1].
    compressor : Compressor
        Unbiased, drawn independently for every worker.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L + L~ sqrt((1 - p)(1 + omega)/(p r))).
    Oracle: 2 gradients of every participant, or with probability p 1 full gradient.
    Bits: 1 compressed message up for each participant, or d floats with probability p; d down.
    Memory: x, g.
    Source: arXiv:2102.07845, Theorem 4.1.
    """

    clients: int | None = None
    p: float | None = None
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("clients")
        self.require_positive("p", at_most=1)
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> PPMarina:
        require_clients("PPMarina", self.clients, problem.n_workers)
        c, n = problem.constants, problem.n_workers
        r = max(1, n // 10) if self.clients is None else self.clients
        omega = unbiased_omega(self.compressor, problem.dim)
        p = r / (n * (1 + omega)) if self.p is None else self.p
        root = math.sqrt((1 - p) * (1 + omega) / (p * r))
        return self.settled(problem, 1 / (c.L + c.L_tilde * root), p=p, clients=r)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None or self.clients is None:
            raise self.unsettled("p" if self.p is None else "clients")
        x = state.x - self.gamma * state.g
        problem.broadcast()
        if key.fold(Purpose.COIN).coin(self.p):
            problem.send_dense()
            return State(x, problem.grad(x))
        S = participants(problem, self.clients, key)
        differences = np.zeros((problem.n_workers, problem.dim), x.dtype)
        for point, sign in ((x, 1), (state.x, -1)):
            differences[S] += sign * problem.local_grads(np.tile(point, (len(S), 1)), S)
        sent = problem.send(self.compressor, differences, key, S)
        return State(x, state.g + np.add.reduce(sent, axis=0) / len(S))
