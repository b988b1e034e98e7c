"""Scaffold: local steps with control variates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from buropt.optim.base import Array, FixedStep, mean
from buropt.optim.sampling import local_batches, participants, require_clients

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

Option: TypeAlias = Literal["I", "II"]


class State(NamedTuple):
    """The server's x (d,) and c (d,), the workers' control variates c_i (n, d)."""

    x: Array
    c: Array
    c_i: Array


@dataclass(frozen=True)
class Scaffold(FixedStep[State]):
    """Scaffold, Karimireddy et al. 2019, arXiv:1910.06378.

        worker i of the round's S:
            y_i  = x, then K times  y_i -= step_size (grad f_i(y_i) - c_i + c)
            c_i+ = grad f_i(x)  (option I),   c_i - c + (x - y_i)/(K step_size)  (option II)
        server:  x+ = x + server_step mean_{i in S} (y_i - x),
                 c+ = c + (|S|/n) mean_{i in S} (c_i+ - c_i)

    All control variates start at 0. With K = 1, everybody and server_step = 1 it is gradient
    descent. Step size (Theorem III): 1/(81 K server_step Lmax), and if f is strongly convex also at
    most |S|/(15 mu n K server_step); for nonconvex problems (|S|/n)^(2/3)/(24 K server_step Lmax).
    The first agrees with public statements of the theorem; the other two are quoted as usual, and
    were not found again word for word. It is for server_step >= 1; a smaller one takes the step of
    1, since local steps must not grow without bound.

    Parameters
    ----------
    local_steps : int
        K.
    server_step : float
    option : {"I", "II"}
        II needs no gradient beyond those of the local steps.
    clients : int, optional
        Workers that take part in a round, drawn without replacement; None: all.
    batch_size : int, optional
        Of a local step, drawn with replacement from the worker's samples; None: all of them.

    Notes
    -----
    Problems: smooth.
    Step size: 1/(81 K server_step Lmax); nonconvex (|S|/n)^(2/3)/(24 K server_step Lmax).
    Oracle: K gradients of every participant, K + 1 for option I.
    Bits: 2d floats up for each participant, 2d down.
    Memory: x, c; c_i of every worker.
    Source: arXiv:1910.06378, Algorithm 1, Theorem III.
    """

    local_steps: int = 10
    server_step: float = 1.0
    option: Option = "II"
    clients: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("local_steps", "clients", "batch_size")
        self.require_positive("server_step")
        self.require_choice("option", get_args(Option))

    def theory(self, problem: Problem) -> Scaffold:
        require_clients("Scaffold", self.clients, problem.n_workers)
        c = problem.constants
        part = 1.0 if self.clients is None else self.clients / problem.n_workers
        steps = self.local_steps * max(1.0, self.server_step)
        if not c.convex:
            return self.settled(problem, float(part ** (2 / 3) / (24 * steps * c.L_max)))
        step_size = 1 / (81 * steps * c.L_max)
        if c.mu > 0:
            step_size = min(step_size, part / (15 * c.mu * steps))
        return self.settled(problem, step_size)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros_like(x0), np.zeros((problem.n_workers, problem.dim), x0.dtype))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x, c = state.x, state.c
        workers = participants(problem, self.clients, key)
        old = state.c_i[workers]
        problem.broadcast(2)
        y = np.tile(x, (len(workers), 1))
        for idx in local_batches(problem, workers, self.local_steps, self.batch_size, key):
            y -= self.gamma * (problem.local_grads(y, workers, idx) - old + c)
        if self.option == "I":
            new = problem.local_grads(np.tile(x, (len(workers), 1)), workers)
        else:
            new = old - c + (x - y) / (self.local_steps * self.gamma)
        part = len(workers) / problem.n_workers
        problem.send_dense(2 * part)
        c_i = state.c_i.copy()
        c_i[workers] = new
        return State(x + self.server_step * (mean(y) - x), c + part * mean(new - old), c_i)
