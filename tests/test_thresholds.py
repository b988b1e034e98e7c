"""Mean-square stability on f = (a_1 x^2 + a_2 x^2)/4: where a constant step stops to converge.

Each draw c of probability p_c maps the state s, a vector, to T_c s. So E s s' obeys a linear
recursion, vec E s+ s+' = M vec E s s' with M = sum_c p_c T_c (x) T_c, and tends to 0 exactly if the
spectral radius of M is below 1. The T_c are written down here from the algorithms; the methods must
take the same step for every draw, and shrink below and grow above the threshold of M.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from methods import Draws
from numpy.typing import NDArray

from buropt.compressors import Compressor, Message
from buropt.optim import DASHA, EF21, LSVRG, PAGE, SAGA, Diana, Marina
from buropt.optim.table import Table
from buropt.problems import quadratic

A = np.array([1.0, 3.0])
BAR = A.mean()
Q = 0.4  # that a worker's message arrives
P = 0.3  # of a coin
PROBLEM = quadratic(A[:, None], np.zeros((2, 1)))
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Arrives(Compressor):
    """Each worker sends x/Q or nothing, with probability Q: scaled Bernoulli."""

    unbiased = True
    faces: tuple[int, int] = (1, 1)

    def omega(self, d: int) -> float | None:
        return 1 / Q - 1

    def alpha(self, d: int) -> float | None:
        return None

    def bits(self, d: int, dtype: Any) -> int:
        return 0

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        return Message(np.array(self.faces)[:, None] / Q * x, np.zeros(2, np.int64))


@dataclass(frozen=True)
class Lazy(Arrives):
    """The same without the factor, which contracts with alpha = Q."""

    unbiased = False

    def omega(self, d: int) -> float | None:
        return None

    def alpha(self, d: int) -> float | None:
        return Q

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        return Message(np.array(self.faces)[:, None] * x, np.zeros(2, np.int64))


def arrivals() -> Iterator[tuple[float, tuple[int, int]]]:
    """All outcomes of two independent messages with their probabilities."""
    for first, second in itertools.product((0, 1), repeat=2):
        chance = (Q if first else 1 - Q) * (Q if second else 1 - Q)
        yield chance, (first, second)


def column(x: Any) -> Any:
    return np.array(x, dtype=float)[:, None]


class Case:
    """The maps T_c with their probabilities, and the method's step for the same draws."""

    maps: Callable[[float], list[tuple[float, Matrix]]]
    step: Callable[[float, int, Matrix], Matrix]


class LSVRGCase(Case):
    """State (x, w): x+ = (1 - s a_j) x + s (a_j - a) w, w+ = x or w."""

    draws = tuple(itertools.product((0, 1), (True, False)))

    def maps(self, s: float) -> list[tuple[float, Matrix]]:
        result = []
        for j, face in self.draws:
            first = [1 - s * A[j], s * (A[j] - BAR)]
            second = [1.0, 0.0] if face else [0.0, 1.0]
            result.append(((P if face else 1 - P) / 2, np.array([first, second])))
        return result

    def step(self, s: float, c: int, state: Matrix) -> Matrix:
        j, face = self.draws[c]
        x, w = state[:1], state[1:]
        old: Any = SimpleNamespace(x=x, w=w, full=PROBLEM.grad(w))
        new = LSVRG(step_size=s, p=P).step(PROBLEM, old, Draws((j,), face))
        return np.concatenate([new.x, new.w])


class SAGACase(Case):
    """State (x, T_1, T_2)."""

    def maps(self, s: float) -> list[tuple[float, Matrix]]:
        result = []
        for j in (0, 1):
            T = np.eye(3)
            T[0] = [1 - s * A[j], -s / 2, -s / 2]
            T[0, 1 + j] += s
            T[1 + j] = [A[j], 0, 0]
            result.append((0.5, T))
        return result

    def step(self, s: float, c: int, state: Matrix) -> Matrix:
        rows = state[1:, None]
        old: Any = SimpleNamespace(x=state[:1], table=Table(rows), mean=rows.mean(axis=0))
        new = SAGA(step_size=s).step(PROBLEM, old, Draws((c,)))
        return np.concatenate([new.x, np.asarray(new.table).ravel()])


class PAGECase(Case):
    """State (x, g): x+ = x - s g, g+ = a x+ or (1 - s a_j) g."""

    draws = tuple(itertools.product((0, 1), (True, False)))

    def maps(self, s: float) -> list[tuple[float, Matrix]]:
        result = []
        for j, face in self.draws:
            second = [BAR, -s * BAR] if face else [0.0, 1 - s * A[j]]
            result.append(((P if face else 1 - P) / 2, np.array([[1.0, -s], second])))
        return result

    def step(self, s: float, c: int, state: Matrix) -> Matrix:
        j, face = self.draws[c]
        old: Any = SimpleNamespace(x=state[:1], g=state[1:])
        new = PAGE(step_size=s, p=P, batch_size=1).step(PROBLEM, old, Draws((j,), face))
        return np.concatenate([new.x, new.g])


class MarinaCase(Case):
    """State (x, g): x+ = x - s g, g+ = a x+ or (1 - s mean_i c_i a_i) g."""

    draws = tuple(itertools.product(arrivals(), (True, False)))

    def maps(self, s: float) -> list[tuple[float, Matrix]]:
        result = []
        for (chance, faces), face in self.draws:
            xi = np.mean(np.array(faces) / Q * A)
            second = [BAR, -s * BAR] if face else [0.0, 1 - s * xi]
            result.append((chance * (P if face else 1 - P), np.array([[1.0, -s], second])))
        return result

    def step(self, s: float, c: int, state: Matrix) -> Matrix:
        (_, faces), face = self.draws[c]
        old: Any = SimpleNamespace(x=state[:1], g=state[1:], grads=column(A * state[0]))
        method = Marina(step_size=s, p=P, compressor=Arrives(faces))
        new = method.step(PROBLEM, old, Draws(face=face))
        return np.concatenate([new.x, new.g])


class DianaCase(Case):
    """State (x, h_1, h_2): m_i = c_i (a_i x - h_i), x+ = x - s mean_i (h_i + m_i)."""

    alpha = Q
    draws = tuple(arrivals())

    def maps(self, s: float) -> list[tuple[float, Matrix]]:
        result = []
        for chance, faces in self.draws:
            c = np.array(faces) / Q
            T = np.zeros((3, 3))
            T[0] = [1 - s * np.mean(c * A), *(-s * (1 - c) / 2)]
            T[1:, 0] = self.alpha * c * A
            T[1:, 1:] = np.diag(1 - self.alpha * c)
            result.append((chance, T))
        return result

    def step(self, s: float, c: int, state: Matrix) -> Matrix:
        method = Diana(step_size=s, alpha=self.alpha, compressor=Arrives(self.draws[c][1]))
        # From g = 0 a step stays at x: it only forms the estimate and moves the shifts.
        still: Any = SimpleNamespace(x=state[:1], g=np.zeros(1), h=state[1:, None])
        new = method.step(PROBLEM, still, Draws())
        return np.concatenate([state[:1] - s * new.g, new.h.ravel()])


class EF21Case(Case):
    """State (x, g_1, g_2): x+ = x - s mean_i g_i, g_i+ = g_i or a_i x+."""

    draws = tuple(arrivals())

    def maps(self, s: float) -> list[tuple[float, Matrix]]:
        result = []
        for chance, faces in self.draws:
            move = np.array([1.0, -s / 2, -s / 2])
            T = np.eye(3)
            T[0] = move
            for i in (0, 1):
                if faces[i]:
                    T[1 + i] = A[i] * move
            result.append((chance, T))
        return result

    def step(self, s: float, c: int, state: Matrix) -> Matrix:
        method = EF21(step_size=s, compressor=Lazy(self.draws[c][1]))
        g_i = state[1:, None]
        old: Any = SimpleNamespace(x=state[:1], g=g_i.mean(axis=0), g_i=g_i)
        new = method.step(PROBLEM, old, Draws())
        return np.concatenate([new.x, new.g_i.ravel()])


class DASHACase(Case):
    """State (x, g_1, g_2) with h_i = a_i x: m_i = c_i (a_i (x+ - x) - a (g_i - a_i x))."""

    a = 1 / (2 * (1 / Q - 1) + 1)
    draws = tuple(arrivals())

    def maps(self, s: float) -> list[tuple[float, Matrix]]:
        result = []
        for chance, faces in self.draws:
            T = np.eye(3)
            T[0] = [1.0, -s / 2, -s / 2]
            for i in (0, 1):
                c = faces[i] / Q
                T[1 + i, 0] = c * self.a * A[i]
                T[1 + i, 1 + i] = 1 - c * self.a
                T[1 + i, 1:] -= c * A[i] * s / 2
            result.append((chance, T))
        return result

    def step(self, s: float, c: int, state: Matrix) -> Matrix:
        method = DASHA(step_size=s, a=self.a, compressor=Arrives(self.draws[c][1]))
        g_i = state[1:, None]
        h_i = column(A * state[0])
        old: Any = SimpleNamespace(x=state[:1], g=g_i.mean(axis=0), g_i=g_i, h_i=h_i)
        new = method.step(PROBLEM, old, Draws())
        return np.concatenate([new.x, new.g_i.ravel()])


CASES = [LSVRGCase(), SAGACase(), PAGECase(), MarinaCase(), DianaCase(), EF21Case(), DASHACase()]
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__[:-4])


def radius(case: Any, s: float) -> float:
    """The spectral radius of M."""
    M = sum(chance * np.kron(T, T) for chance, T in case.maps(s))
    return float(np.abs(np.linalg.eigvals(M)).max())


def threshold(case: Any) -> float:
    """The smallest step whose spectral radius is 1."""
    steps = np.linspace(1e-3, 2 / BAR, 2000)
    first = next(k for k, s in enumerate(steps) if radius(case, s) >= 1)
    low, high = steps[first - 1], steps[first]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if radius(case, middle) < 1 else (low, middle)
    return float(low)


@EVERY
def test_every_draw_takes_the_step_that_was_written_down(case: Any) -> None:
    rng = np.random.default_rng(0)
    for s in (0.05, 0.3):
        maps = case.maps(s)
        assert sum(chance for chance, _ in maps) == pytest.approx(1)
        for c, (_, T) in enumerate(maps):
            state = rng.standard_normal(len(T))
            np.testing.assert_allclose(case.step(s, c, state), T @ state, rtol=1e-12, atol=1e-13)


@EVERY
def test_shrinks_below_the_threshold_and_grows_above(case: Any) -> None:
    """The exact second moments of the method's own steps, from a start at x = 1."""
    edge = threshold(case)
    for factor, rounds in ((0.95, 2000), (1.05, 2000)):
        s = factor * edge
        maps = case.maps(s)
        own = [
            np.column_stack([case.step(s, c, unit) for unit in np.eye(len(maps[0][1]))])
            for c in range(len(maps))
        ]
        moments = np.outer(start := np.ones(len(own[0])), start)
        for _ in range(rounds):
            moments = sum(
                chance * T @ moments @ T.T for (chance, _), T in zip(maps, own, strict=True)
            )
        assert (moments[0, 0] < 1e-3) if factor < 1 else (moments[0, 0] > 1e3)


@EVERY
def test_the_threshold_of_theory_is_on_the_safe_side(case: Any) -> None:
    """And not by orders of magnitude: the theorems hold for all problems, this one is easy."""
    problem: Any = PROBLEM
    unbiased, lazy = Arrives(), Lazy()
    method: Any = {
        "LSVRGCase": LSVRG(p=P),
        "SAGACase": SAGA(),
        "PAGECase": PAGE(p=P, batch_size=1),
        "MarinaCase": Marina(p=P, compressor=unbiased),
        "DianaCase": Diana(compressor=unbiased),
        "EF21Case": EF21(compressor=lazy),
        "DASHACase": DASHA(compressor=unbiased),
    }[type(case).__name__]
    gamma = method.theory(problem).gamma
    assert radius(case, gamma) < 1
    assert threshold(case) / 20 < gamma < threshold(case)
