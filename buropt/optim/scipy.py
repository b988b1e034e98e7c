"""SciPy's minimizers as methods, to stand in one figure with the others."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt.optim.base import Array, Optimizer

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

Vector = NDArray[np.float64]
FOREVER = 10**9
TINY = 1e-300  # Newton-CG of SciPy 1.11 takes no step with a tolerance of 0

# Each method with options that leave the end of the run to its budget, and what it uses beside the
# gradient.
_METHODS: dict[str, tuple[dict[str, Any], str]] = {
    "CG": ({"gtol": 0.0, "maxiter": FOREVER}, ""),
    "BFGS": ({"gtol": 0.0, "maxiter": FOREVER}, ""),
    "L-BFGS-B": ({"ftol": 0.0, "gtol": 0.0, "maxiter": FOREVER, "maxfun": FOREVER}, ""),
    "TNC": ({"ftol": 0.0, "xtol": 0.0, "gtol": 0.0, "maxfun": FOREVER}, ""),
    "SLSQP": ({"ftol": 0.0, "maxiter": FOREVER}, ""),
    "Newton-CG": ({"xtol": TINY, "maxiter": FOREVER}, "hessp"),
    "trust-ncg": ({"gtol": 0.0, "maxiter": FOREVER}, "hessp"),
    "trust-krylov": ({"gtol": 0.0, "maxiter": FOREVER}, "hessp"),
    "trust-constr": ({"gtol": 0.0, "xtol": 0.0, "maxiter": FOREVER}, "hessp"),
    "dogleg": ({"gtol": 0.0, "maxiter": FOREVER}, "hess"),
    "trust-exact": ({"gtol": 0.0, "maxiter": FOREVER}, "hess"),
}


class State(NamedTuple):
    """Iterate x (d,), the number of the iteration, the start (d,), and SciPy's run up to here.

    A copy has no run; its next step repeats the run from the start, without counting it again.
    """

    x: Array
    iteration: int
    start: Array
    run: Run | None


@dataclass(frozen=True)
class SciPy(Optimizer[State]):
    """SciPy's minimizers, an iteration a step; `method` says which of them.

    It runs beside the loop, in a thread that waits between the iterations for the next one. SciPy's
    tolerances are 0, so that budget and tolerance of the run decide; a method that gives up by
    itself, as line searches do at the limit of precision, ends the run.

    Parameters
    ----------
    method : str
        CG, BFGS, L-BFGS-B, TNC, SLSQP, Newton-CG, trust-ncg, trust-krylov, trust-constr, dogleg or
        trust-exact.
    options : dict, optional
        More options of that method.

    Notes
    -----
    Problems: smooth; dogleg where Hessians are positive definite.
    Step size: SciPy's line search or trust region.
    Oracle: 1 full gradient for each distinct point, 1 Hessian product or Hessian where used.
    Bits: d floats up and down for each gradient and product, d(d+1)/2 up for a Hessian.
    Memory: that of the method.
    Source: Nocedal and Wright 2006; scipy.optimize.
    """

    method: str = "L-BFGS-B"
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self.require_choice("method", tuple(_METHODS))

    @property
    def label(self) -> str:
        return f"SciPy's {self.method}"

    def theory(self, problem: Problem) -> SciPy:
        settled = self.settled_with(problem)
        # What takes a while the first time, and is no part of the run's seconds.

        if self.arguments()[1] == "hessp":
            problem.oracle.hvp(problem.x0, problem.x0)
        return settled

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        questions = Questions(problem)
        questions.at(np.asarray(x0, np.float64))
        return State(x0, 0, x0, Run(self, questions, x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        run = state.run
        if run is None or run.iteration != state.iteration:
            run = self._repeated(problem, state)
        x = run.advance()
        return State(x.astype(problem.x0.dtype), run.iteration, state.start, run)

    def ended(self, state: State) -> str | None:
        return None if state.run is None else state.run.message

    def portable(self, state: State) -> State:
        return state._replace(run=None)

    def _repeated(self, problem: Problem, state: State) -> Run:
        """A run that has come to the state; what it asked has been counted before."""
        counters = replace(problem.counters)
        questions = Questions(problem)
        questions.at(np.asarray(state.start, np.float64))
        run = Run(self, questions, state.start)
        while run.iteration < state.iteration:
            run.advance()
        problem.counters.__dict__.update(counters.__dict__)
        return run

    def arguments(self) -> tuple[dict[str, Any], str]:
        """The options, and "hess", "hessp" or nothing."""
        options, second = _METHODS[self.method]
        return {**options, **(self.options or {})}, second


class Questions:
    """What SciPy asks, in float64, asked of the problem once for each point."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: tuple[bytes, float, Vector] | None = None

    def at(self, x: Vector) -> tuple[float, Vector]:
        """Value and gradient (d,), which the workers send."""
        key = x.tobytes()
        if self._known is None or self._known[0] != key:
            if self._known is not None:  # every worker knows the start
                self._problem.broadcast()
            value, gradient = self._problem.value_and_grad(self._computed(x))
            self._problem.send_dense()
            self._known = key, value, np.asarray(gradient, np.float64)
        _, value, gradient = self._known
        return value, gradient.copy()

    def value(self, x: Vector) -> float:
        """The value."""
        return self.at(x)[0]

    def gradient(self, x: Vector) -> Vector:
        """The gradient, (d,)."""
        return self.at(x)[1]

    def product(self, x: Vector, p: Vector) -> Vector:
        """The Hessian times p, (d,)."""
        self._problem.broadcast()
        self._problem.send_dense()
        product = self._problem.hvp(self._computed(x), self._computed(p))
        return np.array(product, np.float64)

    def hessian(self, x: Vector) -> Vector:
        """The Hessian, (d, d)."""
        self._problem.send_entries(self._problem.dim * (self._problem.dim + 1) // 2)
        return np.array(self._problem.hessian(self._computed(x)), np.float64)

    def _computed(self, x: Vector) -> Array:
        return x.astype(self._problem.x0.dtype, copy=False)


class _AbandonedError(BaseException):
    """Unwinds a run that nobody will continue."""


class Run:
    """A run of SciPy that stops after every iteration until it is told to go on.

    Attributes
    ----------
    iteration : int
        Iterations so far.
    message : str or None
        What SciPy said when it ended.
    """

    def __init__(self, method: SciPy, questions: Questions, x0: Array) -> None:
        self._turns = _Turns(np.array(x0, np.float64))
        arguments = (self._turns, method, questions)
        self._thread = threading.Thread(target=_minimize, args=arguments, daemon=True)
        self.iteration = 0
        weakref.finalize(self, self._turns.abandon)

    @property
    def message(self) -> str | None:
        """Of SciPy, once it has ended."""
        return self._turns.message

    def advance(self) -> Vector:
        """Let SciPy do an iteration; the point that it came to."""
        if self._thread.ident is None:
            self._thread.start()
        if self.message is None:
            self._turns.give()
            self.iteration += self.message is None
        return self._turns.x

    def __reduce__(self) -> tuple[Any, ...]:
        return _no_run, ()  # a thread cannot be copied; the state can be, and the run repeated


def _no_run() -> None:
    return None


class _Turns:
    """The loop and SciPy take turns; what one leaves for the other."""

    def __init__(self, x: Vector) -> None:
        self.x = x
        self.message: str | None = None
        self.error: BaseException | None = None
        self._go, self._wait = threading.Semaphore(0), threading.Semaphore(0)
        self._is_abandoned = False

    def give(self) -> None:
        """The loop's part: until SciPy has finished an iteration, or ended."""
        self._go.release()
        self._wait.acquire()
        if self.error is not None:
            raise self.error

    def begin(self) -> None:
        """SciPy's part: until the loop wants an iteration."""
        self._go.acquire()
        if self._is_abandoned:
            raise _AbandonedError

    def after_iteration(self, xk: Vector, state: object = None) -> None:
        """SciPy's callback."""
        self.x = np.array(xk, np.float64)
        self._wait.release()
        self.begin()

    def end(self) -> None:
        """SciPy's last turn."""
        self._wait.release()

    def abandon(self) -> None:
        """Nobody waits for the run any more."""
        self._is_abandoned = True
        self._go.release()


def _minimize(turns: _Turns, method: SciPy, questions: Questions) -> None:
    """What the thread does."""
    from scipy.optimize import minimize

    options, second = method.arguments()
    given: dict[str, Callable[..., Any]] = {}
    if second:
        given[second] = questions.product if second == "hessp" else questions.hessian
    try:
        turns.begin()
        with np.errstate(all="ignore"):  # the loop looks for inf and nan
            result = minimize(
                questions.value,
                turns.x,
                method=method.method,
                jac=questions.gradient,
                callback=turns.after_iteration,
                options=options,
                **given,
            )
        turns.x, turns.message = np.array(result.x, np.float64), str(result.message)
    except _AbandonedError:
        return
    except BaseException as error:
        turns.error, turns.message = error, str(error)
    turns.end()
