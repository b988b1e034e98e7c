"""Step sizes that change with the iterations: what multiplies `step_size` in iteration k."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from buropt.checks import number, whole


@dataclass(frozen=True)
class Schedule(ABC):
    """A factor for every iteration k = 1, 2, ...; the state of a method needs no counter."""

    @abstractmethod
    def factor(self, k: int) -> float:
        """What multiplies the step size in iteration k."""

    def theory(self, step_size: float, mu: float) -> Schedule:
        """The copy without None, for this step size on a problem of this strong convexity."""
        return self


@dataclass(frozen=True)
class Constant(Schedule):
    """The same step in every iteration."""

    def factor(self, k: int) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class Decreasing(Schedule):
    """Constant for a while, then of order 1/k: Gower et al. 2019, arXiv:1901.09401, Theorem 3.2.

        1                                        for k <= after
        (after / 2) (2k + 1) / (k + 1)^2         from then on

    With step size 1/(2 Ls) and after = 4 Ls/mu, which None stands for, the second line is the
    theorem's (2k + 1) / ((k + 1)^2 mu), and E|x_k - x*|^2 = O(1/k) with strongly convex f. (The
    theorem rounds Ls/mu up where it says from when on; its steps are these.)

    Parameters
    ----------
    after : float, optional
        Iterations with the full step, 1 or more.
    """

    after: float | None = None

    def __post_init__(self) -> None:
        if self.after is not None:
            number("Decreasing.after", self.after, lambda x: 1 <= x < math.inf, "a number >= 1")

    def factor(self, k: int) -> float:
        """Return the factor of the class's text."""
        if self.after is None:
            raise ValueError(
                "Decreasing.after is not settled: use the method that theory(problem) returns"
            )
        return 1.0 if k <= self.after else 0.5 * self.after * (2 * k + 1) / (k + 1) ** 2

    def theory(self, step_size: float, mu: float) -> Schedule:
        """Fill in `after` = 2/(step_size mu), and at least 1."""
        if self.after is not None:
            return self
        if mu == 0:
            raise ValueError(
                "schedule=decreasing takes its length from mu, and this problem has none: give "
                "schedule.after"
            )
        return replace(self, after=max(1.0, 2 / (step_size * mu)))


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a period of a cosine, from 1 to `least`: Loshchilov and Hutter 2016, arXiv:1608.03983.

    Parameters
    ----------
    iterations : int
        Over which it falls; `least` from then on.
    least : float
        Between 0 and 1.
    """

    iterations: int
    least: float = 0.0

    def __post_init__(self) -> None:
        whole("Cosine.iterations", self.iterations, 1)
        number("Cosine.least", self.least, lambda x: 0 <= x <= 1, "between 0 and 1")

    def factor(self, k: int) -> float:
        """Return least + (1 - least) (1 + cos(pi (k - 1)/iterations)) / 2."""
        part = min(k - 1, self.iterations) / self.iterations
        return self.least + (1 - self.least) * 0.5 * (1 + math.cos(math.pi * part))


CONSTANT = Constant()
