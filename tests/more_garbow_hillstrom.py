"""The test problems of More, Garbow and Hillstrom (1981), with Jacobians written by hand.

Each is f(x) = sum of squares of residuals. The residuals are plain NumPy, which buropt traces; the
Jacobians here are independent of it. Both take complex x, too, so that a complex step gives the
reference products with the Hessian to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PROBLEMS: list[Problem] = []


@dataclass(frozen=True)
class Problem:
    """A problem with the published start and minima (values of f).

    Attributes
    ----------
    residuals : callable
        x (n,) -> (m,).
    jacobian : callable
        x (n,) -> (m, n).
    """

    name: str
    residuals: Callable
    jacobian: Callable
    start: np.ndarray
    minima: tuple[float, ...]

    def f(self, x):
        return np.sum(self.residuals(x) ** 2)

    def gradient(self, x):
        return 2 * self.jacobian(x).T @ self.residuals(x)

    def product(self, x, p):
        step = 1e-20 / max(1.0, np.abs(p).max())
        return self.gradient(x + 1j * step * p).imag / step

    def hessian(self, x):
        return np.array([self.product(x, unit) for unit in np.eye(x.size)])

    def is_minimum(self, value):
        return any(abs(value - f) <= 1e-4 * f + 1e-6 for f in self.minima)


def problem(start, *minima):
    def add(pair):
        residuals, jacobian = pair()
        name = pair.__name__
        PROBLEMS.append(Problem(name, residuals, jacobian, np.array(start, float), minima))
        return pair

    return add


def rows(*entries):
    """A matrix from rows of numbers, real or complex."""
    return np.array([list(row) for row in entries])


def columns(*entries):
    """A matrix from columns, some of them constant."""
    return np.stack(np.broadcast_arrays(*entries), axis=1)


@problem([-1.2, 1], 0)
def rosenbrock():
    def r(x):
        return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    return r, lambda x: rows((-20 * x[0], 10), (-1, 0))


@problem([0.5, -2], 0, 48.98425)
def freudenstein_roth():
    def r(x):
        a, b = x[0], x[1]
        return np.stack(
            [-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b],
        )

    return r, lambda x: rows((1, 10 * x[1] - 3 * x[1] ** 2 - 2), (1, 3 * x[1] ** 2 + 2 * x[1] - 14))


@problem([0, 1], 0)
def powell_badly_scaled():
    def r(x):
        return np.stack([1e4 * x[0] * x[1] - 1, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001])

    return r, lambda x: rows((1e4 * x[1], 1e4 * x[0]), (-np.exp(-x[0]), -np.exp(-x[1])))


@problem([1, 1], 0)
def brown_badly_scaled():
    def r(x):
        return np.stack([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2])

    return r, lambda x: rows((1, 0), (0, 1), (x[1], x[0]))


@problem([1, 1], 0)
def beale():
    y, i = np.array([1.5, 2.25, 2.625]), np.arange(1, 4)

    def r(x):
        return y - x[0] * (1 - x[1] ** i)

    return r, lambda x: columns(-(1 - x[1] ** i), x[0] * i * x[1] ** (i - 1))


@problem([0.3, 0.4], 124.3622)
def jennrich_sampson():
    i = np.arange(1.0, 11)

    def r(x):
        return 2 + 2 * i - (np.exp(i * x[0]) + np.exp(i * x[1]))

    return r, lambda x: columns(-i * np.exp(i * x[0]), -i * np.exp(i * x[1]))


@problem([-1, 0, 0], 0)
def helical_valley():
    def r(x):
        turn = np.arctan(x[1] / x[0]) / (2 * np.pi) + np.where(np.real(x[0]) < 0, 0.5, 0.0)
        radius = np.sqrt(x[0] ** 2 + x[1] ** 2)
        return np.stack([10 * (x[2] - 10 * turn), 10 * (radius - 1), x[2]])

    def jacobian(x):
        a, b, _ = x
        square = a**2 + b**2
        radius, turn = np.sqrt(square), 100 / (2 * np.pi * square)
        return rows((turn * b, -turn * a, 10), (10 * a / radius, 10 * b / radius, 0), (0, 0, 1))

    return r, jacobian


@problem([1, 1, 1], 8.21487e-3, 17.4286)
def bard():
    y = [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.1, 4.39]
    y, u = np.array(y), np.arange(1.0, 16)
    v = 16 - u
    w = np.minimum(u, v)

    def r(x):
        return y - (x[0] + u / (v * x[1] + w * x[2]))

    def jacobian(x):
        inner = u / (v * x[1] + w * x[2]) ** 2
        return columns(-1, inner * v, inner * w)

    return r, jacobian


@problem([0.4, 1, 0], 1.12793e-8)
def gaussian():
    half = [0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521]
    y, t = np.array([*half, 0.3989, *half[::-1]]), (8 - np.arange(1.0, 16)) / 2

    def r(x):
        return x[0] * np.exp(-x[1] * (t - x[2]) ** 2 / 2) - y

    def jacobian(x):
        e, d = np.exp(-x[1] * (t - x[2]) ** 2 / 2), t - x[2]
        return columns(e, -x[0] * e * d**2 / 2, x[0] * e * x[1] * d)

    return r, jacobian


@problem([0.02, 4000, 250], 87.9458)
def meyer():
    y = [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744]
    y = np.array([*y, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872])
    t = 45 + 5 * np.arange(1.0, 17)

    def r(x):
        return x[0] * np.exp(x[1] / (t + x[2])) - y

    def jacobian(x):
        e, s = np.exp(x[1] / (t + x[2])), t + x[2]
        return columns(e, x[0] * e / s, -x[0] * e * x[1] / s**2)

    return r, jacobian


@problem([5, 2.5, 0.15], 0)
def gulf():
    t = np.arange(1.0, 100) / 100
    y = 25 + (-50 * np.log(t)) ** (2 / 3)

    def r(x):
        return np.exp(-(np.sqrt((y - x[1]) ** 2) ** x[2]) / x[0]) - t

    def jacobian(x):
        d = np.sqrt((y - x[1]) ** 2)
        power = d ** x[2]
        e = np.exp(-power / x[0])
        return columns(
            e * power / x[0] ** 2,
            e * x[2] * power / (x[0] * (y - x[1])),
            -e * power * np.log(d) / x[0],
        )

    return r, jacobian


@problem([0, 10, 20], 0)
def box():
    t = np.arange(1.0, 11) / 10
    c = np.exp(-t) - np.exp(-10 * t)

    def r(x):
        return np.exp(-t * x[0]) - np.exp(-t * x[1]) - x[2] * c

    return r, lambda x: columns(-t * np.exp(-t * x[0]), t * np.exp(-t * x[1]), -c)


@problem([3, -1, 0, 1], 0)
def powell_singular():
    def r(x):
        a, b, c, d = x[0], x[1], x[2], x[3]
        last = np.sqrt(10) * (a - d) ** 2
        return np.stack([a + 10 * b, np.sqrt(5) * (c - d), (b - 2 * c) ** 2, last])

    def jacobian(x):
        a, b, c, d = x
        p, q, s = 2 * (b - 2 * c), 2 * np.sqrt(10) * (a - d), np.sqrt(5)
        return rows((1, 10, 0, 0), (0, 0, s, -s), (0, p, -2 * p, 0), (q, 0, 0, -q))

    return r, jacobian


@problem([-3, -1, -3, -1], 0)
def wood():
    p, q, s = np.sqrt(90), np.sqrt(10), 1 / np.sqrt(10)

    def r(x):
        a, b, c, d = x[0], x[1], x[2], x[3]
        first = [10 * (b - a**2), 1 - a, p * (d - c**2), 1 - c]
        return np.stack([*first, q * (b + d - 2), s * (b - d)])

    return r, lambda x: rows(
        (-20 * x[0], 10, 0, 0),
        (-1, 0, 0, 0),
        (0, 0, -2 * p * x[2], p),
        (0, 0, -1, 0),
        (0, q, 0, q),
        (0, s, 0, -s),
    )


@problem([0.25, 0.39, 0.415, 0.39], 3.07506e-4)
def kowalik_osborne():
    y = [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
    u = [4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625]
    y, u = np.array(y), np.array(u)

    def r(x):
        return y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])

    def jacobian(x):
        above, below = u**2 + u * x[1], u**2 + u * x[2] + x[3]
        slope = x[0] * above / below**2
        return columns(-above / below, -x[0] * u / below, slope * u, slope)

    return r, jacobian


@problem([25, 5, -5, -1], 85822.2)
def brown_dennis():
    t = np.arange(1.0, 21) / 5

    def parts(x):
        return x[0] + t * x[1] - np.exp(t), x[2] + x[3] * np.sin(t) - np.cos(t)

    def r(x):
        p, q = parts(x)
        return p**2 + q**2

    def jacobian(x):
        p, q = parts(x)
        return columns(2 * p, 2 * p * t, 2 * q, 2 * q * np.sin(t))

    return r, jacobian


@problem([0.5, 1.5, -1, 0.01, 0.02], 5.46489e-5)
def osborne_1():
    y = [0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751]
    y += [0.718, 0.685, 0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490]
    y += [0.478, 0.467, 0.457, 0.448, 0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406]
    y, t = np.array(y), 10 * np.arange(33.0)

    def r(x):
        return y - (x[0] + x[1] * np.exp(-t * x[3]) + x[2] * np.exp(-t * x[4]))

    def jacobian(x):
        p, q = np.exp(-t * x[3]), np.exp(-t * x[4])
        return columns(-1, -p, -q, x[1] * t * p, x[2] * t * q)

    return r, jacobian


@problem([1, 2, 1, 1, 1, 1], 0, 5.65565e-3, 0.306367)
def biggs_exp6():
    t = np.arange(1.0, 14) / 10
    y = np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t)

    def r(x):
        p, q, s = np.exp(-t * x[0]), np.exp(-t * x[1]), np.exp(-t * x[4])
        return x[2] * p - x[3] * q + x[5] * s - y

    def jacobian(x):
        p, q, s = np.exp(-t * x[0]), np.exp(-t * x[1]), np.exp(-t * x[4])
        return columns(-t * x[2] * p, t * x[3] * q, p, -q, -t * x[5] * s, s)

    return r, jacobian


@problem([1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5], 4.01377e-2)
def osborne_2():
    y = [1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746]
    y += [0.679, 0.608, 0.655, 0.616, 0.606, 0.602, 0.626, 0.651, 0.724, 0.649, 0.649]
    y += [0.694, 0.644, 0.624, 0.661, 0.612, 0.558, 0.533, 0.495, 0.500, 0.423, 0.395]
    y += [0.375, 0.372, 0.391, 0.396, 0.405, 0.428, 0.429, 0.523, 0.562, 0.607, 0.653]
    y += [0.672, 0.708, 0.633, 0.668, 0.645, 0.632, 0.591, 0.559, 0.597, 0.625, 0.739]
    y += [0.710, 0.729, 0.720, 0.636, 0.581, 0.428, 0.292, 0.162, 0.098, 0.054]
    y, t = np.array(y), np.arange(65.0) / 10

    def bumps(x):
        return [np.exp(-t * x[4])] + [np.exp(-((t - x[8 + k]) ** 2) * x[5 + k]) for k in range(3)]

    def r(x):
        e = bumps(x)
        return y - (x[0] * e[0] + x[1] * e[1] + x[2] * e[2] + x[3] * e[3])

    def jacobian(x):
        e = bumps(x)
        widths = [x[1 + k] * (t - x[8 + k]) ** 2 * e[1 + k] for k in range(3)]
        places = [-x[1 + k] * 2 * (t - x[8 + k]) * x[5 + k] * e[1 + k] for k in range(3)]
        return columns(*(-each for each in e), x[0] * t * e[0], *widths, *places)

    return r, jacobian


@problem(np.zeros(6), 2.28767e-3)
def watson():
    t = np.arange(1.0, 30) / 29
    powers = t[:, None] ** np.arange(6)
    slopes = np.arange(6) * t[:, None] ** np.maximum(np.arange(6) - 1, 0)
    units = np.eye(6)[:2]

    def r(x):
        first = slopes @ x - (powers @ x) ** 2 - 1
        return np.concatenate([first, np.stack([x[0], x[1] - x[0] ** 2 - 1])])

    def jacobian(x):
        first = slopes - 2 * (powers @ x)[:, None] * powers
        return np.concatenate([first, units - np.outer([0, 2 * x[0]], units[0])])

    return r, jacobian
