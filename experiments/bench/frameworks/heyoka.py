"""heyoka: expressions compiled by LLVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Framework, Function

LARGEST_GRAPH = 2_000  # every entry of a vector is an expression of its own


class Heyoka(Framework):
    """Functions of few variables; a vector is a NumPy array of expressions."""

    name = "heyoka"

    def __init__(self) -> None:
        self.heyoka = peers.need("heyoka")

    def _symbols(self, name: str, n: int) -> Any:
        if n > LARGEST_GRAPH:
            raise self.cannot(f"functions of {n} variables: each one is compiled by itself")
        return np.array(self.heyoka.make_vars(*(f"{name}{k}" for k in range(n))))

    def _gradient(self, value: Any, symbols: Any) -> list[Any]:
        return list(self.heyoka.diff_tensors([value], list(symbols), diff_order=1).gradient)

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        symbols = self._symbols("x", x.size)
        value = f(self, symbols)
        outputs = [value, *self._gradient(value, symbols)]
        function = self.heyoka.cfunc(outputs, vars=list(symbols))
        out = np.empty(x.size + 1)
        return peers.same(lambda: function(x, outputs=out))

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        symbols, directions = self._symbols("x", x.size), self._symbols("v", x.size)
        slope = self.sum(np.array(self._gradient(f(self, symbols), symbols)) * directions)
        product = self._gradient(slope, symbols)
        function = self.heyoka.cfunc(product, vars=[*symbols, *directions])
        inputs, out = np.concatenate([x, v]), np.empty(x.size)
        return peers.same(lambda: function(inputs, outputs=out))

    def pointwise(self, f: Function, points: Any) -> Contestant:
        a, b = self.heyoka.make_vars("a", "b")
        value = f(self, a, b)
        derivatives = (self.heyoka.diff(value, variable) for variable in (a, b))
        function = self.heyoka.cfunc([value, *derivatives], vars=[a, b])
        inputs, out = np.ascontiguousarray(points.T), np.empty((3, len(points)))
        return peers.same(lambda: function(inputs, outputs=out))

    # Operations

    def relu(self, x: Any) -> Any:
        return self.heyoka.relu(x)

    def sum(self, x: Any) -> Any:
        return self.heyoka.sum(list(x))
