"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array
from buropt.optim.stochastic import Stochastic

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), running means m of gradients and v of squared gradients (d,)."""

    x: Array
    m: Array
    v: Array


@dataclass(frozen=True)
class Adam(Stochastic[State]):
    """Adam, Kingma and Ba 2014, arXiv:1412.6980.

        m+ = beta1 m + (1 - beta1) g,   g = grad f_S(x)
        v+ = beta2 v + (1 - beta2) g^2                     (by coordinates)
        x+ = x - step_size (m+ / (1 - beta1^t)) / (sqrt(v+ / (1 - beta2^t)) + epsilon)

    in iteration t = 1, 2, ... The defaults are the paper's. The first step moves every coordinate
    by step_size. The paper's regret bound does not hold in general (Reddi, Kale and Kumar 2018,
    arXiv:1904.09237), so no theorem stands behind the step size.

    Parameters
    ----------
    beta1, beta2 : float
        In [0, 1).
    epsilon : float
        Added to the root.

    Notes
    -----
    Problems: smooth, as a heuristic.
    Step size: 0.001.
    Oracle: batch_size sample gradients.
    Bits: d floats up, d down.
    Memory: x, m, v.
    Source: arXiv:1412.6980, Algorithm 1.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_fraction("beta1", "beta2")
        self.require_positive("epsilon")

    def theory(self, problem: Problem) -> Adam:
        return self.settled(problem, 0.001)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, np.zeros_like(x0), np.zeros_like(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        g = self.batch_grad(problem, state.x, key)
        m = self.beta1 * state.m + (1 - self.beta1) * g
        v = self.beta2 * state.v + (1 - self.beta2) * (g * g)
        m_hat = m / (1 - self.beta1**key.round)
        v_hat = v / (1 - self.beta2**key.round)
        x = self.decayed(state.x, key) - self.step_at(key) * m_hat / (np.sqrt(v_hat) + self.epsilon)
        return State(x, m, v)

    def decayed(self, x: Array, key: Key) -> Array:
        """Where the step starts."""
        return x


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay, Loshchilov and Hutter 2017, arXiv:1711.05101.

        x+ = x - a (step_size m_hat / (sqrt(v_hat) + epsilon) + weight_decay x)

    a is the factor of the schedule, so the decay does not depend on the step size, as in the paper;
    PyTorch's weight_decay is this one divided by the step size. Not an l2 term: its strength is the
    same for every coordinate, and the limit is not the minimum of f.

    Parameters
    ----------
    weight_decay : float
        The part of x that is lost in an iteration, in (0, 1].

    Notes
    -----
    Problems: smooth, as a heuristic.
    Step size: 0.001.
    Oracle: batch_size sample gradients.
    Bits: d floats up, d down.
    Memory: x, m, v.
    Source: arXiv:1711.05101, Algorithm 2.
    """

    weight_decay: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("weight_decay", at_most=1)

    def decayed(self, x: Array, key: Key) -> Array:
        return (1 - self.schedule.factor(key.round) * self.weight_decay) * x
