"""The problems of More, Garbow and Hillstrom whose dimension can be chosen, each in one size."""

from __future__ import annotations

import numpy as np
from more_garbow_hillstrom import PROBLEMS as PROBLEMS
from more_garbow_hillstrom import problem

N = 10
I = np.arange(1.0, N + 1)
EYE = np.eye(N)


@problem(np.tile([-1.2, 1], 5), 0)
def extended_rosenbrock():
    def r(x):
        return np.concatenate([10 * (x[1::2] - x[::2] ** 2), 1 - x[::2]])

    def jacobian(x):
        return np.concatenate([10 * EYE[1::2] - 20 * x[::2, None] * EYE[::2], -EYE[::2]])

    return r, jacobian


@problem(np.tile([3, -1, 0, 1], 3), 0)
def extended_powell_singular():
    a, b, c, d = (np.eye(12)[k::4] for k in range(4))

    def r(x):
        last = np.sqrt(10) * (x[::4] - x[3::4]) ** 2
        middle = np.sqrt(5) * (x[2::4] - x[3::4])
        first = x[::4] + 10 * x[1::4]
        return np.concatenate([first, middle, (x[1::4] - 2 * x[2::4]) ** 2, last])

    def jacobian(x):
        p = 2 * (x[1::4] - 2 * x[2::4])[:, None]
        q = 2 * np.sqrt(10) * (x[::4] - x[3::4])[:, None]
        return np.concatenate([a + 10 * b, np.sqrt(5) * (c - d), p * (b - 2 * c), q * (a - d)])

    return r, jacobian


@problem(np.arange(1, 5), 2.24997e-5)
def penalty_1():
    s = np.sqrt(1e-5)

    def r(x):
        return np.concatenate([s * (x - 1), np.sum(x**2)[None] - 0.25])

    return r, lambda x: np.concatenate([s * np.eye(4), 2 * x[None]])


@problem(np.full(4, 0.5), 9.37629e-6)
def penalty_2():
    n = 4
    s, i = np.sqrt(1e-5), np.arange(2.0, n + 1)
    y = np.exp(i / 10) + np.exp((i - 1) / 10)
    weights, eye = np.arange(n, 0.0, -1), np.eye(n)

    def r(x):
        e = np.exp(x / 10)
        pairs, ends = s * (e[1:] + e[:-1] - y), s * (e[1:] - np.exp(-0.1))
        return np.concatenate([x[:1] - 0.2, pairs, ends, np.sum(weights * x**2)[None] - 1])

    def jacobian(x):
        e = s * np.exp(x / 10)[:, None] / 10 * eye
        return np.concatenate([eye[:1], e[1:] + e[:-1], e[1:], 2 * weights * x[None]])

    return r, jacobian


@problem(1 - I / N, 0)
def variably_dimensioned():
    def r(x):
        total = np.sum(I * (x - 1))
        return np.concatenate([x - 1, np.stack([total, total**2])])

    def jacobian(x):
        total = np.sum(I * (x - 1))
        return np.concatenate([EYE, I[None], 2 * total * I[None]])

    return r, jacobian


@problem(np.full(N, 1 / N), 0, 2.79506e-5)
def trigonometric():
    def r(x):
        return N - np.sum(np.cos(x)) + I * (1 - np.cos(x)) - np.sin(x)

    return r, lambda x: np.sin(x)[None] + EYE * (I * np.sin(x) - np.cos(x))


@problem(np.full(N, 0.5), 0, 1)
def brown_almost_linear():
    def r(x):
        return np.concatenate([x[:-1] + np.sum(x) - (N + 1), np.prod(x)[None] - 1])

    def jacobian(x):
        others = np.array([np.prod(np.delete(x, k)) for k in range(N)])
        return np.concatenate([EYE[:-1] + 1, others[None]])

    return r, jacobian


T = I / (N + 1)


@problem(T * (T - 1), 0)
def discrete_boundary_value():
    band = 2 * EYE - np.eye(N, k=1) - np.eye(N, k=-1)
    h = 1 / (N + 1)

    def r(x):
        return band @ x + h**2 * (x + T + 1) ** 3 / 2

    return r, lambda x: band + EYE * (3 * h**2 * (x + T + 1) ** 2 / 2)


@problem(T * (T - 1), 0)
def discrete_integral_equation():
    weights = np.where(I[:, None] >= I, np.outer(1 - T, T), np.outer(T, 1 - T)) / (2 * (N + 1))

    def r(x):
        return x + weights @ (x + T + 1) ** 3

    return r, lambda x: EYE + weights * (3 * (x + T + 1) ** 2)


@problem(-np.ones(N), 0)
def broyden_tridiagonal():
    band = np.eye(N, k=-1) + 2 * np.eye(N, k=1)

    def r(x):
        return (3 - 2 * x) * x - band @ x + 1

    return r, lambda x: EYE * (3 - 4 * x) - band


@problem(-np.ones(N), 0)
def broyden_banded():
    distance = I - I[:, None]
    band = ((distance >= -5) & (distance <= 1) & (distance != 0)) * 1.0

    def r(x):
        return x * (2 + 5 * x**2) + 1 - band @ (x * (1 + x))

    return r, lambda x: EYE * (2 + 15 * x**2) - band * (1 + 2 * x)


M = 20


@problem(np.ones(N), M - N)
def linear_full_rank():
    matrix = np.eye(M, N) - 2 / M

    def r(x):
        return matrix @ x - 1

    return r, lambda x: matrix + 0 * x


@problem(np.ones(N), M * (M - 1) / (2 * (2 * M + 1)))
def linear_rank_1():
    matrix = np.outer(np.arange(1.0, M + 1), I)

    def r(x):
        return matrix @ x - 1

    return r, lambda x: matrix + 0 * x


@problem(np.ones(N), (M**2 + 3 * M - 6) / (2 * (2 * M - 3)))
def linear_rank_1_with_zeros():
    height, width = np.arange(0.0, M), I.copy()
    height[-1] = width[0] = width[-1] = 0
    matrix = np.outer(height, width)

    def r(x):
        return matrix @ x - 1

    return r, lambda x: matrix + 0 * x


@problem(np.arange(1, 9) / 9, 3.51687e-3)
def chebyquad():
    n = 8
    integrals = np.array([-1 / (i**2 - 1) if i % 2 == 0 else 0.0 for i in range(1, n + 1)])

    def r(x):
        y = 2 * x - 1
        before, now, means = y**0, y, []
        for _ in range(n):
            means.append(np.mean(now))
            before, now = now, 2 * y * now - before
        return np.stack(means) - integrals

    def jacobian(x):
        y = 2 * x - 1
        before, now = y**0, y
        slope_before, slope = 0 * y, 2 * y**0
        lines = []
        for _ in range(n):
            lines.append(slope / n)
            after = 2 * y * now - before
            slope_before, slope = slope, 4 * now + 2 * y * slope - slope_before
            before, now = now, after
        return np.array(lines)

    return r, jacobian
