"""What the workers of a distributed method do in a round: ten gradients, differences, messages.

Logistic regression on the dense rows of a9a, float64, and an MLP of 69 019 parameters, float32. A
round is the difference of gradients at two points on 32 samples of each worker, of which RandK or
TopK sends one entry in ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from typing import Any

import numpy as np
from scipy.special import expit

from experiments.bench import datasets, frameworks, networks, peers
from experiments.bench.contest import Build, Case, Contestant

N_WORKERS, BATCH, HIDDEN = 10, 32, 64
TASKS = ("gradients", "differences", "RandK round", "TopK round")
PEERS = ("jax", "torch")  # those with `vmap` of gradients and top-k of rows


def cases(quick: bool) -> Iterator[Case]:
    """Two losses, four tasks."""
    for model in ("a9a", "MLP"):
        problem = load(model, quick)
        for task in TASKS:
            builds: dict[str, Build] = {
                "buropt": partial(buropt, model, task, quick),
                **frameworks.each(partial(by_peer, model, task, quick), PEERS),
            }
            if model == "a9a":
                builds["numpy"] = partial(numpy, task, quick)
            yield Case(
                *("worker", model, task),
                builds,
                reference="numpy" if model == "a9a" else "torch",
                tolerance=1e-9 if model == "a9a" else 2e-4,
                note=problem.note,
            )


class Problem:
    """The data of ten workers, (10 m, ...), and two points."""

    def __init__(self, params: Any, data: tuple[Any, ...], note: str) -> None:
        self.params, self.data, self.note = params, data, note
        leaves = peers.leaves(params, params)
        self.x = np.concatenate([leaf.ravel() for leaf in leaves])
        rng = np.random.default_rng(3)
        self.y = self.x + 0.01 * rng.standard_normal(self.x.size).astype(self.x.dtype)
        self.m = len(data[0]) // N_WORKERS
        # (10, 32): numbers of samples, of worker i in row i.
        self.idx = np.stack([rng.integers(0, self.m, BATCH) for _ in range(N_WORKERS)])
        self.idx += self.m * np.arange(N_WORKERS)[:, None]
        self.k = self.x.size // 10

    def of_each_worker(self, idx: Any = None) -> list[Any]:
        """The data, all or picked, as (10, rows, ...)."""
        if idx is not None:
            return [part[idx] for part in self.data]
        return [part.reshape(N_WORKERS, self.m, *part.shape[1:]) for part in self.data]

    def nested(self, x: Any) -> Any:
        """The parameters of a flat vector."""
        if not isinstance(self.params, dict):
            return x
        leaves = peers.leaves(self.params, self.params)
        edges = np.cumsum([leaf.size for leaf in leaves])[:-1]
        parts = zip(np.split(x, edges), leaves, strict=True)
        return peers.nested((part.reshape(leaf.shape) for part, leaf in parts), self.params)


@cache
def load(model: str, quick: bool) -> Problem:
    """Both are made once."""
    if model == "MLP":
        names = datasets.find("names.txt")
        data = networks.mlp_samples(N_WORKERS * 100, names)
        note = "text: " + ("names.txt" if names else "random characters")
        return Problem(networks.mlp_parameters(4 if quick else HIDDEN), data, note)
    A, b, note = datasets.classification("a9a", quick)
    n = len(b) // N_WORKERS * N_WORKERS
    return Problem(np.linspace(-0.5, 0.5, A.shape[1]), (A[:n].toarray(), b[:n]), note)


def buropt(model: str, task: str, quick: bool) -> Contestant:
    import buropt as bo
    from buropt.compressors import RandK, TopK
    from buropt.nn import models
    from buropt.random import Key

    def logistic(x: Any, a: Any, b: Any) -> Any:
        return np.logaddexp(0, -b * (a @ x))

    problem = load(model, quick)
    loss = models.mlp_loss if model == "MLP" else logistic
    oracle = bo.compile(loss, problem.params, data=problem.data, workers=N_WORKERS)
    out = np.empty((N_WORKERS, oracle.dim), oracle.dtype)
    if task == "gradients":
        return peers.same(lambda: oracle.worker_grads(problem.x, out=out))

    def differences() -> Any:
        return oracle.worker_grad_differences(problem.x, problem.y, problem.idx, out=out)

    if task == "differences":
        return peers.same(differences)
    compressor = TopK(problem.k) if task == "TopK round" else RandK(problem.k)
    message, key = np.empty_like(out), Key(seed=0)

    def call() -> Any:
        return compressor.compress(differences(), key, out=message).values

    return _round(differences, call, task, problem.k)


def _round(
    differences: Callable[[], Any], call: Callable[[], Any], task: str, k: int
) -> Contestant:
    """A round. What RandK sends is random; its answer is whether that fits to the differences."""

    def answer() -> Any:
        exact, message = np.array(differences()), np.array(call())
        if task == "TopK round":
            return np.sort(np.abs(message), axis=1)  # of two that are nearly equal either is right
        sent = message != 0  # fewer than k where differences are zero
        scaled = np.where(sent, exact * (exact.shape[1] / k), 0)
        fits = np.allclose(message, scaled, rtol=1e-3, atol=1e-5)
        return fits and sent.any() and sent.sum(1).max() <= k

    return Contestant(call, answer)


def numpy(task: str, quick: bool) -> Contestant:
    """All workers in one batched product."""
    problem = load("a9a", quick)
    rng = np.random.default_rng(0)

    def gradients(x: Any, A: Any, b: Any) -> Any:
        r = expit(-b * (A @ x)) * (b / -b.shape[1])
        return (r[:, None, :] @ A)[:, 0]

    whole = problem.of_each_worker()
    if task == "gradients":
        return peers.same(lambda: gradients(problem.x, *whole))

    def differences() -> Any:
        rows = problem.of_each_worker(problem.idx)
        return gradients(problem.x, *rows) - gradients(problem.y, *rows)

    if task == "differences":
        return peers.same(differences)

    def compress(g: Any) -> Any:
        top = task == "TopK round"
        size = np.abs(g) if top else rng.random(g.shape)
        kept = np.argpartition(size, -problem.k, axis=1)[:, -problem.k :]
        message = np.zeros_like(g)
        scale = 1.0 if top else g.shape[1] / problem.k
        np.put_along_axis(message, kept, scale * np.take_along_axis(g, kept, 1), 1)
        return message

    return _round(differences, lambda: compress(differences()), task, problem.k)


# Peers with `vmap`


def _logistic(ops: Any, x: Any, A: Any, b: Any) -> Any:
    return ops.logistic_loss(b * ops.matvec(A, x))


def by_peer(model: str, task: str, quick: bool, peer: frameworks.Framework) -> Contestant:
    problem = load(model, quick)
    x, y = (peer.tree(problem.nested(point)) for point in (problem.x, problem.y))
    loss = networks.mlp_loss if model == "MLP" else _logistic
    gradients = peer.gradient_of_each(loss, problem.params)
    if task == "gradients":
        whole = [peer.array(part) for part in problem.of_each_worker()]
        all_gradients = peer.jit(gradients)
        return peers.same(lambda: peer.wait(all_gradients(x, *whole)))
    data = [peer.array(part) for part in problem.data]
    idx = peer.array(problem.idx)

    def subtract(x: Any, y: Any, idx: Any, *data: Any) -> Any:
        rows = [part[idx] for part in data]
        return gradients(x, *rows) - gradients(y, *rows)

    compiled = peer.jit(subtract)

    def differences() -> Any:
        return peer.wait(compiled(x, y, idx, *data))

    if task == "differences":
        return peers.same(differences)

    def send(draw: int, x: Any, y: Any, idx: Any, *data: Any) -> Any:
        g = subtract(x, y, idx, *data)
        if task == "TopK round":
            return peer.keep(g, abs(g), problem.k)
        return peer.keep(g * (g.shape[1] / problem.k), peer.uniform(g.shape, draw), problem.k)

    messages, draws = peer.jit(send), count()
    return _round(
        differences, lambda: peer.wait(messages(next(draws), x, y, idx, *data)), task, problem.k
    )
