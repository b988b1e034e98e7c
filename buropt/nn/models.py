"""Two ready models of text: an MLP over a window of characters, and a GPT.

Ordinary functions of the parameters and one sample; `*_init` makes the parameters. Compile them as
any loss, with options bound by `functools.partial`:

    params = gpt_init(seed=0, vocabulary=65, context=8, width=24, n_blocks=6)
    oracle = bo.compile(partial(gpt_loss, n_heads=6), params, data=(tokens, targets))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from buropt.nn import init
from buropt.nn._operands import Array
from buropt.nn.activations import gelu, relu
from buropt.nn.attention import causal_self_attention
from buropt.nn.layers import embedding, layer_norm, linear
from buropt.nn.losses import cross_entropy

Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh"]
Tree: TypeAlias = dict[str, Any]

_ACTIVATIONS: dict[Activation, Callable[[Array], Array]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": partial(gelu, approximate="tanh"),
}


# The MLP of Bengio et al., "A neural probabilistic language model", JMLR 2003, as in makemore.


def mlp_init(
    seed: init.Seed,
    *,
    vocabulary: int = 27,
    context: int = 16,
    width: int = 64,
    hidden: int = 1024,
    dtype: DTypeLike = np.float64,
) -> Tree:
    """Parameters of `mlp`, initialized as PyTorch's layers are.

    Parameters
    ----------
    seed : int or generator
    vocabulary, context, width, hidden : int
        Number of tokens; tokens in a sample; columns of the embedding; hidden units.
    dtype : float64 or float32
    """
    rng = init.generator(seed)
    return {
        "embedding": init.embedding(rng, vocabulary, width, dtype),
        "hidden": init.linear(rng, hidden, context * width, dtype=dtype),
        "out": init.linear(rng, vocabulary, hidden, dtype=dtype),
    }


def mlp(params: Tree, tokens: Array) -> Array:
    """Logits of the next token, shape (..., vocabulary), after `tokens`, shape (..., context)."""
    x = embedding(tokens, params["embedding"])
    x = x.reshape(*x.shape[:-2], -1)
    return linear(np.tanh(linear(x, **params["hidden"])), **params["out"])


def mlp_loss(params: Tree, tokens: Array, target: Array) -> Array:
    """The cross-entropy of the next token, `target`."""
    return cross_entropy(mlp(params, tokens), target)


# A decoder-only transformer with layer norms in front (Radford et al. 2019).


def gpt_init(
    seed: init.Seed,
    *,
    vocabulary: int = 65,
    context: int = 8,
    width: int = 24,
    n_blocks: int = 6,
    final_norm: bool = True,
    dtype: DTypeLike = np.float64,
) -> Tree:
    """Parameters of `gpt`, initialized as PyTorch's layers are.

    The default sizes give 46 337 parameters, 46 289 without the last norm.

    Parameters
    ----------
    seed : int or generator
    vocabulary, context : int
        Number of tokens; the longest sequence.
    width : int
        Columns of the residual stream; the MLP of a block has four times as many.
    n_blocks : int
    final_norm : bool
        Whether a layer norm follows the last block.
    dtype : float64 or float32
    """
    rng = init.generator(seed)
    params: Tree = {
        "token_embedding": init.embedding(rng, vocabulary, width, dtype),
        "position_embedding": init.embedding(rng, context, width, dtype),
        "blocks": [
            {
                "norm1": init.layer_norm(width, dtype=dtype),
                "attention": init.self_attention(rng, width, in_bias=False, dtype=dtype),
                "norm2": init.layer_norm(width, dtype=dtype),
                "up": init.linear(rng, 4 * width, width, dtype=dtype),
                "down": init.linear(rng, width, 4 * width, dtype=dtype),
            }
            for _ in range(n_blocks)
        ],
    }
    if final_norm:
        params["norm"] = init.layer_norm(width, dtype=dtype)
    params["head"] = init.linear(rng, vocabulary, width, dtype=dtype)
    return params


def gpt(params: Tree, tokens: Array, *, n_heads: int, activation: Activation = "relu") -> Array:
    """Logits of the next token at each position.

    Parameters
    ----------
    params : dict
        As `gpt_init` makes them.
    tokens : array of integers, shape (..., T)
        T is at most the context that the parameters were made for.
    n_heads : int
        Divides the width.
    activation : "relu", "gelu" or "gelu_tanh"

    Returns
    -------
    array, shape (..., T, vocabulary)
    """
    act = _ACTIVATIONS[activation]
    x = embedding(tokens, params["token_embedding"])
    x = x + params["position_embedding"][: x.shape[-2]]
    for block in params["blocks"]:
        y = layer_norm(x, **block["norm1"])
        x = x + causal_self_attention(y, **block["attention"], n_heads=n_heads)
        y = layer_norm(x, **block["norm2"])
        x = x + linear(act(linear(y, **block["up"])), **block["down"])
    if "norm" in params:
        x = layer_norm(x, **params["norm"])
    return linear(x, **params["head"])


def gpt_loss(
    params: Tree,
    tokens: Array,
    targets: Array,
    *,
    n_heads: int,
    activation: Activation = "relu",
) -> Array:
    """The cross-entropy of the next tokens, `targets`, shape (..., T); the mean over them."""
    return cross_entropy(gpt(params, tokens, n_heads=n_heads, activation=activation), targets)
