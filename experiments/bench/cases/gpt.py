"""A GPT of 46 337 parameters over characters: one SGD step, float32.

6 blocks, 6 heads, width 24, context 8, vocabulary 65, layer norms in front, ReLU, mean
cross-entropy; as in the BurTorch paper (arXiv 2503.13795). The step is x <- x - 3e-4 g,
and takes part in the time.
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

BATCHES = (1, 2, 4, 8, 16, 32, 64)
VOCABULARY, CONTEXT, WIDTH, BLOCKS, HEADS = 65, 8, 24, 6, 6
STEP_SIZE = np.float32(3e-4)
FLOPS_PER_TOKEN = 258_192.0  # forward, and both products of every backward one


def cases(quick: bool) -> Iterator[Case]:
    """Every batch size."""
    for batch in BATCHES[:2] if quick else BATCHES:
        yield Case(
            "gpt",
            f"batch={batch}",
            {
                "buropt": partial(buropt, batch),
                "jax": partial(jax, batch),
                "torch": partial(torch, batch),
                "torch.compile": partial(torch, batch, compiled=True),
            },
            reference="torch",
            tolerance=2e-4,
            flops=FLOPS_PER_TOKEN * CONTEXT * batch,
            parameters={"batch": batch},
        )


def parameters() -> Any:
    """The same start for everybody."""
    return models.gpt_init(
        0, vocabulary=VOCABULARY, context=CONTEXT, width=WIDTH, n_blocks=BLOCKS, dtype=np.float32
    )


def samples(batch: int) -> tuple[Any, Any]:
    """Tokens and next tokens, both (batch, 8)."""
    rng = np.random.default_rng(1)
    text = rng.integers(0, VOCABULARY, (batch, CONTEXT + 1))
    return text[:, :-1], text[:, 1:]


def buropt(batch: int) -> Contestant:
    loss = partial(models.gpt_loss, n_heads=HEADS)
    oracle = bo.compile(loss, parameters(), data=samples(batch))
    x, g = oracle.x0.copy(), np.empty_like(oracle.x0)

    def step() -> None:
        oracle.grad(x, out=g)
        g.__imul__(STEP_SIZE)
        x.__isub__(g)

    return Contestant(step, partial(oracle.grad, oracle.x0))


def jax(batch: int) -> Contestant:
    module, jnp = peers.jax(x64=False)
    tokens, targets = (jnp.asarray(part, jnp.int32) for part in samples(batch))
    mask = np.tril(np.ones((CONTEXT, CONTEXT), bool))

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return weight * centred / jnp.sqrt(variance + 1e-5) + bias

    def linear(x: Any, weight: Any, bias: Any = 0.0) -> Any:
        return x @ weight.T + bias

    def attend(x: Any, layer: Any) -> Any:
        qkv = linear(x, layer["in_proj_weight"])
        shape = (batch, CONTEXT, HEADS, WIDTH // HEADS)
        q, k, v = (part.reshape(shape).swapaxes(1, 2) for part in jnp.split(qkv, 3, -1))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH // HEADS)
        weights = module.nn.softmax(jnp.where(mask, scores, -jnp.inf))
        mixed = (weights @ v).swapaxes(1, 2).reshape(batch, CONTEXT, WIDTH)
        return linear(mixed, layer["out_proj_weight"], layer["out_proj_bias"])

    def loss(params: Any) -> Any:
        x = params["token_embedding"][tokens] + params["position_embedding"]
        for block in params["blocks"]:
            x = x + attend(norm(x, **block["norm1"]), block["attention"])
            y = module.nn.relu(linear(norm(x, **block["norm2"]), **block["up"]))
            x = x + linear(y, **block["down"])
        logits = linear(norm(x, **params["norm"]), **params["head"])
        picked = jnp.take_along_axis(module.nn.log_softmax(logits), targets[..., None], -1)
        return -picked.mean()

    @partial(module.jit, donate_argnums=0)  # type: ignore[untyped-decorator]
    def step(params: Any) -> Any:
        gradient = module.grad(loss)(params)
        return module.tree.map(lambda p, g: p - STEP_SIZE * g, params, gradient)

    state = [module.tree.map(jnp.asarray, parameters())]

    def call() -> None:
        state[0] = module.block_until_ready(step(state[0]))

    def answer() -> Any:
        gradient = module.jit(module.grad(loss))(parameters())
        return peers.flat(*peers.leaves(gradient, parameters()))

    return Contestant(call, answer)


def torch(batch: int, compiled: bool = False) -> Contestant:
    module = peers.torch()
    functional = module.nn.functional
    tokens, targets = (module.as_tensor(part) for part in samples(batch))
    template = parameters()
    flat = [module.tensor(leaf, requires_grad=True) for leaf in peers.leaves(template, template)]

    def nested(like: Any, values: Iterator[Any]) -> Any:
        if isinstance(like, dict):
            return {key: nested(part, values) for key, part in like.items()}
        if isinstance(like, list):
            return [nested(part, values) for part in like]
        return next(values)

    params = nested(template, iter(flat))

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        return functional.layer_norm(x, (WIDTH,), weight, bias)

    def attend(x: Any, layer: Any) -> Any:
        shape = (batch, CONTEXT, HEADS, WIDTH // HEADS)
        parts = functional.linear(x, layer["in_proj_weight"]).split(WIDTH, -1)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(batch, CONTEXT, WIDTH)
        return functional.linear(mixed, layer["out_proj_weight"], layer["out_proj_bias"])

    def loss() -> Any:
        x = params["token_embedding"][tokens] + params["position_embedding"]
        for block in params["blocks"]:
            x = x + attend(norm(x, **block["norm1"]), block["attention"])
            y = functional.relu(functional.linear(norm(x, **block["norm2"]), **block["up"]))
            x = x + functional.linear(y, **block["down"])
        logits = functional.linear(norm(x, **params["norm"]), **params["head"])
        return functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))

    evaluate = module.compile(loss) if compiled else loss

    def backward() -> None:
        for p in flat:
            p.grad = None
        evaluate().backward()

    def step() -> None:
        backward()
        with module.no_grad():
            for p in flat:
                p.sub_(p.grad, alpha=float(STEP_SIZE))

    backward()
    gradient = peers.flat(*(p.grad for p in flat))
    return Contestant(step, lambda: gradient)
