"""What every method shares. Start here, then read `gd.py` and `marina.py`.

A method is a frozen dataclass of hyperparameters; what changes from iteration to iteration is a
separate `State`, a named tuple with the paper's letters and the iterate `x` first. Methods that use
full gradients follow one shape: the state carries the server's gradient estimate `g` at `x`, and

    init   x = x0, g = estimate at x0
    step   x+ = x - step_size g,  g+ = estimate at x+

so each round evaluates every worker's gradient once, at the new point. The problem remembers that
evaluation, which makes the runner's metrics at `state.x` free. Methods that sample ask in `step`
for what they need at the old point.

Communication is counted by the problem. Of the first kind, iteration k stands for "the server knows
x_k and g_k", hence k + 1 uplink messages (the first in `init`) and k broadcasts: every worker knows
x0. Randomness comes from the key alone: a method never owns a generator, so a run is a function of
(problem, hyperparameters, seed). The key's round is the number of the iteration, 1 for the first
step: schedules and epochs go by it, and need no counter in the state.

Every docstring ends in the same notes: which problems, the step size and its theorem, oracle calls
and bits of an iteration, what the state holds, and the source. `theory` refuses a problem for which
there is no theorem, in one sentence, unless the hyperparameters that it would give are given.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from buropt.checks import number, whole
from buropt.compressors import Compressor, Identity
from buropt.html import facts

if TYPE_CHECKING:
    from buropt.budget import Limits
    from buropt.problems.base import Problem
    from buropt.random import Key

Array: TypeAlias = NDArray[np.floating[Any]]
IDENTITY = Identity()  # the default compressor of every method that has one


class HasX(Protocol):
    """Any state: the iterate is called `x` and has shape (d,)."""

    @property
    def x(self) -> Array:
        """The iterate."""


S = TypeVar("S", bound=HasX)
O = TypeVar("O", bound="Optimizer[Any]")
F = TypeVar("F", bound="FixedStep[Any]")


@dataclass(frozen=True)
class Optimizer(ABC, Generic[S]):
    """A method: immutable hyperparameters, `theory`, `init` and `step`.

    Raises
    ------
    ValueError
        If a hyperparameter is outside its range; the message names it.
    """

    proximal: ClassVar[bool] = False
    """Whether the method handles a nonsmooth part psi of the problem, by its prox."""

    @abstractmethod
    def theory(self: O, problem: Problem) -> O:
        """A copy in which every None is replaced by what the paper's theorem gives for `problem`.

        `theory` may be applied twice.

        Raises
        ------
        ValueError
            If the theorem does not hold for the problem.
        """

    @abstractmethod
    def init(self, problem: Problem, x0: Array, key: Key) -> S:
        """The state at `x0`; `key` is the key of round 0."""

    @abstractmethod
    def step(self, problem: Problem, state: S, key: Key) -> S:
        """The state after one more iteration; `key` is the key of this round, 1 for the first."""

    def run(self, problem: Problem, state: S, key: Key, limits: Limits) -> tuple[S, int]:
        """As many iterations in one call as the method likes, at least one, within the limits.

        The same bits, in the state and in the counters, as `step` gives one by one. Methods whose
        iterations are cheap have compiled loops here.

        Parameters
        ----------
        key : Key
            Of the first of the iterations.

        Returns
        -------
        state, iterations
        """
        return self.step(problem, state, key), 1

    @property
    def label(self) -> str:
        """What titles of runs call the method."""
        return type(self).__name__

    def ended(self, state: S) -> str | None:
        """Why the method has no further step to take; None as long as it has, mostly for ever."""
        return None

    def portable(self, state: S) -> S:
        """The state without what no file can hold; `step` goes on from it with the same bits."""
        return state

    def _repr_html_(self) -> str:
        rows = [(field.name, getattr(self, field.name)) for field in fields(self)]
        first, _, _ = (type(self).__doc__ or "").partition("\n")
        return facts(self.label, rows, first)

    def unsettled(self, name: str) -> ValueError:
        """The error for a hyperparameter that is still to be filled in."""
        method = type(self).__name__
        return ValueError(
            f"{method}.{name} is not settled: write method = {method}(...).theory(problem) "
            "and use that copy's init and step"
        )

    def settled_with(self: O, problem: Problem, **hyperparameters: Any) -> O:
        """The copy that `theory` returns, once it is sure that the method fits the problem."""
        if problem.psi is not None and not self.proximal:
            raise ValueError(
                f"{type(self).__name__} is for smooth problems and has no step for "
                f"{problem.psi!r}: leave out prox=..., or take a method with a prox step, for "
                "example optimizer=gd or optimizer=saga"
            )
        return replace(self, **hyperparameters)

    def no_theorem(self, reason: str) -> ValueError:
        """The error for a problem that the theorem does not cover."""
        return ValueError(f"{type(self).__name__} has no theorem for this problem: {reason}")

    def require_positive(self, *names: str, at_most: float = math.inf) -> None:
        """Make each named hyperparameter a float in (0, at_most], finite, or leave it None."""
        must_be = "a positive number" + ("" if at_most == math.inf else f" of at most {at_most:g}")
        for name, full, value in self._given(names):
            checked = number(full, value, lambda x: 0 < x <= at_most and x < math.inf, must_be)
            # A NumPy scalar would promote float32 iterates to float64.
            object.__setattr__(self, name, float(checked))

    def require_whole(self, *names: str, least: int = 1) -> None:
        """Make each named hyperparameter an int of at least `least`, or leave it None."""
        for name, full, value in self._given(names):
            object.__setattr__(self, name, whole(full, value, least))

    def require_fraction(self, *names: str) -> None:
        """Make each named hyperparameter a float in [0, 1), or leave it None."""
        must_be = "a number from 0 up to but not including 1"
        for name, full, value in self._given(names):
            object.__setattr__(
                self, name, float(number(full, value, lambda x: 0 <= x < 1, must_be))
            )

    def _given(self, names: tuple[str, ...]) -> Iterator[tuple[str, str, object]]:
        """Those that are not None: name, name with the method's, value."""
        for name in names:
            value = getattr(self, name)
            if value is not None:
                yield name, f"{type(self).__name__}.{name}", value

    def require_choice(self, name: str, choices: tuple[str, ...]) -> None:
        """Refuse a word that is none of the choices."""
        value = getattr(self, name)
        if value not in choices:
            raise ValueError(
                f"{type(self).__name__}.{name} must be one of {', '.join(choices)}, got {value!r}"
            )

    def require_unbiased(self, compressor: Compressor, independent: bool = True) -> None:
        """Refuse a biased compressor in a method whose theory needs E C(x) = x.

        And, if `independent`, one that draws for all workers together.
        """
        if not compressor.unbiased:
            raise ValueError(
                f"{type(self).__name__} needs an unbiased compressor and {compressor!r} is biased: "
                "take EF21 (optimizer=ef21), which is made for it, or RandK (compressor=randk)"
            )
        if independent:
            self.require_independent(compressor)

    def require_independent(self, compressor: Compressor) -> None:
        """Refuse a compressor that draws for all workers together."""
        if not compressor.independent:
            raise ValueError(
                f"{type(self).__name__} needs a compressor that every worker draws on its own and "
                f"{compressor!r} draws for all together: take MARINA (optimizer=marina), which has "
                "a theorem for it, or RandK (compressor=randk)"
            )


@dataclass(frozen=True)
class FixedStep(Optimizer[S]):
    """A method with one step size, from its theorem or from you.

    `theory` multiplies `step_size_factor` into `step_size` and makes it 1, so that the copy states
    the step that is taken.

    Parameters
    ----------
    step_size : float, optional
        None: `theory` takes the largest step that the method's theorem allows.
    step_size_factor : float
        Multiplies the step size, whether it comes from the theorem or from you.
    """

    step_size: float | None = None
    step_size_factor: float = 1.0

    def __post_init__(self) -> None:
        self.require_positive("step_size", "step_size_factor")

    @property
    def gamma(self) -> float:
        """The step size, once `theory` has settled it; raises ValueError before."""
        if self.step_size is None or self.step_size_factor != 1.0:
            raise self.unsettled("step_size")
        return self.step_size

    def settled(self: F, problem: Problem, theoretical: float, **hyperparameters: Any) -> F:
        """The copy that `theory` returns: the given step, unless one was chosen, and the rest."""
        step_size = theoretical if self.step_size is None else self.step_size
        return self.settled_with(
            problem,
            step_size=self.step_size_factor * step_size,
            step_size_factor=1.0,
            **hyperparameters,
        )

    def shift_step(self, theorems: float, smaller: bool = False) -> float:
        """The hyperparameter alpha, by default the theorem's.

        When the step size is the theorem's to give, it allows no other, or smaller ones at most.
        """
        alpha: float | None = getattr(self, "alpha", None)
        if alpha is None:
            return theorems
        fits = alpha <= theorems * (1 + 1e-12) and (smaller or alpha >= theorems * (1 - 1e-12))
        if self.step_size is None and not fits:
            raise self.no_theorem(
                f"alpha = {alpha:g} is not {theorems:g}{' or less' if smaller else ''}; leave it "
                "out, or give optimizer.step_size to run it all the same"
            )
        return alpha

    def require_mu(self, problem: Problem) -> float:
        """The mu that a rate under the Polyak-Lojasiewicz inequality needs, larger than 0."""
        if problem.constants.mu == 0:
            raise self.no_theorem("mu = 0; write optimizer.polyak_lojasiewicz=false")
        return problem.constants.mu

    def require_convex(self, problem: Problem) -> None:
        """Refuse a nonconvex problem when the step size is the theorem's to give."""
        if self.step_size is None and not problem.constants.convex:
            raise self.no_theorem(
                "it is not known to be convex; give optimizer.step_size to run it all the same"
            )


def unbiased_omega(compressor: Compressor, dim: int) -> float:
    """The omega of E|C(x) - x|^2 <= omega |x|^2, for a compressor already known to be unbiased."""
    omega = compressor.omega(dim)
    if omega is None:
        raise TypeError(f"{compressor!r} says it is unbiased but states no omega")
    return omega


def mean(rows: Array) -> Array:
    """Mean over workers, (n, d) -> (d,); rows are added in order, so the bits never vary."""
    total: Array = np.add.reduce(rows, axis=0)
    total /= len(rows)
    return total
