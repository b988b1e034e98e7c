"""TensorFlow: `tf.function`, and the same eagerly."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Framework, Function


class TensorFlow(Framework):
    """Each call is one graph, made by `tf.function`."""

    name = "tf.function"

    def __init__(self) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        self.tf = peers.need("tensorflow")
        self.tf.get_logger().setLevel("ERROR")

    def prepare(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is done to a function before it is called many times."""
        compiled: Callable[..., Any] = self.tf.function(function)
        return compiled

    def _value_and_grad(self, f: Function, x: Any, *data: Any) -> Any:
        with self.tf.GradientTape() as tape:
            tape.watch(x)
            value = f(self, x, *data)
        return value, tape.gradient(value, x)

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        x, function = self.tf.constant(x), self.prepare(partial(self._value_and_grad, f))
        return peers.same(lambda: tuple(function(x)))

    def gradient(self, f: Function, x: Any, data: Sequence[Any] = ()) -> Contestant:
        x = self.tf.constant(x)
        function = self.prepare(lambda x, *data: self._value_and_grad(f, x, *data)[1])

        def call() -> Any:
            gradient = function(x, *data)
            # The derivative of picking entries is a list of them.
            return self.tf.convert_to_tensor(gradient)

        return peers.same(call)

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        x, v = self.tf.constant(x), self.tf.constant(v)

        def product(x: Any, v: Any) -> Any:
            with self.tf.autodiff.ForwardAccumulator(x, v) as forward:
                _, gradient = self._value_and_grad(f, x)
            return forward.jvp(gradient)

        function = self.prepare(product)
        return peers.same(lambda: function(x, v))

    def step(self, loss: Function, params: Any, step_size: float, data: Any) -> Contestant:
        flat = [self.tf.Variable(p) for p in peers.leaves(params, params)]
        tree = peers.nested(iter(flat), params)

        def gradients() -> Any:
            with self.tf.GradientTape() as tape:
                value = loss(self, tree, *data)
            # Of an embedding the derivative is a list of rows; sums of them need it dense.
            return [self.tf.convert_to_tensor(g) for g in tape.gradient(value, flat)]

        def update() -> None:
            for p, g in zip(flat, gradients(), strict=True):
                p.assign_sub(step_size * g)

        gradient = peers.flat(*gradients())
        return Contestant(self.prepare(update), lambda: gradient)

    def pointwise(self, f: Function, points: Any) -> Contestant:
        columns = [self.tf.constant(column.copy()) for column in points.T]

        def many(a: Any, b: Any) -> Any:
            with self.tf.GradientTape() as tape:
                tape.watch((a, b))
                value = f(self, a, b)
            return value, *tape.gradient(value, (a, b))

        function = self.prepare(many)
        return peers.same(lambda: tuple(function(*columns)))

    # Data

    def array(self, values: Any) -> Any:
        return self.tf.constant(values)

    def sparse(self, matrix: Any) -> Any:
        entries = matrix.tocoo()
        places = np.stack([entries.row, entries.col], 1)
        return self.tf.SparseTensor(places, entries.data, matrix.shape)

    # Operations

    def rows(self, x: Any) -> Any:
        return self.tf.reshape(x, (x.shape[0], -1))

    def relu(self, x: Any) -> Any:
        return self.tf.nn.relu(x)

    def tanh(self, x: Any) -> Any:
        return self.tf.tanh(x)

    def sum(self, x: Any) -> Any:
        return self.tf.reduce_sum(x)

    def matvec(self, matrix: Any, x: Any) -> Any:
        if isinstance(matrix, self.tf.SparseTensor):
            return self.tf.sparse.sparse_dense_matmul(matrix, x[:, None])[:, 0]
        return self.tf.linalg.matvec(matrix, x)

    def take(self, array: Any, indices: Any) -> Any:
        return self.tf.gather(array, indices)

    def row_sums(self, x: Any) -> Any:
        return self.tf.reduce_sum(x, 1)

    def logistic_loss(self, margins: Any) -> Any:
        return self.tf.reduce_mean(self.tf.nn.softplus(-margins))

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        rows = self.tf.reshape(x, (-1, x.shape[-1]))
        y = self.tf.matmul(rows, weight, transpose_b=True)
        if bias is not None:
            y = self.tf.nn.bias_add(y, bias)
        return self.tf.reshape(y, (*x.shape[:-1], weight.shape[0]))

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        mean, variance = self.tf.nn.moments(x, -1, keepdims=True)
        return self.tf.nn.batch_normalization(x, mean, variance, bias, weight, 1e-5)

    def attention(self, x: Any, n_heads: int) -> Any:
        b, t, width = x.shape[0], x.shape[1], x.shape[2] // 3
        split = self.tf.reshape(x, (b, t, 3, n_heads, -1))
        q, k, v = self.tf.unstack(self.tf.transpose(split, (2, 0, 3, 1, 4)))
        scores = self.tf.matmul(q, k, transpose_b=True) / np.sqrt(np.float32(width // n_heads))
        mask = np.tril(np.ones((t, t), bool))
        weights = self.tf.nn.softmax(self.tf.where(mask, scores, -np.inf))
        mixed = self.tf.transpose(weights @ v, (0, 2, 1, 3))
        return self.tf.reshape(mixed, (b, t, width))

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        losses = self.tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        return self.tf.reduce_mean(losses)


class TensorFlowEager(TensorFlow):
    """Operation by operation."""

    name = "tf.eager"

    def prepare(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function
