"""What tests of methods share: runs, forced draws, the list of all methods."""

from __future__ import annotations

import importlib.resources
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from buropt import optim
from buropt.build import target_of
from buropt.compressors import Compressor, Message, RandK, TopK
from buropt.optim import Optimizer
from buropt.problems import Problem, quadratic, synthetic_quadratic
from buropt.random import Key


def run(method: Optimizer[Any], problem: Problem, rounds: int, seed: int = 0) -> list[Any]:
    """The states of rounds 0 to `rounds`."""
    method = method.theory(problem)
    states = [method.init(problem, problem.x0, Key(seed, 0))]
    for number in range(1, rounds + 1):
        states.append(method.step(problem, states[-1], Key(seed, number)))
    return states


def costs(method: Optimizer[Any], rounds: int) -> tuple[float, float, float]:
    """Sample gradients, uplink and downlink bits on 4 workers in 5 dimensions."""
    problem = synthetic_quadratic(4, 5)
    run(method, problem, rounds)
    counters = problem.counters
    return counters.sample_grads, counters.bits_up, counters.bits_down


def parabolas() -> Problem:
    """f_i(x) = i (x - i)^2 / 2, i = 1, ..., 4; the mean is minimal at 3."""
    i = np.arange(1.0, 5.0)
    return quadratic(i[:, None], (i * i)[:, None])


def shared_hessian(n: int = 4, d: int = 3, seed: int = 0) -> Problem:
    """f_i = x'A x / 2 - b_i'x with one A."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((d, d + 2))
    A = factor @ factor.T / d
    return quadratic(np.repeat(((A + A.T) / 2)[None], n, axis=0), rng.standard_normal((n, d)))


def choices(group: str) -> list[str]:
    """The names of the configurations of a group."""
    folder = importlib.resources.files("buropt.conf").joinpath(group)
    return sorted(
        Path(entry.name).stem for entry in folder.iterdir() if entry.name.endswith(".yaml")
    )


def default_method(name: str, **settings: Any) -> Optimizer[Any]:
    """The method of optimizer=name with its defaults; compressors send 2 entries."""
    text = importlib.resources.files("buropt.conf").joinpath("optimizer", f"{name}.yaml")
    node = yaml.safe_load(text.read_text())
    cls: Any = target_of(node, "optimizer")
    if "compressor" in {field.name for field in fields(cls)}:
        needs_bias = any("topk" in str(item) for item in node.get("defaults", []))
        settings = {"compressor": TopK(2) if needs_bias else RandK(2)} | settings
    return cls(**settings)


METHODS = {name: default_method(name) for name in choices("optimizer")}
CLASSES = [getattr(optim, name) for name in optim.__all__ if name not in ("Optimizer", "FixedStep")]


@dataclass(frozen=True)
class Draws:
    """A key whose draws are known: the coin's face, and the numbers that `integers` gives."""

    numbers: tuple[int, ...] = (0,)
    face: bool = False
    round: int = 1
    seed: int = 0
    purpose: int = 0

    def fold(self, purpose: int) -> Draws:
        return self

    def at(self, round: int) -> Draws:
        return self

    def coin(self, p: float) -> bool:
        return p == 1 or self.face

    def integers(self, low: int, high: int, size: int) -> Any:
        return np.resize(np.array(self.numbers, dtype=np.int64), size)

    def proportional(self, rounds: int, places: Any, size: int) -> Any:
        return self.subsets(rounds, len(places), size)

    def subsets(self, rounds: int, n: int, size: int) -> Any:
        return np.resize(np.array(self.numbers, dtype=np.int64), (rounds, size))


def squared(x: Any) -> float:
    return float(np.sum(x * x))


def random_quadratic(n: int, d: int, seed: int) -> tuple[Problem, np.random.Generator]:
    """Strongly convex quadratics with unrelated Hessians."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, d, d + 1)) * rng.uniform(0.3, 2, (n, 1, 1))
    A = np.einsum("ijk,ilk->ijl", factors, factors)
    return quadratic((A + A.transpose(0, 2, 1)) / 2, rng.standard_normal((n, d))), rng


def solution_of(problem: Problem) -> Any:
    """The minimizer of a quadratic problem."""
    origin = np.zeros(problem.dim)
    return np.linalg.solve(problem.hessian(origin), -problem.grad(origin))


def copies(state: Any) -> Sequence[Any]:
    """The numbers in a state as arrays of their own; SciPy's run is none."""
    parts: list[Any] = []
    for part in state:
        parts += copies(part) if isinstance(part, tuple) else [np.array(part)]
    return [part for part in parts if part.dtype != object]


@dataclass(frozen=True)
class Mask(Compressor):
    """Rand1 whose coordinate on each worker is given: enumerating them gives exact expectations."""

    unbiased = True
    coordinates: tuple[int, ...] = (0, 0, 0)  # of the workers, in order

    def omega(self, d: int) -> float:
        return d - 1.0

    def alpha(self, d: int) -> None:
        return None

    def bits(self, d: int, dtype: Any) -> int:
        return 0

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        values, rows = np.zeros_like(x), np.arange(len(x))
        kept = list(self.coordinates)[: len(x)]
        values[rows, kept] = x.shape[1] * x[rows, kept]
        return Message(values, np.zeros(len(x), np.int64))


def masks(method: Any, problem: Problem) -> list[Any]:
    """The method with each choice of coordinates."""
    choices = itertools.product(range(problem.dim), repeat=problem.n_workers)
    return [replace(method, compressor=Mask(choice)) for choice in choices]
