"""The loop around a method: step, measure, record, stop. No Hydra, files or terminals here."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from buropt.history import History, Record
from buropt.random import Key

if TYPE_CHECKING:
    from buropt.budget import Budget, Limits
    from buropt.optim.base import Array, Optimizer
    from buropt.problems.base import Counters, Problem

CONVERGED = "converged"
ENDED = "ended"
INTERRUPTED = "interrupted"
NON_FINITE = "non_finite"
STOPPED = "stopped"
UNWRITABLE = "unwritable"


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    `status` is "converged", "budget:<limit>", "interrupted", "stopped" (by the callback),
    "ended" (the method by itself; `message` says why), "non_finite" or "unwritable" (the history's
    file; `error` says why); `x`, shape (d,), and `record` belong to the last iterate at which the
    value and the gradient were finite.
    """

    status: str
    x: Array
    record: Record
    error: OSError | None = None
    message: str = ""


class Position(NamedTuple):
    """Where a run stands before it measures an iteration: all that it needs to go on.

    Attributes
    ----------
    iteration : int
    seconds : float
        The method's own time so far.
    next_pass : float
        Sample gradients at which the next measurement is due, where those count.
    state
        The method's.
    counters : Counters
    evaluated : ndarray, shape (d,), or None
        The point whose evaluation the problem keeps. A method that asks for the value there gets
        it from all workers' values and not from one sum, which may differ in the last bit.
    finite : (ndarray, Record) or None
        The last point that was measured, and its record.
    """

    iteration: int
    seconds: float
    next_pass: float
    state: Any
    counters: Counters
    evaluated: Array | None
    finite: tuple[Array, Record] | None


class Checkpoints(Protocol):
    """Keeps positions, so that a run which is killed can go on from the last one."""

    def due(self, iteration: int) -> bool:
        """Whether it is time for the next one; asked before every measurement and step."""

    def iterations_left(self, iteration: int) -> float:
        """Iterations before it may be due by their number."""

    def save(self, position: Position) -> None:
        """Keep it; an error that ends no run is the checkpoints' own affair."""

    def save_end(self, position: Position) -> None:
        """Keep that of a run whose budget is used up, so that it can go on with a larger one."""


class Interruption:
    """While active, Ctrl-C (and a polite kill) sets `signal` instead of raising.

    The loop looks at it between iterations, so nothing is ever half done. The second signal acts as
    usual, for when an iteration takes too long to wait for.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._previous[number] = signal.signal(number, self._receive)
            except ValueError:  # Python allows handlers in the main thread only
                break
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()


def minimize(
    problem: Problem,
    method: Optimizer[Any],
    budget: Budget,
    *,
    seed: int = 0,
    log_every: int | None = None,
    history: History | None = None,
    on_record: Callable[[Record], None] | None = None,
    callback: Callable[[Array], None] | None = None,
    interruption: Interruption | None = None,
    checkpoints: Checkpoints | None = None,
    start: Position | None = None,
) -> Outcome:
    """Run `method` on `problem` from `problem.x0` until the budget is used up.

    The run is measured at iteration 0, as often as `log_every` says, and at its last iteration.
    Values that are not finite end the run at the next measurement.

    Parameters
    ----------
    problem : Problem
        Its counters are those of the run: they begin at 0, and stand at what it used at its end.
    method : Optimizer
        With its hyperparameters settled: `method.theory(problem)`.
    budget : Budget
    seed : int
        Round k draws from Key(seed, k).
    log_every : int, optional
        Iterations between measurements; None: once per pass over the data, which is every
        iteration for methods that use all samples in one.
    history : History, optional
        Receives every record.
    on_record : callable, optional
        Called with every record, for a progress line.
    callback : callable, optional
        Called with x after every iteration, outside the clock; every x is an array of its own. A
        StopIteration ends the run.
    interruption : Interruption, optional
        Looked at between iterations.
    checkpoints : Checkpoints, optional
        Get the position whenever it is due, and when the run is interrupted.
    start : Position, optional
        Go on from there; the problem's counters become its. `history` holds the records so far.

    Returns
    -------
    Outcome
    """
    history = History() if history is None else history
    # What methods ask for, once outside the clock: compiles it, starts threads, faults in memory.
    problem.oracle.worker_values_and_grads(problem.x0)
    run = _Run(problem, method, budget, seed, log_every)
    stopped = False
    ended: str | None = None
    with np.errstate(over="ignore", invalid="ignore"):  # the loop itself looks for inf and nan
        if start is None:
            run.begin()
        else:
            run.go_on(start)
        while True:
            interrupted = interruption is not None and interruption.signal is not None
            wanted = interrupted or (checkpoints is not None and checkpoints.due(run.iteration))
            if checkpoints is not None and wanted and ended is None:
                checkpoints.save(run.position())
            status = run.used_up()
            if status is None and ended is not None:
                status = ENDED
            elif status is None and (stopped or interrupted):
                status = STOPPED if stopped else INTERRUPTED
            if status is not None or run.is_due():
                before = None if checkpoints is None else run.position()
                record = run.measure()
                unwritable: OSError | None = None
                try:
                    history.append(record)
                except OSError as error:
                    unwritable, status = error, UNWRITABLE
                if on_record is not None:
                    on_record(record)
                if not record.is_finite:
                    x, last = (run.state.x, record) if run.finite is None else run.finite
                    return Outcome(NON_FINITE, x, last)
                run.finite = (run.state.x, record)
                if unwritable is None and budget.converged(record.grad_norm_sq):
                    status = CONVERGED
                if status is not None:
                    goes_on = status == CONVERGED or status.startswith("budget:")
                    if checkpoints is not None and before is not None and goes_on:
                        checkpoints.save_end(before)
                    message = ended if status == ENDED and ended is not None else ""
                    return Outcome(status, run.state.x, record, unwritable, message)
            limits = run.limits_to_measurement()
            if callback is not None:
                limits = limits.within(iterations=1)
            if checkpoints is not None:
                limits = limits.within(iterations=checkpoints.iterations_left(run.iteration))
            ended = run.advance(limits)
            if callback is not None:
                try:
                    callback(run.state.x)
                except StopIteration:
                    stopped = True


@dataclass
class _Run:
    """Where a run stands between two iterations; see `Position`."""

    problem: Problem
    method: Optimizer[Any]
    budget: Budget
    seed: int
    log_every: int | None
    iteration: int = 0
    seconds: float = 0.0
    next_pass: float = 0.0
    state: Any = None
    finite: tuple[Array, Record] | None = None

    def __post_init__(self) -> None:
        self.n_samples = self.problem.n_samples

    def begin(self) -> None:
        """Take the method's first state."""
        self.problem.counters = type(self.problem.counters)()
        started = time.perf_counter()
        self.state = self.method.init(self.problem, self.problem.x0, Key(self.seed, 0))
        self.seconds = time.perf_counter() - started

    def go_on(self, start: Position) -> None:
        """Stand where another run stood."""
        self.iteration, self.seconds, self.next_pass, self.state, _, _, self.finite = start
        self.problem.counters = replace(start.counters)
        self.problem.keep_evaluation(start.evaluated)

    def position(self) -> Position:
        """All of it that goes to a file."""
        return Position(
            self.iteration,
            self.seconds,
            self.next_pass,
            self.method.portable(self.state),
            replace(self.problem.counters),
            self.problem.evaluated,
            self.finite,
        )

    def used_up(self) -> str | None:
        """The status of a run whose budget is used up; None as long as it is not."""
        counters = self.problem.counters
        epochs = counters.sample_grads / self.n_samples
        limit = self.budget.exhausted(self.iteration, epochs, counters.bits_up, self.seconds)
        return None if limit is None else f"budget:{limit}"

    def is_due(self) -> bool:
        """Whether it is time to measure."""
        if self.log_every is None:
            return self.problem.counters.sample_grads >= self.next_pass
        return self.iteration % self.log_every == 0

    def measure(self) -> Record:
        """The record of this iteration."""
        problem, counters = self.problem, self.problem.counters
        self.next_pass = counters.sample_grads + self.n_samples
        f_star = problem.constants.f_star
        f, grad_norm_sq = problem.metrics(self.state.x)
        return Record(
            self.iteration,
            f,
            None if f_star is None else f - f_star,
            grad_norm_sq,
            counters.sample_grads / self.n_samples,
            counters.oracle_calls,
            counters.bits_up,
            counters.bits_down,
            self.seconds,
            problem.distance_sq(self.state.x),
        )

    def limits_to_measurement(self) -> Limits:
        """What is left of the budget, at most up to the next measurement."""
        counters = self.problem.counters
        used = self.iteration, counters.sample_grads, counters.bits_up, self.seconds
        left = self.budget.left(*used, self.n_samples)
        if self.log_every is None:
            return left.within(sample_grads=self.next_pass - counters.sample_grads)
        return left.within(iterations=self.log_every - self.iteration % self.log_every)

    def advance(self, limits: Limits) -> str | None:
        """Iterate, on the clock; the method's reason if it has no further step to take."""
        started = time.perf_counter()
        key = Key(self.seed, self.iteration + 1)
        self.state, done = self.method.run(self.problem, self.state, key, limits)
        self.seconds += time.perf_counter() - started
        self.iteration += done
        return self.method.ended(self.state)
