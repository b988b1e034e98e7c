"""PyTorch: eager, and the same with the loss compiled."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from experiments.bench import peers
from experiments.bench.contest import Contestant
from experiments.bench.frameworks.base import Framework, Function


class Torch(Framework):
    """Eager."""

    name = "torch"

    def __init__(self) -> None:
        self.torch = peers.need("torch")
        self.torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        self.functional = self.torch.nn.functional

    def prepare(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is done to a function before it is called many times."""
        return function

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        x = self.torch.tensor(x, requires_grad=True)
        function = self.prepare(partial(f, self))

        def call() -> Any:
            x.grad = None
            value = function(x)
            value.backward()
            return value.detach(), x.grad

        return peers.same(call)

    def gradient(self, f: Function, x: Any, data: Sequence[Any] = ()) -> Contestant:
        x = self.torch.tensor(x, requires_grad=True)
        function = self.prepare(partial(f, self))

        def call() -> Any:
            x.grad = None
            function(x, *data).backward()
            return x.grad

        return peers.same(call)

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        x, v = self.torch.tensor(x), self.torch.tensor(v)
        product = self.torch.autograd.functional.hvp
        return peers.same(lambda: product(partial(f, self), x, v)[1])

    def step(self, loss: Function, params: Any, step_size: float, data: Any) -> Contestant:
        flat = [self.torch.tensor(p, requires_grad=True) for p in peers.leaves(params, params)]
        tree = peers.nested(iter(flat), params)
        function = self.prepare(partial(loss, self))

        def backward() -> None:
            for p in flat:
                p.grad = None
            function(tree, *data).backward()

        def call() -> None:
            backward()
            with self.torch.no_grad():
                self.torch._foreach_sub_(flat, [p.grad for p in flat], alpha=step_size)

        backward()
        gradient = peers.flat(*(p.grad for p in flat))
        return Contestant(call, lambda: gradient)

    def pointwise(self, f: Function, points: Any) -> Contestant:
        columns = [self.torch.tensor(column.copy(), requires_grad=True) for column in points.T]
        function = self.prepare(partial(f, self))

        def call() -> Any:
            for column in columns:
                column.grad = None
            value = function(*columns)
            value.sum().backward()  # every point has a value of its own
            return value.detach(), *(column.grad for column in columns)

        return peers.same(call)

    # Workers

    def jit(self, function: Function) -> Function:
        return function

    def wait(self, result: Any) -> Any:
        return result

    def gradient_of_each(self, loss: Function, like: Any) -> Function:
        gradient = self.torch.func.grad(partial(loss, self))

        def flat(x: Any, *rows: Any) -> Any:
            return self.torch.cat([g.flatten() for g in peers.leaves(gradient(x, *rows), like)])

        each: Function = self.torch.func.vmap(flat, in_dims=(None, 0, 0))
        return each

    def uniform(self, shape: tuple[int, ...], draw: Any) -> Any:
        return self.torch.rand(shape)

    def keep(self, g: Any, size: Any, k: int) -> Any:
        kept = size.topk(k, sorted=False).indices
        return self.torch.zeros_like(g).scatter_(1, kept, g.gather(1, kept))

    # Data

    def array(self, values: Any) -> Any:
        return self.torch.as_tensor(values)

    def sparse(self, matrix: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "support is in beta state"
            return self.torch.sparse_csr_tensor(
                *(self.array(part) for part in (matrix.indptr, matrix.indices, matrix.data)),
                size=matrix.shape,
            )

    # Operations

    def relu(self, x: Any) -> Any:
        return self.torch.relu(x)

    def tanh(self, x: Any) -> Any:
        return self.torch.tanh(x)

    def sum(self, x: Any) -> Any:
        return x.sum()

    def matvec(self, matrix: Any, x: Any) -> Any:
        if matrix.layout == self.torch.sparse_csr:
            return (matrix @ x[:, None])[:, 0]  # products with vectors have no derivative
        return matrix @ x

    def take(self, array: Any, indices: Any) -> Any:
        if array.ndim == 2 and array.requires_grad:
            return self.functional.embedding(indices, array)
        return array[indices]

    def row_sums(self, x: Any) -> Any:
        return x.sum(1)

    def logistic_loss(self, margins: Any) -> Any:
        return -self.functional.logsigmoid(margins).mean()

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        return self.functional.linear(x, weight, bias)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.functional.layer_norm(x, (x.shape[-1],), weight, bias)

    def attention(self, x: Any, n_heads: int) -> Any:
        b, t, width = x.shape[0], x.shape[1], x.shape[2] // 3
        parts = x.split(width, -1)
        q, k, v = (part.reshape(b, t, n_heads, -1).transpose(1, 2) for part in parts)
        mixed = self.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(b, t, width)

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        return self.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


class TorchCompiled(Torch):
    """The loss and, by AOTAutograd, its backward pass are compiled."""

    name = "torch.compile"

    def prepare(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.torch._dynamo.reset()  # or cases before this one would make shapes dynamic
        # A `partial` cannot be compiled; a function that calls it can.
        compiled: Callable[..., Any] = self.torch.compile(lambda *args: function(*args))
        return compiled

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        raise self.cannot("second derivatives of compiled functions")

    def sparse(self, matrix: Any) -> Any:
        raise self.cannot("compiled sparse products")
