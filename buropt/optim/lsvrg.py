"""L-SVRG: SVRG without loops, the snapshot moves by a coin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from buropt.optim.base import Array, FixedStep
from buropt.optim.compiled import (
    ONE,
    can_run,
    corrected_steps,
    linear_loops,
    rounds_within,
    snapshot_gradient,
    until_coin,
)
from buropt.optim.sampling import (
    CORRECTED,
    Corrected,
    draw,
    draw_rounds,
    expected_smoothness,
    largest_smoothness,
    moment_weights,
    require_batch,
)
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.inner import Lazy
    from buropt.problems.base import Problem
    from buropt.random import Key


class State(NamedTuple):
    """Iterate x (d,), snapshot w (d,), and its gradient full (d,).

    On linear models `lazy` stands for x.
    """

    x: Array
    w: Array
    full: Array
    lazy: Lazy | None = None


@dataclass(frozen=True)
class LSVRG(FixedStep[State]):
    """Loopless SVRG, Kovalev, Horvath and Richtarik 2019, arXiv:1901.08689.

        g  = grad f_j(x) - grad f_j(w) + grad f(w),   j random (or a batch)
        x+ = prox(x - step_size g)
        w+ = x (before the step) with probability p, else w

    Step size 1/(6 Lmax), p = 1/N: then |x - x*|^2 + (4 step_size^2 / p) mean_j |grad f_j(w) - grad
    f_j(x*)|^2 contracts in expectation by max(1 - step_size mu, 1 - p/2). For batches without
    replacement 1/(2 Ls + 4 c Lmax) with Ls of `sampling` and c = (N-b)/(b(N-1)), and c times the
    second term: the same proof, with the variance of a batch mean (arXiv:1905.11261 has the frame,
    psi included). Importance sampling: 1/(6 mean_j L_j), with |grad f_j(w) - ...|^2 over N p_j;
    with a regularizer the Ls of `sampling` for one sample stands for the mean.

    Parameters
    ----------
    p : float, optional
        None: 1/N, or batch_size/N.
    batch_size : int
    sampling : {"nice", "importance"}
        Batches without replacement, or independent draws with probabilities L_j / sum_k L_k; see
        `sampling`.

    Notes
    -----
    Problems: convex, with prox.
    Step size: 1/(6 Lmax).
    Oracle: 2 sample gradients; with probability p 1 full gradient.
    Bits: d floats up, d down; with probability p d more up.
    Memory: x, w, grad f(w).
    Source: arXiv:1901.08689, Algorithm 1.
    """

    proximal: ClassVar[bool] = True

    p: float | None = None
    batch_size: int = 1
    sampling: Corrected = "nice"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("p", at_most=1)
        self.require_choice("sampling", CORRECTED)
        self.require_whole("batch_size")

    def theory(self, problem: Problem) -> LSVRG:
        require_batch("LSVRG", self.batch_size, problem.n_samples)
        self.require_convex(problem)
        p = self.batch_size / problem.n_samples if self.p is None else self.p
        step_size = variance_reduced_step(problem, self.batch_size, self.sampling)
        return self.settled(problem, step_size, p=p)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, x0, snapshot_gradient(self, problem, x0, self.batch_size))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.p is None:
            raise self.unsettled("p")
        if linear_loops(self, problem, self.batch_size) is not None:
            return self.run(problem, state, key, ONE)[0]
        idx, weights = draw(problem, self.sampling, self.batch_size, key)
        problem.broadcast()
        problem.send_dense()
        g = problem.sample_grad_difference(state.x, state.w, idx, weights) + state.full
        x = problem.prox(state.x - self.gamma * g, self.gamma)
        if key.fold(Purpose.COIN).coin(self.p):
            return self._moved(problem, x, state.x)
        return State(x, state.w, state.full)

    def run(self, problem: Problem, state: State, key: Key, limits: Limits) -> tuple[State, int]:
        if self.p is None:
            raise self.unsettled("p")
        b = self.batch_size
        if not can_run(self, problem, b):
            return super().run(problem, state, key, limits)
        rounds = rounds_within(limits, problem, 2 * b, b)
        moves, rounds = until_coin(self.p, key.fold(Purpose.COIN), rounds)
        rounds = 1 if moves else rounds
        batch = draw_rounds(problem, self.sampling, b, key, rounds)
        x, lazy, done = corrected_steps(self, problem, state, batch, limits.seconds)
        if moves:
            return self._moved(problem, x, state.x), done
        return State(x, state.w, state.full, lazy), done

    def _moved(self, problem: Problem, x: Array, w: Array) -> State:
        problem.send_dense()
        return State(x, w, snapshot_gradient(self, problem, w, self.batch_size))


def variance_reduced_step(problem: Problem, batch_size: int, sampling: Corrected = "nice") -> float:
    """1/(2 Ls + 4 c Lmax): the step of L-SVRG and SAGA with batches, by the unified theory.

    With E|g|^2 <= 4 Ls (f - f*) + 2 c sigma^2, and sigma^2 of contraction 1 - rho and inflow 2 rho
    Lmax (f - f*), where rho = p or b/N, Theorem 4.1 of arXiv:1905.11261 with M = 4 c/rho gives it.
    With importance sampling sigma^2 has the weights 1/(N p_j), and the mean of the L_j is there
    for Lmax.
    """
    replacement = sampling == "importance"
    _, variance = moment_weights(problem.n_samples, batch_size, replacement)
    smoothness = expected_smoothness(problem, sampling, batch_size)
    return 1 / (2 * smoothness + 4 * variance * largest_smoothness(problem, sampling))
