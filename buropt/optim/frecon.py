"""FRECON: a recursive estimate with compression and client sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean, unbiased_omega
from buropt.optim.sampling import participants, require_clients
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), gradient estimate g (d,) there, and the workers' shifts h (n, d)."""

    x: Array
    g: Array
    h: Array


@dataclass(frozen=True)
class FRECON(FixedStep[State]):
    """FRECON, Zhao, Burlachenko, Li and Richtarik 2021, arXiv:2112.13097.

        x+ = x - step_size g
        worker i of the round's S:  q_i = C_i(grad f_i(x+) - grad f_i(x)),
                                    u_i = C_i'(grad f_i(x) - h_i),   h_i+ = h_i + alpha u_i
        server:  g+ = mean_S q_i + (1 - lam) g + lam (mean_S u_i + mean_k h_k)

    alpha = 1/(1 + omega), lam = |S|/(2 (1 + omega) n), step size 1/(L (1 + sqrt(10 (1 + omega)^2
    n/|S|^2))), L = Lmax. g starts at grad f(x0), h at 0. Public code takes u_i at the new point;
    here it is the old one, for which the error of g has no bias, as in STORM: E g+ - grad f(x+) =
    (1 - lam)(g - grad f(x)). The paper's own index was not found again; for the old point the step
    is proved here: with r = alpha |S|/n, A = 1/(lam (2 - lam)) and B = 4 A lam^2 (1 + omega)/(r
    |S|)

        f + (step_size/2) (A |g - grad f(x)|^2 + B mean_i |h_i - grad f_i(x)|^2)

    decreases by (step_size/2) |grad f(x)|^2 in expectation if 1/step_size >= L (1 + sqrt(A (1 +
    omega) (2 + 12 lam^2/r^2)/|S|)), whose root is the smaller one for the alpha and lam above. For
    others the larger of the two is taken.

    Parameters
    ----------
    clients : int, optional
        |S|, drawn without replacement; None: all.
    alpha : float, optional
        Step of the shifts, in (0, 1/(1 + omega)]; None: the largest.
    lam : float, optional
        In (0, 1].
    compressor : Compressor
        Unbiased, drawn independently for every worker and message.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(L (1 + sqrt(10 (1 + omega)^2 n/s^2))).
    Oracle: 2 gradients of every participant; all at the start.
    Bits: 2 compressed messages up for each participant, 2d floats down.
    Memory: x, g; h_i of every worker.
    Source: arXiv:2112.13097, Algorithm 2.
    """

    clients: int | None = None
    alpha: float | None = None
    lam: float | None = None
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("clients")
        self.require_positive("alpha", "lam", at_most=1)
        self.require_unbiased(self.compressor)

    def theory(self, problem: Problem) -> FRECON:
        require_clients("FRECON", self.clients, problem.n_workers)
        n = problem.n_workers
        s = n if self.clients is None else self.clients
        w = 1 + unbiased_omega(self.compressor, problem.dim)
        alpha = self.shift_step(1 / w, smaller=True)
        lam, r = s / (2 * w * n) if self.lam is None else self.lam, alpha * s / n
        proved = w * (2 + 12 * (lam / r) ** 2) / (s * lam * (2 - lam))
        root = math.sqrt(max(10 * w**2 * n / s**2, proved))
        step_size = 1 / (problem.constants.L_max * (1 + root))
        return self.settled(problem, step_size, alpha=alpha, lam=lam)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        grads = problem.worker_grads(x0)
        return State(x0, mean(grads), np.zeros_like(grads))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.alpha is None or self.lam is None:
            raise self.unsettled("alpha" if self.alpha is None else "lam")
        S = participants(problem, self.clients, key)
        x = state.x - self.gamma * state.g
        problem.broadcast(2)
        new, old = (problem.local_grads(np.tile(point, (len(S), 1)), S) for point in (x, state.x))
        differences = np.zeros_like(state.h)
        differences[S] = new - old
        q = problem.send(self.compressor, differences, key, S)
        differences[S] = old - state.h[S]
        u = problem.send(self.compressor, differences, key.fold(Purpose.SNAPSHOT), S)
        mean_q, mean_u = (np.add.reduce(sent, axis=0) / len(S) for sent in (q, u))
        g = mean_q + (1 - self.lam) * state.g + self.lam * (mean_u + mean(state.h))
        return State(x, g, state.h + self.alpha * u)
