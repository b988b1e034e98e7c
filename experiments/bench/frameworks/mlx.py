"""MLX on the processor, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Function, NumpyLike


class Mlx(NumpyLike):
    """Everything under one `mx.compile`."""

    name = "mlx"

    def __init__(self) -> None:
        self.mx = self.np = peers.need("mlx.core")
        self.mx.set_default_device(self.mx.cpu)

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        function = self.mx.compile(self.mx.value_and_grad(partial(f, self)))
        x = self.array(x)

        def call() -> Any:
            value, gradient = function(x)
            self.mx.eval(value, gradient)
            return value, gradient

        return peers.same(call)

    def gradient(self, f: Function, x: Any, data: Sequence[Any] = ()) -> Contestant:
        function = self.mx.compile(self.mx.grad(partial(f, self)))
        x = self.array(x)

        def call() -> Any:
            gradient = function(x, *data)
            self.mx.eval(gradient)
            return gradient

        return peers.same(call)

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        gradient = self.mx.grad(partial(f, self))
        function = self.mx.compile(lambda x, v: self.mx.jvp(gradient, (x,), (v,))[1][0])
        x, v = self.array(x), self.array(v)

        def call() -> Any:
            product = function(x, v)
            self.mx.eval(product)
            return product

        return peers.same(call)

    def step(self, loss: Function, params: Any, step_size: float, data: Any) -> Contestant:
        start = [self.array(p) for p in peers.leaves(params, params)]

        def of_list(flat: Any, *data: Any) -> Any:
            return loss(self, peers.nested(iter(flat), params), *data)

        gradient = self.mx.grad(of_list)
        update = self.mx.compile(
            lambda flat, *data: [
                p - step_size * g for p, g in zip(flat, gradient(flat, *data), strict=True)
            ]
        )
        state = [start]

        def call() -> None:
            state[0] = update(state[0], *data)
            self.mx.eval(state[0])

        return Contestant(call, lambda: peers.flat(*gradient(start, *data)))

    def pointwise(self, f: Function, points: Any) -> Contestant:
        function = self.mx.value_and_grad(partial(f, self), (0, 1))
        many = self.mx.compile(self.mx.vmap(function))
        columns = [self.array(column.copy()) for column in points.T]

        def call() -> Any:
            value, (by_a, by_b) = many(*columns)
            self.mx.eval(value, by_a, by_b)
            return value, by_a, by_b

        return peers.same(call)

    # Data

    def array(self, values: Any) -> Any:
        values = np.asarray(values)
        double = values.dtype == np.float64  # which MLX would turn into float32
        return self.mx.array(values, self.mx.float64) if double else self.mx.array(values)

    # Operations

    def logistic_loss(self, margins: Any) -> Any:
        return self.mx.logaddexp(self.mx.array(0, margins.dtype), -margins).mean()

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        return x @ weight.T if bias is None else self.mx.addmm(bias, x, weight.T)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.mx.fast.layer_norm(x, weight, bias, 1e-5)

    def attention(self, x: Any, n_heads: int) -> Any:
        b, t, width = x.shape[0], x.shape[1], x.shape[2] // 3
        parts = self.mx.split(x, 3, -1)
        q, k, v = (part.reshape(b, t, n_heads, -1).swapaxes(1, 2) for part in parts)
        mixed = self.mx.fast.scaled_dot_product_attention(
            q, k, v, scale=(width // n_heads) ** -0.5, mask="causal"
        )
        return mixed.swapaxes(1, 2).reshape(b, t, width)

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        picked = self.mx.take_along_axis(logits, targets[..., None], -1).squeeze(-1)
        return (self.mx.logsumexp(logits, -1) - picked).mean()
