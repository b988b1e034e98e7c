"""FedNL-PP: FedNL with partial participation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, Optimizer, mean
from buropt.optim.estimates import Estimates, first_estimates, norms
from buropt.optim.fednl import newton_step, require_convex, shift_step
from buropt.optim.sampling import participants, require_clients
from buropt.triangle import products

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), estimates H_i with their mean H, errors l_i (n,), and vectors g_i (n, d)."""

    x: Array
    H_i: Estimates
    H: Array
    l_i: Array
    g_i: Array


@dataclass(frozen=True)
class FedNLPP(Optimizer[State]):
    """FedNL-PP, Safaryan, Islamov, Qian and Richtarik 2021, arXiv:2106.02969.

        server:        x+   = (mean_i H_i + mean_i l_i I)^-1 mean_i g_i,  S random, |S| = clients
        i in S:        H_i+ = H_i + alpha C(hess f_i(x+) - H_i)
                       l_i+ = |hess f_i(x+) - H_i+|_F
                       g_i+ = (H_i+ + l_i+ I) x+ - grad f_i(x+)
        i not in S:    everything stays

    x+ is the minimum of the mean of the workers' models (x - w_i)'(H_i + l_i I)(x - w_i)/2 + (x -
    w_i)'grad f_i(w_i), each made at the point w_i where the worker took part last. Near the
    solution of a strongly convex problem |x - x*| converges linearly at a rate that does not depend
    on the condition. alpha and C are as in `FedNL`. With all workers, nothing compressed and alpha
    = 1, it is Newton's method.

    Parameters
    ----------
    clients : int, optional
        Workers in a round, drawn without replacement; None: a tenth of them, at least 1.
    alpha : float, optional
        In (0, 1].
    hessian_start : bool
        Start from the Hessians at x0, dense messages; otherwise from 0.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: convex.
    Step size: 1.
    Oracle: 1 gradient and 1 Hessian of every participant; of every worker at the start.
    Bits: d + 1 floats and 1 compressed triangle up for each participant, d down; d + 1 + d(d+1)/2
    floats at the start.
    Memory: x; H_i, l_i and g_i of every worker.
    Source: arXiv:2106.02969, Algorithm 2.
    """

    clients: int | None = None
    alpha: float | None = None
    hessian_start: bool = True
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        self.require_whole("clients")
        self.require_positive("alpha", at_most=1)

    def theory(self, problem: Problem) -> FedNLPP:
        require_clients("FedNLPP", self.clients, problem.n_workers)
        require_convex(self, problem)
        clients = max(1, problem.n_workers // 10) if self.clients is None else self.clients
        alpha = shift_step(self.alpha, self.compressor, problem.dim)
        return self.settled_with(problem, alpha=alpha, clients=clients)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        H_i, H = first_estimates(problem, x0, self.hessian_start)
        problem.send_dense()
        problem.send_entries(1)
        if self.hessian_start:
            l_i = np.zeros(problem.n_workers, x0.dtype)
        else:
            l_i = norms(problem.worker_triangles(x0))
        g_i = products(H_i.rows(), x0) + l_i[:, None] * x0 - problem.worker_grads(x0)
        return State(x0, H_i, H, l_i, g_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.alpha is None or self.clients is None:
            raise self.unsettled("alpha" if self.alpha is None else "clients")
        x = -newton_step(state.H, float(np.mean(state.l_i)), mean(state.g_i))
        problem.broadcast()
        S = participants(problem, self.clients, key)
        H_i, H, _, errors = state.H_i.learned(
            problem, x, state.H, self.compressor, self.alpha, key, S
        )
        problem.send_dense(len(S) / problem.n_workers)
        problem.send_entries(len(S) / problem.n_workers)
        l_i, g_i = state.l_i.copy(), state.g_i.copy()
        l_i[S] = errors
        grads = problem.local_grads(np.tile(x, (len(S), 1)), S)
        g_i[S] = products(H_i.rows()[S], x) + errors[:, None] * x - grads
        return State(x, H_i, H, l_i, g_i)
