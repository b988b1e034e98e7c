"""COFIG: DIANA with client sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega
from buropt.optim.sampling import participants, require_clients

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,) and the workers' shifts h (n, d)."""

    x: Array
    h: Array


@dataclass(frozen=True)
class COFIG(FixedStep[State]):
    """COFIG, Zhao, Burlachenko, Li and Richtarik 2021, arXiv:2112.13097.

        worker i of the round's S:  u_i = C_i(grad f_i(x) - h_i),   h_i+ = h_i + alpha u_i
        server:                     x+  = x - step_size (mean_k h_k + mean_{i in S} u_i)

    alpha = 1/(1 + omega), h starts at 0. With L = Lmax and s = |S|: on convex functions step size
    min(1/(L (2 + 8 (1 + omega)/s)), s/(L (1 + omega) sqrt(n))), otherwise min(1/(2L), s/(5 L (1 +
    omega) n^(2/3)), s/(5 L (1 + omega)^(3/2) sqrt(n))). From public code, in which the exponent 3/2
    is misread and the L of the very last convex term missing; the paper's text was not found again.
    With S = all it is DIANA.

    Parameters
    ----------
    clients : int, optional
        |S|, drawn without replacement; None: all.
    alpha : float, optional
        Step of the shifts; None: 1/(1 + omega).
    compressor : Compressor
        Unbiased, drawn independently for every worker.

    Notes
    -----
    Problems: smooth.
    Step size: min(1/(L (2 + 8 (1 + omega)/s)), s/(L (1 + omega) sqrt(n))), convex.
    Oracle: 1 gradient of every participant.
    Bits: 1 compressed message up for each participant, d floats down.
    Memory: x; h_i of every worker.
    Source: arXiv:2112.13097, Algorithm 1.
    """

    clients: int | None = None
    alpha: float | None = None
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("clients")
        self.require_positive("alpha", at_most=1)
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> COFIG:
        require_clients("COFIG", self.clients, problem.n_workers)
        n, L = problem.n_workers, problem.constants.L_max
        s = n if self.clients is None else self.clients
        w = 1 + unbiased_omega(self.compressor, problem.dim)
        if problem.constants.convex:
            step_size = min(1 / (L * (2 + 8 * w / s)), s / (L * w * math.sqrt(n)))
        else:
            slow = s / (5 * L * w)
            step_size = min(1 / (2 * L), slow / n ** (2 / 3), slow / math.sqrt(w * n))
        alpha = self.shift_step(1 / w)
        return self.settled(problem, step_size, alpha=alpha)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros((problem.n_workers, problem.dim), x0.dtype))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.alpha is None:
            raise self.unsettled("alpha")
        S = participants(problem, self.clients, key)
        problem.broadcast()
        differences = np.zeros_like(state.h)
        differences[S] = problem.local_grads(np.tile(state.x, (len(S), 1)), S) - state.h[S]
        u = problem.send(self.compressor, differences, key, S)
        g = mean(state.h) + np.add.reduce(u, axis=0) / len(S)
        return State(state.x - self.gamma * g, state.h + self.alpha * u)
