"""Iterates in exact rational arithmetic, to the last bit.

Two workers in the plane, grad f_1(x) = (x_1 - 4, 2 x_2) and grad f_2(x) = (3 x_1, x_2 - 3), from
x = 0. The draws are forced. All numbers are dyadic, hence exact in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from buropt.compressors import Compressor, Message, TopK
from buropt.optim import (
    DASHA,
    DCGD,
    EF14,
    EF21,
    GD,
    LSVRG,
    RCD,
    SGD,
    SVRG,
    Adam,
    Diana,
    FedAvg,
    HeavyBall,
    Marina,
    Momentum,
    Nesterov,
    Optimizer,
    Scaffold,
)
from buropt.problems import Problem, quadratic

Vector = list[Fraction]

# Of worker 1 and worker 2, round by round.
COORDINATES = ((0, 1), (1, 1), (0, 0), (1, 0), (0, 1), (1, 1), (0, 0))
COINS = (False, True, False, False, True, False)


@dataclass(frozen=True)
class ForcedRand1(Compressor):
    """Rand1 in the plane that keeps `COORDINATES`, the first of them in round `first`."""

    unbiased = True
    first: int = 0

    def omega(self, d: int) -> float:
        return d - 1.0

    def alpha(self, d: int) -> None:
        return None

    def bits(self, d: int, dtype: Any) -> int:
        return 65

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        values = np.zeros_like(x)
        for worker, coordinate in enumerate(COORDINATES[key.round - self.first]):
            values[worker, coordinate] = 2 * x[worker, coordinate]
        return Message(values, np.full(len(x), 65))


@dataclass(frozen=True)
class ForcedKey:
    """A key whose coin in round k is `coins[k - 1]` and whose number is `samples[k - 1]`."""

    round: int
    samples: tuple[int, ...] = ()
    coins: tuple[bool, ...] = COINS
    seed: int = 0
    purpose: int = 0

    def fold(self, purpose: int) -> ForcedKey:
        return self

    def coin(self, p: float) -> bool:
        return self.coins[self.round - 1]

    def integers(self, low: int, high: int, size: int) -> Any:
        return np.array([self.samples[self.round - 1]])


def problem() -> Problem:
    return quadratic(np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([[4.0, 0.0], [0.0, 3.0]]))


def iterates(
    method: Optimizer[Any],
    rounds: int,
    problem: Problem,
    samples: tuple[int, ...] = (),
    coins: tuple[bool, ...] = COINS,
) -> list[list[float]]:
    state = method.init(problem, problem.x0, ForcedKey(0, samples, coins))
    points = []
    for number in range(1, rounds + 1):
        state = method.step(problem, state, ForcedKey(number, samples, coins))
        points.append(state.x.tolist())
    return points


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (GD(step_size=1 / 4), [(1 / 2, 3 / 8), (3 / 4, 39 / 64), (7 / 8, 387 / 512)]),
        (
            HeavyBall(step_size=1 / 4, momentum=1 / 2),
            [(1 / 2, 3 / 8), (1, 51 / 64), (5 / 4, 555 / 512)],
        ),
        (
            Momentum(step_size=1 / 4, momentum=1 / 2, batch_size=None),
            [(1 / 2, 3 / 8), (1, 51 / 64), (5 / 4, 555 / 512)],
        ),
        (
            Nesterov(step_size=1 / 4, momentum=1 / 2),
            [(1 / 2, 3 / 8), (7 / 8, 93 / 128), (33 / 32, 1923 / 2048)],
        ),
        (
            DCGD(step_size=1 / 8, compressor=ForcedRand1()),
            [(1 / 2, 3 / 8), (1 / 2, 39 / 64), (3 / 4, 39 / 64)],
        ),
        (
            EF21(step_size=1 / 8, compressor=TopK(1)),
            [
                (1 / 4, 3 / 16),
                (29 / 64, 45 / 128),
                (151 / 256, 33 / 64),
                (93 / 128, 621 / 1024),
            ],
        ),
        (
            EF14(step_size=1 / 8, compressor=TopK(1)),
            [
                (1 / 4, 3 / 16),
                (31 / 64, 93 / 256),
                (721 / 1024, 2163 / 4096),
                (2623 / 4096, 2163 / 4096),
            ],
        ),
        (
            FedAvg(step_size=1 / 8, local_steps=2),
            [(15 / 32, 45 / 128), (1515 / 2048, 9585 / 16384)],
        ),
        (
            Scaffold(step_size=1 / 8, local_steps=2),
            [
                (15 / 32, 45 / 128),
                (1455 / 2048, 9405 / 16384),
                (110235 / 131072, 1509165 / 2097152),
            ],
        ),
        (
            DASHA(step_size=1 / 8, a=1 / 3, compressor=ForcedRand1(first=1)),
            [
                (1 / 4, 3 / 16),
                (15 / 32, 45 / 128),
                (11 / 16, 457 / 1024),
                (71 / 96, 277 / 512),
            ],
        ),
    ],
    ids=[
        *("gd", "heavy_ball", "momentum", "nesterov", "dcgd"),
        *("ef21", "ef14", "fedavg", "scaffold", "dasha"),
    ],
)
def test_published_traces(method: Optimizer[Any], expected: list[tuple[float, float]]) -> None:
    """To the last bit, but for DASHA's third parts."""
    points = iterates(method, len(expected), problem())
    if isinstance(method, DASHA):
        np.testing.assert_allclose(points, expected, rtol=1e-14)
    else:
        assert points == [list(point) for point in expected]


@pytest.mark.parametrize(
    ("method", "samples", "expected"),
    [
        (SGD(step_size=1 / 4), (0, 1, 1), [(1, 0), (1 / 4, 3 / 4), (1 / 16, 21 / 16)]),
        (
            RCD(step_size=1 / 4, scaled=False),
            (0, 1, 0),
            [(1 / 2, 0), (1 / 2, 3 / 8), (3 / 4, 3 / 8)],
        ),
        (
            SVRG(step_size=1 / 4, m=2),
            (0, 1, 1),
            [(1 / 2, 3 / 8), (5 / 8, 21 / 32), (13 / 16, 201 / 256)],
        ),
        (
            LSVRG(step_size=1 / 4, p=1 / 2),
            (0, 1, 0, 1),
            [(1 / 2, 3 / 8), (5 / 8, 21 / 32), (27 / 32, 3 / 4), (107 / 128, 57 / 64)],
        ),
    ],
    ids=["sgd", "rcd", "svrg", "lsvrg"],
)
def test_traces_with_drawn_samples(
    method: Optimizer[Any], samples: tuple[int, ...], expected: list[tuple[float, float]]
) -> None:
    coins = (False, True, False, True)
    points = iterates(method, len(expected), problem(), samples, coins)
    assert points == [list(point) for point in expected]


def test_adam_trace() -> None:
    points = iterates(Adam(step_size=0.1, batch_size=None), 3, problem())
    expected = [
        (0.0999999995, 0.099999999333),
        (0.199587771308, 0.199587770968),
        (0.298413727054, 0.298413726535),
    ]
    np.testing.assert_allclose(points, expected, rtol=0, atol=6e-13)


def test_ef21_on_shifted_norms() -> None:
    """f_i = |x - a_i|^2 / 2 with a_1 = (4, 0), a_2 = (0, 3): the estimates of the workers, too."""
    problem = quadratic(np.ones((2, 2)), np.array([[4.0, 0.0], [0.0, 3.0]]))
    method = EF21(step_size=0.1, compressor=TopK(1))
    state = method.init(problem, problem.x0, ForcedKey(0))
    points = []
    for number in (1, 2, 3):
        state = method.step(problem, state, ForcedKey(number))
        points.append(state.x)
        if number == 2:
            np.testing.assert_allclose(state.g_i, [[-3.8, 0.30], [0.2, -2.70]], rtol=1e-14)
    np.testing.assert_allclose(points, [[0.2, 0.15], [0.38, 0.30], [0.56, 0.42]], rtol=1e-14)


def worker_gradients(x: Vector) -> list[Vector]:
    return [[x[0] - 4, 2 * x[1]], [3 * x[0], x[1] - 3]]


def rand1(vectors: list[Vector], coordinates: tuple[int, int]) -> list[Vector]:
    return [
        [2 * vector[k] if k == kept else Fraction(0) for k in (0, 1)]
        for vector, kept in zip(vectors, coordinates, strict=True)
    ]


def mean(vectors: list[Vector]) -> Vector:
    return [sum(column, Fraction(0)) / len(vectors) for column in zip(*vectors, strict=True)]


def combine(x: Vector, factor: Fraction, y: Vector) -> Vector:
    """x + factor y."""
    return [a + factor * b for a, b in zip(x, y, strict=True)]


def exact_diana(rounds: int, step_size: Fraction, alpha: Fraction) -> list[Vector]:
    """The paper's algorithm, message by message; the server keeps h_bar."""
    x, h_bar = [Fraction(0)] * 2, [Fraction(0)] * 2
    h = [[Fraction(0)] * 2, [Fraction(0)] * 2]
    points = []
    for number in range(rounds):
        differences = [
            combine(g, Fraction(-1), s) for g, s in zip(worker_gradients(x), h, strict=True)
        ]
        messages = rand1(differences, COORDINATES[number])
        g = combine(h_bar, Fraction(1), mean(messages))
        h = [combine(s, alpha, m) for s, m in zip(h, messages, strict=True)]
        h_bar = combine(h_bar, alpha, mean(messages))
        x = combine(x, -step_size, g)
        points.append(x)
    return points


def exact_marina(rounds: int, step_size: Fraction) -> list[Vector]:
    """The paper's algorithm; a dense round uses no coordinates but passes over them."""
    x = [Fraction(0)] * 2
    g = mean(worker_gradients(x))
    points = []
    for number in range(rounds):
        new = combine(x, -step_size, g)
        if COINS[number]:
            g = mean(worker_gradients(new))
        else:
            differences = [
                combine(a, Fraction(-1), b)
                for a, b in zip(worker_gradients(new), worker_gradients(x), strict=True)
            ]
            g = combine(g, Fraction(1), mean(rand1(differences, COORDINATES[number])))
        x = new
        points.append(x)
    return points


def test_diana_is_exact() -> None:
    method = Diana(step_size=1 / 8, alpha=1 / 2, compressor=ForcedRand1())
    expected = exact_diana(6, Fraction(1, 8), Fraction(1, 2))
    assert iterates(method, 6, problem()) == [[float(v) for v in point] for point in expected]


def test_marina_is_exact() -> None:
    method = Marina(step_size=1 / 8, p=1 / 2, compressor=ForcedRand1(first=1))
    expected = exact_marina(6, Fraction(1, 8))
    assert iterates(method, 6, problem()) == [[float(v) for v in point] for point in expected]
