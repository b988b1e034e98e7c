"""CasADi: expressions, evaluated by its virtual machine on fixed buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Framework, Function

LARGEST_SCALAR_GRAPH = 10_000  # longer vectors are symbols of matrices


class Casadi(Framework):
    """Scalar expressions (SX), matrix ones (MX) for long vectors."""

    name = "casadi"

    def __init__(self) -> None:
        self.casadi = peers.need("casadi")

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        symbol = self._symbol("x", x.size)
        value = f(self, symbol)
        outputs = [value, self.casadi.gradient(value, symbol)]
        function = self.casadi.Function("value_and_grad", [symbol], outputs)
        return _buffered(function, [x.copy()], [np.empty(1), np.empty(x.size)])

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        symbol, direction = self._symbol("x", x.size), self._symbol("v", x.size)
        gradient = self.casadi.gradient(f(self, symbol), symbol)
        product = self.casadi.jtimes(gradient, symbol, direction)
        function = self.casadi.Function("hvp", [symbol, direction], [product])
        return _buffered(function, [x.copy(), v.copy()], [np.empty(x.size)])

    def pointwise(self, f: Function, points: Any) -> Contestant:
        symbol = self._symbol("x", 2)
        value = f(self, symbol[0], symbol[1])
        gradient = self.casadi.gradient(value, symbol)
        output = self.casadi.vertcat(value, gradient)
        many = self.casadi.Function("point", [symbol], [output]).map(len(points))
        results = np.empty((len(points), 3))
        one = _buffered(many, [points.copy()], [results])

        def answer() -> Any:
            one.call()
            return results.T

        return Contestant(one.call, answer)

    def _symbol(self, name: str, n: int) -> Any:
        kind = self.casadi.SX if n <= LARGEST_SCALAR_GRAPH else self.casadi.MX
        return kind.sym(name, n)

    # Operations

    def relu(self, x: Any) -> Any:
        return self.casadi.fmax(x, 0)

    def sum(self, x: Any) -> Any:
        return self.casadi.sum1(x)


class _Buffered:
    """A call without arguments that reads and writes fixed memory."""

    def __init__(self, function: Any, arguments: list[Any], results: list[Any]) -> None:
        # The buffer points into the function and the arrays, so all of them stay.
        self._function, self._arguments, self._results = function, arguments, results
        self._buffer, self.call = function.buffer()
        for k, array in enumerate(arguments):
            self._buffer.set_arg(k, memoryview(array.ravel()))
        for k, array in enumerate(results):
            self._buffer.set_res(k, memoryview(array.ravel()))

    def answer(self) -> Any:
        """All results."""
        self.call()
        return peers.flat(*self._results)


def _buffered(function: Any, arguments: list[Any], results: list[Any]) -> Contestant:
    one = _Buffered(function, arguments, results)
    return Contestant(one.call, one.answer)
