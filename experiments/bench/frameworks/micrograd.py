"""micrograd: scalars in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Framework, Function

LARGEST_GRAPH = 100


class Micrograd(Framework):
    """Every operation is an object, made anew in every call."""

    name = "micrograd"

    def __init__(self) -> None:
        self.value = peers.need("micrograd.engine").Value

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        if x.size > LARGEST_GRAPH:
            raise self.cannot(f"graphs of {x.size} variables: it recurses once an operation")
        numbers = x.tolist()

        def call() -> Any:
            variables = np.array([self.value(number) for number in numbers])
            result = f(self, variables)
            result.backward()
            return result.data, *(variable.grad for variable in variables)

        return peers.same(call)

    # Operations

    def relu(self, x: Any) -> Any:
        return x.relu()

    def sum(self, x: Any) -> Any:
        return x.sum()
