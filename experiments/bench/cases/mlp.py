"""An MLP that predicts the next character of a name (as in makemore): one SGD step, float32.

16 characters, embeddings of 64, one tanh layer of `hidden` units, 27 logits; the BurTorch paper
(arXiv 2503.13795) has this model with 5 963 to 1 079 003 parameters. Batches are
random rows of made-up names; the step is x <- x - 0.1 g, and takes part in the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import buropt as bo
from buropt.nn import models
from experiments.bench import peers
from experiments.bench.contest import Case, Contestant

HIDDEN = (4, 16, 64, 128, 256, 512, 1024)
BATCHES = (1, 16, 64)
VOCABULARY, CONTEXT, WIDTH = 27, 16, 64
STEP_SIZE = np.float32(0.1)


def cases(quick: bool) -> Iterator[Case]:
    """Every width, every batch size."""
    for hidden in HIDDEN[:2] if quick else HIDDEN:
        for batch in BATCHES:
            n_weights = CONTEXT * WIDTH * hidden + hidden * VOCABULARY
            yield Case(
                "mlp",
                f"hidden={hidden} batch={batch}",
                {
                    "buropt": partial(buropt, hidden, batch),
                    "jax": partial(jax, hidden, batch),
                    "torch": partial(torch, hidden, batch),
                },
                reference="torch",
                tolerance=2e-4,
                flops=6.0 * n_weights * batch,
                bytes=8.0 * n_weights,
                parameters={"hidden": hidden, "batch": batch},
            )


def parameters(hidden: int) -> Any:
    """The same start for everybody."""
    return models.mlp_init(
        0, vocabulary=VOCABULARY, context=CONTEXT, width=WIDTH, hidden=hidden, dtype=np.float32
    )


def samples(batch: int) -> tuple[Any, Any]:
    """Tokens (batch, 16) and targets (batch,)."""
    rng = np.random.default_rng(1)
    return (
        rng.integers(0, VOCABULARY, (batch, CONTEXT)),
        rng.integers(0, VOCABULARY, batch),
    )


def buropt(hidden: int, batch: int) -> Contestant:
    oracle = bo.compile(models.mlp_loss, parameters(hidden), data=samples(batch))
    x, g = oracle.x0.copy(), np.empty_like(oracle.x0)

    def step() -> None:
        oracle.grad(x, out=g)
        g.__imul__(STEP_SIZE)
        x.__isub__(g)

    return Contestant(step, partial(oracle.grad, oracle.x0))


def jax(hidden: int, batch: int) -> Contestant:
    module, jnp = peers.jax(x64=False)
    tokens, targets = samples(batch)
    tokens, targets = jnp.asarray(tokens, jnp.int32), jnp.asarray(targets, jnp.int32)

    def loss(params: Any) -> Any:
        h = params["embedding"][tokens].reshape(batch, -1)
        h = jnp.tanh(h @ params["hidden"]["weight"].T + params["hidden"]["bias"])
        logits = h @ params["out"]["weight"].T + params["out"]["bias"]
        picked = jnp.take_along_axis(module.nn.log_softmax(logits), targets[:, None], 1)
        return -picked.mean()

    @partial(module.jit, donate_argnums=0)  # type: ignore[untyped-decorator]
    def step(params: Any) -> Any:
        gradient = module.grad(loss)(params)
        return module.tree.map(lambda p, g: p - STEP_SIZE * g, params, gradient)

    state = [module.tree.map(jnp.asarray, parameters(hidden))]

    def call() -> None:
        state[0] = module.block_until_ready(step(state[0]))

    def answer() -> Any:
        gradient = module.jit(module.grad(loss))(parameters(hidden))
        return peers.flat(*peers.leaves(gradient, parameters(hidden)))

    return Contestant(call, answer)


def torch(hidden: int, batch: int) -> Contestant:
    module = peers.torch()
    functional = module.nn.functional
    tokens, targets = (module.as_tensor(part) for part in samples(batch))
    params = [
        module.tensor(leaf, requires_grad=True)
        for leaf in peers.leaves(parameters(hidden), parameters(hidden))
    ]

    def backward() -> None:
        for p in params:
            p.grad = None
        table, weight, bias, out, out_bias = params
        h = functional.embedding(tokens, table).reshape(batch, -1)
        h = module.tanh(functional.linear(h, weight, bias))
        functional.cross_entropy(functional.linear(h, out, out_bias), targets).backward()

    def step() -> None:
        backward()
        with module.no_grad():
            for p in params:
                p.sub_(p.grad, alpha=float(STEP_SIZE))

    backward()
    gradient = peers.flat(*(p.grad for p in params))
    return Contestant(step, lambda: gradient)
