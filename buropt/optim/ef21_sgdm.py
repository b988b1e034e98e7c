"""EF21 with momentum for stochastic gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from buropt.compressors import Compressor
from buropt.optim.base import IDENTITY, Array, FixedStep, mean
from buropt.optim.contractive import contraction, send_contractive, theta_beta
from buropt.optim.sampling import worker_batches

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), the mean g (d,) of the workers' g_i (n, d), and their averages v_i (n, d)."""

    x: Array
    g: Array
    g_i: Array
    v_i: Array


@dataclass(frozen=True)
class EF21SGDM(FixedStep[State]):
    """EF21-SGDM, Fatkhullin, Tyurin and Richtarik 2023, arXiv:2305.15155.

        x+ = x - step_size mean_i g_i
        v_i+ = (1 - eta) v_i + eta grad f_i(x+; random batch)
        g_i+ = g_i + C(v_i+ - g_i)

    Momentum makes error feedback work with batches of any size. For batches the step size is
    min(alpha/(20 L~), eta/(7 L)), as the paper's theorem is usually quoted; its text was not at
    hand. It follows from the proof below with |mean_i v_i - grad f|^2 as a third term, which allows
    the longer 1/(L + sqrt(4 r L~^2 (eta^2 + (1 - eta)^2) + 2 L^2 (1 - eta)^2/eta^2)), up to terms
    of the variance of the batches. For full gradients 1/(L + L~ sqrt(4 eta^2 r + 2 (1 - eta)^2
    (1/eta^2 + 2 r))), r = beta/theta, is derived here: f + (step_size/2) ((2/eta + 4 eta r) P +
    (2/theta) G) decreases in expectation, with P = mean_i |v_i - grad f_i(x)|^2 and G = mean_i |g_i
    - v_i|^2.

    Parameters
    ----------
    eta : float
        In (0, 1]; 1 is EF21-SGD.
    batch_size : int, optional
        Drawn with replacement from each worker's samples; None: all of them.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: smooth.
    Step size: min(alpha/(20 L~), eta/(7 L)).
    Oracle: batch_size sample gradients of every worker.
    Bits: 1 compressed message up, d floats down.
    Memory: x; g_i and v_i of every worker, mean of g_i.
    Source: arXiv:2305.15155, Algorithm 1.
    """

    eta: float = 0.1
    batch_size: int | None = 1
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("eta", at_most=1)
        self.require_whole("batch_size")

    def theory(self, problem: Problem) -> EF21SGDM:
        c, eta = problem.constants, self.eta
        alpha = contraction(self.compressor, problem.dim)
        if self.batch_size is not None:
            return self.settled(problem, min(alpha / (20 * c.L_tilde), eta / (7 * c.L)))
        theta, beta = theta_beta(alpha)
        r = beta / theta
        square = 4 * eta**2 * r + 2 * (1 - eta) ** 2 * (1 / eta**2 + 2 * r)
        return self.settled(problem, 1 / (c.L + c.L_tilde * math.sqrt(square)))

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        v_i = self._grads(problem, x0, key)
        g_i = send_contractive(problem, self.compressor, v_i, key)
        return State(x0, mean(g_i), g_i, v_i)

    def step(self, problem: Problem, state: State, key: Key) -> State:
        x = state.x - self.gamma * state.g
        problem.broadcast()
        v_i = (1 - self.eta) * state.v_i + self.eta * self._grads(problem, x, key)
        g_i = state.g_i + send_contractive(problem, self.compressor, v_i - state.g_i, key)
        return State(x, mean(g_i), g_i, v_i)

    def _grads(self, problem: Problem, x: Array, key: Key) -> Array:
        if self.batch_size is None:
            return problem.worker_grads(x)
        return problem.worker_sample_grads(x, worker_batches(problem, self.batch_size, key))


@dataclass(frozen=True)
class EF21SGD(EF21SGDM):
    """EF21-SGD, Fatkhullin et al. 2021, arXiv:2110.03294: `EF21SGDM` without momentum.

        x+ = x - step_size mean_i g_i,   g_i+ = g_i + C(grad f_i(x+; random batch) - g_i)

    The variance of the batches is not averaged out: it takes large batches to come close to a
    stationary point, and there are problems on which small ones do not converge for any step.

    Notes
    -----
    Problems: smooth; large batches.
    Step size: min(alpha/(20 L~), 1/(7 L)).
    Oracle: batch_size sample gradients of every worker.
    Bits: 1 compressed message up, d floats down.
    Memory: x; g_i and the last gradient of every worker, mean of g_i.
    Source: arXiv:2110.03294; step as arXiv:2305.15155 with eta = 1.
    """

    eta: float = 1.0
