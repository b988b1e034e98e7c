"""Convex functions psi that need not be smooth, by their prox: what f + psi adds to a problem f.

    prox(x, step) = argmin_z  psi(z) + |z - x|^2 / (2 step)

For the indicator of a set, which is 0 in it and infinite outside, this is the projection.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt.checks import number

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Psi(ABC):
    """A convex function with a prox; see the module."""

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = f"{type(self).__name__}.{field.name}", getattr(self, field.name)
            number(name, value, lambda x: 0 <= x < math.inf, "a finite number >= 0")

    @property
    def kernel(self) -> tuple[str, float, float] | None:
        """Name and weights of the prox in the compiled core; None where there is none."""
        return None

    @abstractmethod
    def value(self, x: Array) -> float:
        """psi(x)."""

    @abstractmethod
    def prox(self, x: Array, step: float) -> Array:
        """argmin_z psi(z) + |z - x|^2 / (2 step), shape (d,), of the dtype of x."""


@dataclass(frozen=True)
class L1(Psi):
    """psi(x) = l1 |x|_1; the prox is soft thresholding."""

    l1: float = 0.01

    @property
    def kernel(self) -> tuple[str, float, float]:
        """Soft thresholding."""
        return "l1", float(self.l1), 0.0

    def value(self, x: Array) -> float:
        """psi(x)."""
        return self.l1 * float(np.sum(np.abs(x)))

    def prox(self, x: Array, step: float) -> Array:
        """sign(x) max(|x| - step l1, 0)."""
        return soft_threshold(x, step * self.l1)


@dataclass(frozen=True)
class ElasticNet(Psi):
    """psi(x) = l1 |x|_1 + (l2/2) |x|^2."""

    l1: float = 0.01
    l2: float = 0.01

    @property
    def kernel(self) -> tuple[str, float, float]:
        """Soft thresholding and a division."""
        return "elastic_net", float(self.l1), float(self.l2)

    def value(self, x: Array) -> float:
        """psi(x)."""
        return self.l1 * float(np.sum(np.abs(x))) + 0.5 * self.l2 * float(x @ x)

    def prox(self, x: Array, step: float) -> Array:
        """Soft thresholding, then division by 1 + step l2."""
        return soft_threshold(x, step * self.l1) / (1 + step * self.l2)


@dataclass(frozen=True)
class GroupL1(Psi):
    """psi(x) = l1 times the sum of the norms of consecutive groups of `size` entries.

    The last group is shorter where the size does not divide the dimension.
    """

    l1: float = 0.01
    size: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size != int(self.size) or self.size < 1:
            raise ValueError(f"GroupL1.size must be a whole number >= 1, got {self.size!r}")

    def value(self, x: Array) -> float:
        """psi(x)."""
        return self.l1 * float(np.sum(self._norms(x)))

    def prox(self, x: Array, step: float) -> Array:
        """Every group shrinks by step l1 in norm, or vanishes."""
        norms = self._norms(x)
        kept = norms > step * self.l1
        factors = np.zeros_like(norms)
        factors[kept] = 1 - step * self.l1 / norms[kept]
        return x * np.repeat(factors, self.size)[: len(x)]

    def _norms(self, x: Array) -> Array:
        norms: Array = np.sqrt(np.add.reduceat(x * x, np.arange(0, len(x), self.size)))
        return norms


@dataclass(frozen=True)
class Box(Psi):
    """The indicator of the box with all |x_j| <= radius."""

    radius: float = 1.0

    @property
    def kernel(self) -> tuple[str, float, float]:
        """Clipping."""
        return "box", float(self.radius), 0.0

    def value(self, x: Array) -> float:
        """0 in the box, up to rounding, else infinity."""
        return 0.0 if np.max(np.abs(x)) <= self.radius * (1 + rounding(x)) else math.inf

    def prox(self, x: Array, step: float) -> Array:
        """Entries are clipped."""
        return np.clip(x, -self.radius, self.radius)


@dataclass(frozen=True)
class Ball(Psi):
    """The indicator of the ball |x| <= radius."""

    radius: float = 1.0

    def value(self, x: Array) -> float:
        """0 in the ball, up to rounding, else infinity."""
        return 0.0 if norm(x) <= self.radius * (1 + rounding(x)) else math.inf

    def prox(self, x: Array, step: float) -> Array:
        """The nearest point of the ball."""
        length = norm(x)
        return x if length <= self.radius else x * (self.radius / length)


@dataclass(frozen=True)
class Simplex(Psi):
    """The indicator of the simplex x_j >= 0, sum_j x_j = total."""

    total: float = 1.0

    def value(self, x: Array) -> float:
        """0 in the simplex, up to rounding, else infinity."""
        near = abs(float(np.sum(x)) - self.total) <= self.total * rounding(x)
        return 0.0 if near and x.min() >= 0 else math.inf

    def prox(self, x: Array, step: float) -> Array:
        """max(x - t, 0) with the t for which the sum is right (Held, Wolfe and Crowder 1974)."""
        descending = np.sort(x)[::-1].astype(np.float64)
        t = (np.cumsum(descending) - self.total) / np.arange(1, len(x) + 1)
        n_positive = int(np.count_nonzero(descending > t))
        projected: Array = np.maximum(x - t[n_positive - 1], 0).astype(x.dtype)
        return projected


def soft_threshold(x: Array, threshold: float) -> Array:
    """sign(x) max(|x| - threshold, 0)."""
    shrunk: Array = np.sign(x) * np.maximum(np.abs(x) - threshold, 0)
    return shrunk


def norm(x: Array) -> float:
    """|x|."""
    return math.sqrt(float(x @ x))


def rounding(x: Array) -> float:
    """Relative error that a projection in the arithmetic of x may leave."""
    return 4 * len(x) * float(np.finfo(x.dtype).eps)
