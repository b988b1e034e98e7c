"""JAX: everything under one `jit`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Function, NumpyLike


class Jax(NumpyLike):
    """Double precision is switched on; arrays keep the dtype that they are given."""

    name = "jax"

    def __init__(self) -> None:
        self.jax = peers.need("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.np = peers.need("jax.numpy")

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        function = self.jax.jit(self.jax.value_and_grad(partial(f, self)))
        x = self.array(x)

        def call() -> Any:
            value, gradient = function(x)
            gradient.block_until_ready()
            return value, gradient

        return peers.same(call)

    def gradient(self, f: Function, x: Any, data: Sequence[Any] = ()) -> Contestant:
        function = self.jax.jit(self.jax.grad(partial(f, self)))
        x = self.array(x)
        return peers.same(lambda: function(x, *data).block_until_ready())

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        gradient = self.jax.grad(partial(f, self))
        function = self.jax.jit(lambda x, v: self.jax.jvp(gradient, (x,), (v,))[1])
        x, v = self.array(x), self.array(v)
        return peers.same(lambda: function(x, v).block_until_ready())

    def step(self, loss: Function, params: Any, step_size: float, data: Any) -> Contestant:
        tree, gradient = self.jax.tree, self.jax.grad(partial(loss, self))
        size = np.float32(step_size)

        @partial(self.jax.jit, donate_argnums=0)
        def update(params: Any, *data: Any) -> Any:
            return tree.map(lambda p, g: p - size * g, params, gradient(params, *data))

        state = [tree.map(self.np.array, params)]

        def call() -> None:
            state[0] = self.jax.block_until_ready(update(state[0], *data))

        def answer() -> Any:
            return peers.flat(*peers.leaves(self.jax.jit(gradient)(params, *data), params))

        return Contestant(call, answer)

    def pointwise(self, f: Function, points: Any) -> Contestant:
        function = self.jax.value_and_grad(partial(f, self), (0, 1))
        many = self.jax.jit(self.jax.vmap(function))
        a, b = (self.array(column) for column in points.T)

        def call() -> Any:
            value, (by_a, by_b) = self.jax.block_until_ready(many(a, b))
            return value, by_a, by_b

        return peers.same(call)

    # Workers

    def jit(self, function: Function) -> Function:
        compiled: Function = self.jax.jit(function)
        return compiled

    def wait(self, result: Any) -> Any:
        return result.block_until_ready()

    def gradient_of_each(self, loss: Function, like: Any) -> Function:
        gradient = self.jax.grad(partial(loss, self))

        def flat(x: Any, *rows: Any) -> Any:
            # JAX sorts the keys of dicts.
            return self.np.concatenate([g.ravel() for g in peers.leaves(gradient(x, *rows), like)])

        each: Function = self.jax.vmap(flat, (None, 0, 0))
        return each

    def uniform(self, shape: tuple[int, ...], draw: Any) -> Any:
        return self.jax.random.uniform(self.jax.random.key(draw), shape, self.np.float32)

    def keep(self, g: Any, size: Any, k: int) -> Any:
        kept = self.jax.lax.top_k(size, k)[1]
        rows = np.arange(g.shape[0])[:, None]
        return self.np.zeros_like(g).at[rows, kept].set(g[rows, kept])

    # Data

    def array(self, values: Any) -> Any:
        return self.np.asarray(values)

    def sparse(self, matrix: Any) -> Any:
        return peers.need("jax.experimental.sparse").BCOO.from_scipy_sparse(matrix)

    # Operations

    def logistic_loss(self, margins: Any) -> Any:
        """The mean of log(1 + exp(-margin))."""
        return self.jax.nn.softplus(-margins).mean()

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        y = x @ weight.T
        return y if bias is None else y + bias

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return weight * centred / self.np.sqrt(variance + 1e-5) + bias

    def attention(self, x: Any, n_heads: int) -> Any:
        """Causal attention of queries, keys and values side by side, (b, t, 3 width)."""
        b, t, width = x.shape[0], x.shape[1], x.shape[2] // 3
        parts = self.np.split(x, 3, -1)
        q, k, v = (part.reshape(b, t, n_heads, -1).swapaxes(1, 2) for part in parts)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(width // n_heads))
        mask = np.tril(np.ones((t, t), bool))
        weights = self.jax.nn.softmax(self.np.where(mask, scores, -np.inf))
        return (weights @ v).swapaxes(1, 2).reshape(b, t, width)

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        """The mean over all positions."""
        picked = self.np.take_along_axis(self.jax.nn.log_softmax(logits), targets[..., None], -1)
        return -picked.mean()
