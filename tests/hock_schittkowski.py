"""Ten constrained problems of Hock and Schittkowski (1981), with derivatives written by hand.

As in `more_garbow_hillstrom`, everything takes complex x, so that complex steps through the first
derivatives give reference Hessians.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from more_garbow_hillstrom import rows

STEP = 1e-20
ZERO, ABOVE = (0.0, 0.0), (0.0, np.inf)


@dataclass(frozen=True)
class Constrained:
    """Minimize f where each of the constraints c, in its limits, holds.

    Attributes
    ----------
    constraints : list of (c, its Jacobian, (low, high))
    """

    number: int
    f: Callable
    gradient: Callable
    constraints: list
    start: np.ndarray
    minimum: float
    bounds: list | None = None

    def product(self, x, p):
        step = STEP / max(1.0, np.abs(p).max())
        return self.gradient(x + 1j * step * p).imag / step


def hessian_of(jacobian):
    """The Hessian of v c from the Jacobian of c."""

    def hessian(x, v):
        return np.array([(jacobian(x + 1j * STEP * u).T @ v).imag / STEP for u in np.eye(x.size)])

    return hessian


def constrained(number, f, gradient, constraints, start, minimum, bounds=None):
    return Constrained(number, f, gradient, constraints, np.array(start, float), minimum, bounds)


def vector(*entries):
    return np.array(list(entries))


HS6 = constrained(
    6,
    lambda x: (1 - x[0]) ** 2,
    lambda x: vector(-2 * (1 - x[0]), 0),
    [(lambda x: [10 * (x[1] - x[0] ** 2)], lambda x: rows((-20 * x[0], 10)), ZERO)],
    [-1.2, 1],
    0.0,
)
HS7 = constrained(
    7,
    lambda x: np.log(1 + x[0] ** 2) - x[1],
    lambda x: vector(2 * x[0] / (1 + x[0] ** 2), -1),
    [
        (
            lambda x: [(1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4],
            lambda x: rows((4 * x[0] * (1 + x[0] ** 2), 2 * x[1])),
            ZERO,
        )
    ],
    [2, 2],
    -np.sqrt(3),
)
HS12 = constrained(
    12,
    lambda x: x[0] ** 2 / 2 + x[1] ** 2 - x[0] * x[1] - 7 * x[0] - 7 * x[1],
    lambda x: vector(x[0] - x[1] - 7, 2 * x[1] - x[0] - 7),
    [(lambda x: [25 - 4 * x[0] ** 2 - x[1] ** 2], lambda x: rows((-8 * x[0], -2 * x[1])), ABOVE)],
    [0, 0],
    -30.0,
)
HS22 = constrained(
    22,
    lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
    lambda x: vector(2 * (x[0] - 2), 2 * (x[1] - 1)),
    [
        (
            lambda x: [2 - x[0] - x[1], x[1] - x[0] ** 2],
            lambda x: rows((-1, -1), (-2 * x[0], 1)),
            ABOVE,
        )
    ],
    [2, 2],
    1.0,
)
HS35 = constrained(
    35,
    lambda x: (
        9
        - 8 * x[0]
        - 6 * x[1]
        - 4 * x[2]
        + 2 * x[0] ** 2
        + 2 * x[1] ** 2
        + x[2] ** 2
        + 2 * x[0] * x[1]
        + 2 * x[0] * x[2]
    ),
    lambda x: vector(
        -8 + 4 * x[0] + 2 * x[1] + 2 * x[2], -6 + 4 * x[1] + 2 * x[0], -4 + 2 * x[2] + 2 * x[0]
    ),
    [(lambda x: [3 - x[0] - x[1] - 2 * x[2]], lambda x: rows((-1, -1, -2)) + 0 * x, ABOVE)],
    [0.5, 0.5, 0.5],
    1 / 9,
    [(0, None)] * 3,
)
HS39 = constrained(
    39,
    lambda x: -x[0],
    lambda x: vector(-1, 0, 0, 0) + 0 * x,
    [
        (
            lambda x: [x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2],
            lambda x: rows((-3 * x[0] ** 2, 1, -2 * x[2], 0), (2 * x[0], -1, 0, -2 * x[3])),
            ZERO,
        )
    ],
    [2, 2, 2, 2],
    -1.0,
)
HS40 = constrained(
    40,
    lambda x: -x[0] * x[1] * x[2] * x[3],
    lambda x: (
        -vector(x[1] * x[2] * x[3], x[0] * x[2] * x[3], x[0] * x[1] * x[3], x[0] * x[1] * x[2])
    ),
    [
        (
            lambda x: [x[0] ** 3 + x[1] ** 2 - 1, x[0] ** 2 * x[3] - x[2], x[3] ** 2 - x[1]],
            lambda x: rows(
                (3 * x[0] ** 2, 2 * x[1], 0, 0),
                (2 * x[0] * x[3], 0, -1, x[0] ** 2),
                (0, -1, 0, 2 * x[3]),
            ),
            ZERO,
        )
    ],
    [0.8] * 4,
    -0.25,
)
W43 = np.array([[1, 1, 1, 1], [1, 2, 1, 2], [2, 1, 1, 0]])
L43 = np.array([[-1, 1, -1, 1], [1, 0, 0, 1], [-2, 1, 0, 1]])
HS43 = constrained(
    43,
    lambda x: np.array([1, 1, 2, 1]) @ x**2 + np.array([-5, -5, -21, 7]) @ x,
    lambda x: np.array([2, 2, 4, 2]) * x + np.array([-5, -5, -21, 7]),
    [
        (
            lambda x: np.array([8, 10, 5]) - W43 @ x**2 + L43 @ x,
            lambda x: L43 - 2 * W43 * x,
            ABOVE,
        )
    ],
    [0, 0, 0, 0],
    -44.0,
)
HS71 = constrained(
    71,
    lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
    lambda x: vector(
        x[3] * (2 * x[0] + x[1] + x[2]),
        x[0] * x[3],
        x[0] * x[3] + 1,
        x[0] * (x[0] + x[1] + x[2]),
    ),
    [
        (
            lambda x: [x[0] * x[1] * x[2] * x[3] - 25],
            lambda x: rows(
                (x[1] * x[2] * x[3], x[0] * x[2] * x[3], x[0] * x[1] * x[3], x[0] * x[1] * x[2])
            ),
            ABOVE,
        ),
        (lambda x: [np.sum(x**2) - 40], lambda x: 2 * x[None], ZERO),
    ],
    [1, 5, 5, 1],
    17.0140173,
    [(1, 5)] * 4,
)
HS78 = constrained(
    78,
    lambda x: np.prod(x),
    lambda x: vector(*(np.prod(np.delete(x, k)) for k in range(5))),
    [
        (
            lambda x: [
                np.sum(x**2) - 10,
                x[1] * x[2] - 5 * x[3] * x[4],
                x[0] ** 3 + x[1] ** 3 + 1,
            ],
            lambda x: rows(
                2 * x,
                (0, x[2], x[1], -5 * x[4], -5 * x[3]),
                (3 * x[0] ** 2, 3 * x[1] ** 2, 0, 0, 0),
            ),
            ZERO,
        )
    ],
    [-2, 1.5, 2, -1, -1],
    -2.91970041,
)
CONSTRAINED = [HS6, HS7, HS12, HS22, HS35, HS39, HS40, HS43, HS71, HS78]
