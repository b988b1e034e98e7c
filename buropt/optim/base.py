"""What every method shares. Start here, then read `gd.py` and `marina.py`.

A method is a frozen dataclass of hyperparameters; what changes from iteration to iteration is a
separate `State`, a named tuple with the paper's letters and the iterate `x` first. All methods but
SGD follow one shape: the state carries the server's gradient estimate `g` at `x`, and

    init   x = x0, g = estimate at x0
    step   x+ = x - step_size g,  g+ = estimate at x+

so each round evaluates every worker's gradient once, at the new point. The problem remembers that
evaluation, which makes the runner's metrics at `state.x` free.

Communication is counted by the problem. Iteration k stands for "the server knows x_k and g_k",
hence k + 1 uplink messages (the first in `init`) and k broadcasts: every worker knows x0.
Randomness comes from the key alone: a method never owns a generator, so a run is a function of
(problem, hyperparameters, seed).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from buropt.compressors import Compressor, Identity

if TYPE_CHECKING:
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


@dataclass(frozen=True)
class Optimizer(ABC, Generic[S]):
    """A method: immutable hyperparameters, `theory`, `init` and `step`.

    Parameters
    ----------
    step_size : float, optional
        None: `theory` takes the largest step that the method's theorem allows.
    step_size_factor : float
        Multiplies the step size, whether it comes from the theorem or from you.

    Raises
    ------
    ValueError
        If a hyperparameter is outside its range; the message names it.
    """

    step_size: float | None = None
    step_size_factor: float = 1.0

    def __post_init__(self) -> None:
        self.require_positive("step_size", "step_size_factor")

    @abstractmethod
    def theory(self: O, problem: Problem) -> O:
        """A copy in which every None is replaced by what the paper's theorem gives for `problem`.

        `step_size_factor` is multiplied into `step_size` and becomes 1, so that the copy states the
        step that is taken and `theory` may be applied twice.
        """

    @abstractmethod
    def init(self, problem: Problem, x0: Array, key: Key) -> S:
        """The state at `x0`; `key` is the key of round 0."""

    @abstractmethod
    def step(self, problem: Problem, state: S, key: Key) -> S:
        """The state after one more iteration; `key` is the key of this round, 1 for the first."""

    @property
    def gamma(self) -> float:
        """The step size, once `theory` has settled it; raises ValueError before."""
        if self.step_size is None or self.step_size_factor != 1.0:
            raise self.unsettled("step_size")
        return self.step_size

    def unsettled(self, name: str) -> ValueError:
        """The error for a hyperparameter that is still to be filled in."""
        method = type(self).__name__
        return ValueError(
            f"{method}.{name} is not settled: write method = {method}(...).theory(problem) "
            "and use that copy's init and step"
        )

    def settled(self: O, theoretical_step_size: float, **hyperparameters: Any) -> O:
        """The copy that `theory` returns: the given step, unless one was chosen, and the rest."""
        step_size = theoretical_step_size if self.step_size is None else self.step_size
        return replace(
            self,
            step_size=self.step_size_factor * step_size,
            step_size_factor=1.0,
            **hyperparameters,
        )

    def require_positive(self, *names: str, at_most: float = math.inf) -> None:
        """Make each named hyperparameter a float in (0, at_most], finite, or leave it None."""
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            number = isinstance(value, (int, float, np.integer, np.floating))
            if (
                isinstance(value, bool)
                or not number
                or not 0 < value <= at_most
                or value == math.inf
            ):
                upper = "" if at_most == math.inf else f" of at most {at_most:g}"
                raise ValueError(
                    f"{type(self).__name__}.{name} must be a positive number{upper}, got {value!r}"
                )
            # A NumPy scalar would promote float32 iterates to float64.
            object.__setattr__(self, name, float(value))

    def require_unbiased(self, compressor: Compressor) -> None:
        """Refuse a biased compressor in a method whose theory needs E C(x) = x."""
        if not compressor.unbiased:
            raise ValueError(
                f"{type(self).__name__} needs an unbiased compressor and {compressor!r} is biased: "
                "take EF21 (optimizer=ef21), which is made for it, or RandK (compressor=randk)"
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
