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
    from buropt.budget import Budget
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
    clock = time.perf_counter
    counters = problem.counters = (
        type(problem.counters)() if start is None else replace(start.counters)
    )
    n_samples = problem.n_samples
    f_star = problem.constants.f_star
    history = History() if history is None else history

    # What methods ask for, once outside the clock: compiles it, starts threads, faults in memory.
    problem.oracle.worker_values_and_grads(problem.x0)
    with np.errstate(over="ignore", invalid="ignore"):  # the loop itself looks for inf and nan
        finite: tuple[Array, Record] | None = None
        if start is None:
            started = clock()
            state = method.init(problem, problem.x0, Key(seed, 0))
            seconds = clock() - started
            iteration, next_pass = 0, 0.0
        else:
            iteration, seconds, next_pass, state, _, evaluated, finite = start
            problem.keep_evaluation(evaluated)
        stopped = False
        ended: str | None = None
        while True:
            limit = budget.exhausted(
                iteration, counters.sample_grads / n_samples, counters.bits_up, seconds
            )
            interrupted = interruption is not None and interruption.signal is not None
            wanted = interrupted or (checkpoints is not None and checkpoints.due(iteration))
            if checkpoints is not None and wanted and ended is None:
                checkpoints.save(
                    Position(
                        iteration,
                        seconds,
                        next_pass,
                        method.portable(state),
                        replace(counters),
                        problem.evaluated,
                        finite,
                    )
                )
            if log_every is None:
                due = counters.sample_grads >= next_pass
            else:
                due = iteration % log_every == 0
            if due or limit is not None or interrupted or stopped or ended is not None:
                next_pass = counters.sample_grads + n_samples
                f, grad_norm_sq = problem.metrics(state.x)
                record = Record(
                    iteration,
                    f,
                    None if f_star is None else f - f_star,
                    grad_norm_sq,
                    counters.sample_grads / n_samples,
                    counters.oracle_calls,
                    counters.bits_up,
                    counters.bits_down,
                    seconds,
                    problem.distance_sq(state.x),
                )
                unwritable: OSError | None = None
                try:
                    history.append(record)
                except OSError as error:
                    unwritable = error
                if on_record is not None:
                    on_record(record)
                if not record.is_finite:
                    x, last = (state.x, record) if finite is None else finite
                    return Outcome(NON_FINITE, x, last)
                finite = (state.x, record)
                if unwritable is not None:
                    return Outcome(UNWRITABLE, state.x, record, unwritable)
                if budget.converged(grad_norm_sq):
                    return Outcome(CONVERGED, state.x, record)
                if limit is not None:
                    return Outcome(f"budget:{limit}", state.x, record)
                if ended is not None:
                    return Outcome(ENDED, state.x, record, message=ended)
                if interrupted or stopped:
                    return Outcome(STOPPED if stopped else INTERRUPTED, state.x, record)
            used = iteration, counters.sample_grads, counters.bits_up, seconds
            left = budget.left(*used, n_samples)
            if callback is not None:
                left = left.within(iterations=1)
            elif log_every is not None:
                left = left.within(iterations=log_every - iteration % log_every)
            else:
                left = left.within(sample_grads=next_pass - counters.sample_grads)
            if checkpoints is not None:
                left = left.within(iterations=checkpoints.iterations_left(iteration))
            started = clock()
            state, done = method.run(problem, state, Key(seed, iteration + 1), left)
            seconds += clock() - started
            iteration += done
            ended = method.ended(state)
            if callback is not None:
                try:
                    callback(state.x)
                except StopIteration:
                    stopped = True
