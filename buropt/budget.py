"""When a run ends: limits, whichever comes first, and a tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from buropt.history import Record


SLICE = 0.05  # seconds that a method may work before somebody looks at Ctrl-C


class Limits(NamedTuple):
    """What is left: `Optimizer.run` goes at most through the iteration that reaches one of them.

    Attributes
    ----------
    iterations, sample_grads, bits_up : float
        As a record counts them.
    seconds : float
        For how long, looked at between pieces of work.
    """

    iterations: float = math.inf
    sample_grads: float = math.inf
    bits_up: float = math.inf
    seconds: float = SLICE

    def within(self, iterations: float = math.inf, sample_grads: float = math.inf) -> Limits:
        """The limits that are closer."""
        return self._replace(
            iterations=min(self.iterations, iterations),
            sample_grads=min(self.sample_grads, sample_grads),
        )


@dataclass(frozen=True)
class Budget:
    """Limits of a run; None is no limit, and at least one must be given.

    Parameters
    ----------
    iterations : int, optional
        Steps of the method.
    epochs : float, optional
        Per-sample gradients over the number of samples.
    bits : float, optional
        Mean uplink bits of one worker, the scarce resource of compressed methods.
    seconds : float, optional
        The method's own time, without measuring and logging.
    tolerance : float, optional
        Ends the run as converged once |grad f(x)|^2 <= tolerance at a measured iteration.

    Raises
    ------
    ValueError
        If no limit is given, or one is negative or not a number.
    """

    iterations: int | None = None
    epochs: float | None = None
    bits: float | None = None
    seconds: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        names = [field.name for field in fields(self)]
        given = [name for name in names if getattr(self, name) is not None]
        if not given:
            raise ValueError(
                f"the run would never end: give at least one of {', '.join(names)}, "
                "for example iterations=1000"
            )
        for name in given:
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not value >= 0:
                raise ValueError(f"{name} must be a number >= 0 or null, got {value!r}")
        if self.iterations is not None and self.iterations % 1 != 0:
            raise ValueError(f"iterations must be a whole number, got {self.iterations!r}")

    def exhausted(
        self, iteration: int, epochs: float, bits_up: float, seconds: float
    ) -> str | None:
        """The name of the first limit that is used up, or None."""
        if self.iterations is not None and iteration >= self.iterations:
            return "iterations"
        if self.epochs is not None and epochs >= self.epochs:
            return "epochs"
        if self.bits is not None and bits_up >= self.bits:
            return "bits"
        if self.seconds is not None and seconds >= self.seconds:
            return "seconds"
        return None

    def left(
        self, iteration: int, sample_grads: float, bits_up: float, seconds: float, n_samples: int
    ) -> Limits:
        """What is left of the limits, and no more seconds than a slice."""

        def rest(limit: float | None, used: float) -> float:
            return math.inf if limit is None else limit - used

        return Limits(
            rest(self.iterations, iteration),
            rest(None if self.epochs is None else self.epochs * n_samples, sample_grads),
            rest(self.bits, bits_up),
            min(SLICE, rest(self.seconds, seconds)),
        )

    def converged(self, grad_norm_sq: float) -> bool:
        """Whether the tolerance is reached."""
        return self.tolerance is not None and grad_norm_sq <= self.tolerance

    def fraction(self, first: Record, last: Record) -> float:
        """How much of the run is done, in [0, 1], by the limit that is closest.

        The tolerance counts on a logarithmic scale, as for a method that converges linearly.
        """
        done = [0.0]
        for used, limit in (
            (last.iteration, self.iterations),
            (last.epochs, self.epochs),
            (last.bits_up, self.bits),
            (last.seconds, self.seconds),
        ):
            if limit is not None:
                done.append(used / limit if limit > 0 else 1.0)
        if self.tolerance is not None and self.tolerance > 0:
            start, now = first.grad_norm_sq, last.grad_norm_sq
            if start > self.tolerance and 0 < now < start:
                done.append(math.log(start / now) / math.log(start / self.tolerance))
        return min(max(done), 1.0)
