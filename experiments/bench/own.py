"""Buropt's side of the benchmarks that several cases share. Imported late: peers run without it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import buropt as bo
from experiments.bench import peers
from experiments.bench.contest import Contestant


class Numpy:
    """The operations that losses are written in, for buropt and for NumPy itself."""

    def relu(self, x: Any) -> Any:
        return np.maximum(x, 0.0)

    def sum(self, x: Any) -> Any:
        return np.sum(x)


def bound(f: Callable[[Any], Any], x: Any) -> Contestant:
    """Value and gradient by a call that is bound to two arrays."""
    x, g = x.copy(), np.empty_like(x)
    call = bo.compile(f, x).bind(x, g)
    return Contestant(call, lambda: peers.flat(call(), g))


def step(oracle: bo.Oracle, step_size: float) -> Contestant:
    """One SGD step over all samples of the oracle; the answer is the gradient at its start."""
    x = oracle.flatten(oracle.unflatten(oracle.x0))

    def answer() -> Any:
        moved, long = oracle.x0.copy(), 2.0**20  # so long that the start does not round it away
        oracle.step(moved, long)
        return (oracle.x0 - moved) / long

    return Contestant(partial(oracle.step, x, step_size), answer)
