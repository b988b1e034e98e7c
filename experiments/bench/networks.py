"""The two networks of the benchmarks: sizes, start, data, and losses in any peer's operations.

As in the BurTorch paper (arXiv 2503.13795). The MLP predicts the next character of a name:
16 characters, embeddings of 64, one tanh layer, 27 logits. The GPT has 46 337 parameters: 6 blocks,
6 heads, width 24, context 8, vocabulary 65, layer norms in front, ReLU, mean cross-entropy.
Parameters are nested like those of `buropt.nn.models`; processes of other peers do not import it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

MLP_VOCABULARY, MLP_CONTEXT, MLP_WIDTH = 27, 16, 64
GPT_VOCABULARY, GPT_CONTEXT, GPT_WIDTH, GPT_BLOCKS, GPT_HEADS = 65, 8, 24, 6, 6
MLP_STEP_SIZE, GPT_STEP_SIZE = 0.1, 3e-4


def mlp_parameters(hidden: int) -> Any:
    """The same start for everybody, float32."""
    rng = np.random.default_rng(0)
    return {
        "embedding": rng.standard_normal((MLP_VOCABULARY, MLP_WIDTH)).astype(np.float32),
        "hidden": _linear(rng, hidden, MLP_CONTEXT * MLP_WIDTH),
        "out": _linear(rng, MLP_VOCABULARY, hidden),
    }


def gpt_parameters() -> Any:
    """The same start for everybody, float32."""
    rng = np.random.default_rng(0)
    width = GPT_WIDTH
    return {
        "token_embedding": rng.standard_normal((GPT_VOCABULARY, width)).astype(np.float32),
        "position_embedding": rng.standard_normal((GPT_CONTEXT, width)).astype(np.float32),
        "blocks": [
            {
                "norm1": _norm(width),
                "attention": {
                    "in_proj_weight": _linear(rng, 3 * width, width)["weight"],
                    **{f"out_proj_{key}": p for key, p in _linear(rng, width, width).items()},
                },
                "norm2": _norm(width),
                "up": _linear(rng, 4 * width, width),
                "down": _linear(rng, width, 4 * width),
            }
            for _ in range(GPT_BLOCKS)
        ],
        "norm": _norm(width),
        "head": _linear(rng, GPT_VOCABULARY, width),
    }


def _linear(rng: np.random.Generator, n_out: int, n_in: int) -> Any:
    bound = 1 / np.sqrt(n_in)
    return {
        "weight": rng.uniform(-bound, bound, (n_out, n_in)).astype(np.float32),
        "bias": rng.uniform(-bound, bound, n_out).astype(np.float32),
    }


def _norm(width: int) -> Any:
    return {"weight": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}


@cache
def mlp_samples(batch: int, text: Path | None = None) -> tuple[Any, Any]:
    """Characters (batch, 16) before each of `batch` random places in names, and those there.

    Without a file of names, one a line, the characters are random.
    """
    rng = np.random.default_rng(1)
    if text is None:
        tokens = rng.integers(0, MLP_VOCABULARY, (batch, MLP_CONTEXT + 1))
    else:
        letters = np.frombuffer(text.read_bytes().strip(), np.uint8)
        starts = rng.integers(0, len(letters) - MLP_CONTEXT - 1, batch)
        windows = letters[starts[:, None] + np.arange(MLP_CONTEXT + 1)].astype(np.int64)
        tokens = np.where(windows == ord("\n"), 0, windows - ord("a") + 1)
        # What stands before the last end of a name belongs to another one.
        ends = np.maximum.accumulate((tokens[:, -2::-1] == 0), 1)[:, ::-1]
        tokens[:, :-1][ends] = 0
    return np.ascontiguousarray(tokens[:, :-1]), np.ascontiguousarray(tokens[:, -1])


@cache
def gpt_samples(batch: int, text: Path | None = None) -> tuple[Any, Any]:
    """Characters and those that follow, both (batch, 8); random ones without a file of text."""
    rng = np.random.default_rng(1)
    if text is None:
        tokens = rng.integers(0, GPT_VOCABULARY, (batch, GPT_CONTEXT + 1))
    else:
        content = text.read_bytes()
        letters = np.frombuffer(content, np.uint8)
        starts = rng.integers(0, len(letters) - GPT_CONTEXT - 1, batch)
        windows = letters[starts[:, None] + np.arange(GPT_CONTEXT + 1)]
        tokens = np.searchsorted(np.array(sorted(set(content)), np.uint8), windows)
    return np.ascontiguousarray(tokens[:, :-1]), np.ascontiguousarray(tokens[:, 1:])


def mlp_loss(ops: Any, params: Any, tokens: Any, targets: Any) -> Any:
    """The mean cross-entropy of a batch; `ops` is a peer of `frameworks`."""
    x = ops.rows(ops.take(params["embedding"], tokens))
    h = ops.tanh(ops.linear(x, **params["hidden"]))
    return ops.cross_entropy(ops.linear(h, **params["out"]), targets)


def gpt_loss(ops: Any, params: Any, tokens: Any, targets: Any) -> Any:
    """The mean cross-entropy of a batch; `ops` is a peer of `frameworks`."""
    x = ops.take(params["token_embedding"], tokens) + params["position_embedding"]
    for block in params["blocks"]:
        layer = block["attention"]
        qkv = ops.linear(ops.layer_norm(x, **block["norm1"]), layer["in_proj_weight"])
        mixed = ops.attention(qkv, GPT_HEADS)
        x = x + ops.linear(mixed, layer["out_proj_weight"], layer["out_proj_bias"])
        y = ops.relu(ops.linear(ops.layer_norm(x, **block["norm2"]), **block["up"]))
        x = x + ops.linear(y, **block["down"])
    logits = ops.linear(ops.layer_norm(x, **params["norm"]), **params["head"])
    return ops.cross_entropy(logits, targets)
