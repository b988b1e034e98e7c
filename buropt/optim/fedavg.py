"""FedAvg: local gradient steps between averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array, FixedStep, mean
from buropt.optim.sampling import local_batches, participants, require_clients

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """The server's x (d,)."""

    x: Array


@dataclass(frozen=True)
class FedAvg(FixedStep[State]):
    """Federated averaging (Local SGD), McMahan et al. 2016, arXiv:1602.05629.

        worker i of the round's S:  y_i = x, then local_steps times  y_i -= step_size grad f_i(y_i)
        server:                     x+ = mean_{i in S} y_i

    The mean has equal weights, since f is the plain mean of the f_i (which carry the sizes of the
    workers' data). With one local step it is gradient descent. Otherwise, unless the workers agree,
    it does not stop at the minimum of f but where sum_i (x - y_i) = 0 (client drift; the tests have
    the exact point on quadratics); `Scaffold` and `ProxSkip` repair that.

    Step size 1/(local_steps Lmax), a cautious rule: a round then moves about as far as one step of
    gradient descent. The paper itself tunes.

    Parameters
    ----------
    local_steps : int
    clients : int, optional
        Workers that take part in a round, drawn without replacement; None: all.
    batch_size : int, optional
        Of a local step, drawn with replacement from the worker's samples; None: all of them.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(local_steps Lmax).
    Oracle: local_steps gradients of every participant.
    Bits: d floats up for each participant, d down.
    Memory: x.
    Source: arXiv:1602.05629, Algorithm 1.
    """

    local_steps: int = 10
    clients: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("local_steps", "clients", "batch_size")

    def theory(self, problem: Problem) -> FedAvg:
        require_clients("FedAvg", self.clients, problem.n_workers)
        return self.settled(problem, 1 / (self.local_steps * problem.constants.L_max))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        workers = participants(problem, self.clients, key)
        problem.broadcast()
        y = np.tile(state.x, (len(workers), 1))
        for idx in local_batches(problem, workers, self.local_steps, self.batch_size, key):
            y -= self.gamma * problem.local_grads(y, workers, idx)
        problem.send_dense(len(workers) / problem.n_workers)
        return State(mean(y))
