"""HIPS autograd: NumPy, differentiated operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Function, NumpyLike


class Autograd(NumpyLike):
    """Eager; arrays are NumPy's."""

    name = "autograd"

    def __init__(self) -> None:
        self.autograd = peers.need("autograd")
        self.np = peers.need("autograd.numpy")
        self.logsumexp = peers.need("autograd.scipy.special").logsumexp

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        function = self.autograd.value_and_grad(partial(f, self))
        return peers.same(lambda: function(x))

    def gradient(self, f: Function, x: Any, data: Sequence[Any] = ()) -> Contestant:
        function = self.autograd.grad(partial(f, self))
        return peers.same(lambda: function(x, *data))

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        function = self.autograd.hessian_vector_product(partial(f, self))
        return peers.same(lambda: function(x, v))

    def step(self, loss: Function, params: Any, step_size: float, data: Any) -> Contestant:
        gradient = self.autograd.grad(partial(loss, self))
        flat = [p.copy() for p in peers.leaves(params, params)]
        tree = peers.nested(iter(flat), params)
        size = np.float32(step_size)

        def call() -> None:
            for p, g in zip(flat, peers.leaves(gradient(tree, *data), params), strict=True):
                p -= size * g

        return Contestant(call, lambda: peers.flat(*peers.leaves(gradient(params, *data), params)))

    def pointwise(self, f: Function, points: Any) -> Contestant:
        a, b = (column.copy() for column in points.T)
        make_vjp = self.autograd.make_vjp
        ones = np.ones(len(a))

        def call() -> Any:
            vjp, value = make_vjp(lambda ab: f(self, ab[0], ab[1]), 0)((a, b))
            return value, *vjp(ones)

        return peers.same(call)

    # Operations

    def sum(self, x: Any) -> Any:
        return self.np.sum(x)

    def matvec(self, matrix: Any, x: Any) -> Any:
        return self.np.dot(matrix, x)

    def row_sums(self, x: Any) -> Any:
        return self.np.sum(x, 1)

    def logistic_loss(self, margins: Any) -> Any:
        return self.np.mean(self.np.logaddexp(0, -margins))

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        y = self.np.dot(x, weight.T)
        return y if bias is None else y + bias

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        centred = x - self.np.mean(x, -1, keepdims=True)
        variance = self.np.mean(centred**2, -1, keepdims=True)
        return weight * centred / self.np.sqrt(variance + np.float32(1e-5)) + bias

    def attention(self, x: Any, n_heads: int) -> Any:
        b, t, width = x.shape[0], x.shape[1], x.shape[2] // 3
        split = self.np.reshape(x, (b, t, 3, n_heads, -1))
        q, k, v = self.np.transpose(split, (2, 0, 3, 1, 4))
        scores = q @ self.np.swapaxes(k, -1, -2) / np.sqrt(np.float32(width // n_heads))
        mask = np.tril(np.ones((t, t), bool))
        scores = self.np.where(mask, scores, np.float32(-np.inf))
        weights = self.np.exp(scores - self.logsumexp(scores, -1, keepdims=True))
        return self.np.reshape(self.np.swapaxes(weights @ v, 1, 2), (b, t, width))

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        logits = self.np.reshape(logits, (-1, logits.shape[-1]))
        picked = logits[np.arange(targets.size), targets.ravel()]
        return self.np.mean(self.logsumexp(logits, -1) - picked)
