"""Derivatives of a function of a vector by evaluating it: complex steps and central differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[Any]

_COMPLEX_STEP = 1e-40
_LARGEST = 1e30
_FIRST_STEP, _LAST_STEP = 1e-2, 1e-14
_MOST_ROWS = 12
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Slope(NamedTuple):
    """A derivative along a direction.

    Attributes
    ----------
    value : float
    uncertainty : float
        How far off it may be.
    noise : float
        The part of that which differs from one point to the next.
    """

    value: float
    uncertainty: float
    noise: float


class Differences:
    """Derivatives along directions at a point.

    Parameters
    ----------
    function : callable
        Of a vector; returns one number.
    point : ndarray, shape (n,)
    eps : float or None
        The step of plain central differences; None chooses steps and extrapolates them to 0.
    try_complex : bool
        Whether to use complex steps where the function takes complex vectors and the result agrees
        with differences.
    noise : float
        How far off values of the function may be, beside their rounding.

    Attributes
    ----------
    method : str
        What the last derivative was made by.
    """

    def __init__(
        self,
        function: Callable[[Vector], Any],
        point: Vector,
        eps: float | None = None,
        *,
        try_complex: bool = False,
        noise: float = 0.0,
    ) -> None:
        self._function = function
        self._point = point
        self._eps = eps
        self._noise = noise
        self._try_complex = try_complex and eps is None
        self._trusts_complex = False
        self.method = "central differences"

    def along(self, direction: Vector) -> Slope:
        """The derivative along a direction.

        Raises
        ------
        ValueError
            If the function is not finite close to the point.
        """
        exact = self._complex(self._point, direction) if self._try_complex else None
        if exact is not None and self._trusts_complex:
            return exact
        slope = self._fixed(direction) if self._eps is not None else self._extrapolated(direction)
        if exact is None:
            return slope
        allowed = 10 * slope.uncertainty + exact.uncertainty + 1e-6 * abs(slope.value)
        if abs(exact.value - slope.value) <= allowed:
            self.method = "a complex step"
            return exact
        self._try_complex = False  # abs, conj and the like mean something else there
        return slope

    def derived(self, direction: Vector) -> Differences:
        """Differences of the derivative along a direction, as a function of the point."""
        here = self.along(direction)
        moved = Differences(
            self._function, self._point, self._eps, try_complex=self._try_complex, noise=self._noise
        )
        moved._trusts_complex = True

        def slope(point: Vector) -> float:
            moved._point = point
            try:
                return moved.along(direction).value
            except ValueError:  # not finite there
                return float("nan")

        return Differences(slope, self._point, self._eps, noise=4 * here.noise)

    def _central(self, direction: Vector, step: float) -> tuple[float, float]:
        """A central difference, and how far off it may be by rounding."""
        up = float(self._function(self._point + step * direction))
        down = float(self._function(self._point - step * direction))
        rounding = self._noise + _ROUNDING * max(abs(up), abs(down))
        return (up - down) / (2 * step), rounding / step

    def _fixed(self, direction: Vector) -> Slope:
        assert self._eps is not None
        fine, rounding = self._central(direction, self._eps)
        coarse, _ = self._central(direction, 2 * self._eps)
        if not np.isfinite(fine):
            raise ValueError(
                f"the function is not finite within eps={self._eps} of x. Instead: check at "
                "another point, or with a smaller eps."
            )
        truncation = abs(fine - coarse) if np.isfinite(coarse) else 0.0
        return Slope(fine, truncation + rounding, rounding)

    def _extrapolated(self, direction: Vector) -> Slope:
        """Ridders' method: central differences at halved steps, extrapolated in a tableau."""
        best, error = np.nan, np.inf
        last: list[float] = []
        step, n_rows = _FIRST_STEP, 0
        while step > _LAST_STEP and n_rows < _MOST_ROWS:
            difference, rounding = self._central(direction, step)
            if not np.isfinite(difference):  # outside of the function's domain: come closer
                last, step = [], step / 8
                continue
            row = [difference]
            for m, above in enumerate(last):
                row.append(row[m] + (row[m] - above) / (4.0 ** (m + 1) - 1))
                estimate = max(abs(row[m + 1] - row[m]), abs(row[m + 1] - above)) + rounding
                if estimate < error:
                    best, error = row[m + 1], estimate
            last, step, n_rows = row, step / 2, n_rows + 1
        if not np.isfinite(best):
            raise ValueError(
                "the function is not finite close to x. Instead: check at another point."
            )
        return Slope(best, error, error)

    def _complex(self, point: Vector, direction: Vector) -> Slope | None:
        """The derivative by a complex step; None if the function does not take complex numbers."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = self._function(point + 1j * _COMPLEX_STEP * direction)
            value = float(np.imag(result)) / _COMPLEX_STEP
            if abs(value) > _LARGEST:  # a logarithm of a negative number and the like
                value = float("nan")
            rounding = _ROUNDING * (abs(value) + abs(float(np.real(result))))
        except Exception:  # whatever it is, it cannot be differentiated this way
            return None
        return Slope(value, rounding, rounding)
