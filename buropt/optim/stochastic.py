"""What the methods share that follow gradients of random batches, with a schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from buropt.optim.base import Array, FixedStep, S
from buropt.optim.sampling import (
    SAMPLINGS,
    Sampling,
    draw,
    expected_smoothness,
    require_batch,
    sample_smoothness,
)
from buropt.optim.schedules import CONSTANT, Schedule

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

T = TypeVar("T", bound="Stochastic[Any]")


@dataclass(frozen=True)
class Stochastic(FixedStep[S]):
    """A method that asks for one gradient of a batch in each iteration.

    Counted like GD, one dense vector an iteration in each direction, so that curves can share an
    axis.

    Parameters
    ----------
    batch_size : int, optional
        Samples in a batch, at most N; None: all, which makes the method deterministic.
    sampling : {"nice", "independent", "importance", "reshuffled"}
        See `sampling`.
    schedule : Schedule
        What multiplies the step size, iteration by iteration.
    """

    batch_size: int | None = 1
    sampling: Sampling = "nice"
    schedule: Schedule = CONSTANT

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_whole("batch_size")
        self.require_choice("sampling", SAMPLINGS)

    def settled(self: T, problem: Problem, theoretical: float, **hyperparameters: Any) -> T:
        if self.sampling in ("nice", "reshuffled"):
            require_batch(type(self).__name__, self.batch_size, problem.n_samples)
        method = super().settled(problem, theoretical, **hyperparameters)
        return replace(method, schedule=self.schedule.theory(method.gamma, problem.constants.mu))

    def sgd_step_size(self, problem: Problem) -> float:
        """The largest step of SGD with this sampling; see `SGD`."""
        c, n = problem.constants, problem.n_samples
        if self.batch_size is None:
            return 1 / (2 * c.L)
        if self.sampling == "reshuffled":
            if c.mu_sample > 0:
                return 1 / c.L_sample_max
            n_batches = -(-n // self.batch_size)
            return float(1 / (2**0.5 * n_batches * c.L_sample_max))
        if self.sampling == "importance":
            sample_smoothness(problem)
        return 1 / (2 * expected_smoothness(problem, self.sampling, min(self.batch_size, n)))

    def batch_grad(self, problem: Problem, x: Array, key: Key) -> Array:
        """The gradient of the round's batch at x, (dim,)."""
        problem.broadcast()
        problem.send_dense()
        if self.batch_size is None:
            return problem.grad(x)
        batch = draw(problem, self.sampling, self.batch_size, key)
        return problem.sample_grad(x, batch.idx, batch.weights)

    def step_at(self, key: Key) -> float:
        """The step size of the round."""
        return self.gamma * self.schedule.factor(key.round)
