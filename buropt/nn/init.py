"""Start values of layers, with the distributions and bounds of PyTorch's layers.

Every function takes a seed, an integer or a NumPy generator that is drawn from in turn, so that one
integer determines all layers of a model:

>>> rng = generator(0)
>>> params = {"hidden": linear(rng, 16, 8), "out": linear(rng, 3, 16)}

The numbers come from NumPy's Philox generator: they have PyTorch's distributions, not its bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Seed: TypeAlias = "int | np.random.Generator"
Parameters: TypeAlias = dict[str, NDArray[Any]]


def generator(seed: Seed) -> np.random.Generator:
    """A generator for that integer; one that is given is passed on."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.Generator(np.random.Philox(seed))


# Layers


def linear(
    seed: Seed,
    out_features: int,
    in_features: int,
    bias: bool = True,
    dtype: DTypeLike = np.float64,
) -> Parameters:
    """Parameters of `nn.linear`, as `torch.nn.Linear` has them.

    weight (out, in) and bias (out,), both uniform in +-1 / sqrt(in).
    """
    return _uniform_layer(generator(seed), (out_features, in_features), bias, dtype)


def conv1d(
    seed: Seed,
    out_channels: int,
    in_channels: int,
    kernel_size: int,
    bias: bool = True,
    dtype: DTypeLike = np.float64,
) -> Parameters:
    """Parameters of `nn.conv1d`, as `torch.nn.Conv1d` has them.

    weight (out, in, K) and bias (out,), both uniform in +-1 / sqrt(in K).
    """
    shape = (out_channels, in_channels, kernel_size)
    return _uniform_layer(generator(seed), shape, bias, dtype)


def conv2d(
    seed: Seed,
    out_channels: int,
    in_channels: int,
    kernel_size: int | tuple[int, int],
    bias: bool = True,
    dtype: DTypeLike = np.float64,
) -> Parameters:
    """Parameters of `nn.conv2d`, as `torch.nn.Conv2d` has them.

    weight (out, in, K_H, K_W) and bias (out,), both uniform in +-1 / sqrt(in K_H K_W).
    """
    kernel = kernel_size if isinstance(kernel_size, tuple) else (kernel_size, kernel_size)
    return _uniform_layer(generator(seed), (out_channels, in_channels, *kernel), bias, dtype)


def embedding(seed: Seed, rows: int, width: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """The table of `nn.embedding`, shape (rows, width), standard normal as `torch.nn.Embedding`."""
    return normal(seed, (rows, width), dtype=dtype)


def layer_norm(width: int, bias: bool = True, dtype: DTypeLike = np.float64) -> Parameters:
    """Parameters of `nn.layer_norm`: weight (width,) of ones, bias (width,) of zeros."""
    weight = np.ones(width, dtype)
    return {"weight": weight, "bias": np.zeros(width, dtype)} if bias else {"weight": weight}


def self_attention(
    seed: Seed,
    width: int,
    in_bias: bool = True,
    out_bias: bool = True,
    dtype: DTypeLike = np.float64,
) -> Parameters:
    """Parameters of `nn.causal_self_attention` with as many columns in as out.

    Both projections are initialized as `linear` is, as GPT implementations have it
    (`torch.nn.MultiheadAttention` uses `xavier_uniform` and zeros).
    """
    rng = generator(seed)
    inner = linear(rng, 3 * width, width, in_bias, dtype)
    outer = linear(rng, width, width, out_bias, dtype)
    return {f"in_proj_{name}": array for name, array in inner.items()} | {
        f"out_proj_{name}": array for name, array in outer.items()
    }


# Distributions, under PyTorch's names. A weight (out, in, ...) has fan_in = in * (size of the
# kernel) and fan_out = out * (size of the kernel).


def uniform(
    seed: Seed,
    shape: Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """Uniform in [low, high)."""
    drawn: NDArray[Any] = generator(seed).uniform(low, high, tuple(shape)).astype(dtype)
    return drawn


def normal(
    seed: Seed,
    shape: Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """Normal."""
    drawn: NDArray[Any] = generator(seed).normal(mean, std, tuple(shape)).astype(dtype)
    return drawn


def xavier_uniform(
    seed: Seed, shape: Sequence[int], gain: float = 1.0, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Uniform in +-gain sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6 / sum(_fans(shape)))
    return uniform(seed, shape, -bound, bound, dtype)


def xavier_normal(
    seed: Seed, shape: Sequence[int], gain: float = 1.0, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Normal with standard deviation gain sqrt(2 / (fan_in + fan_out))."""
    return normal(seed, shape, 0.0, gain * math.sqrt(2 / sum(_fans(shape))), dtype)


def kaiming_uniform(
    seed: Seed, shape: Sequence[int], a: float = 0.0, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Uniform in +-sqrt(6 / ((1 + a^2) fan_in)), for leaky relu of negative slope a."""
    bound = math.sqrt(6 / ((1 + a * a) * _fans(shape)[0]))
    return uniform(seed, shape, -bound, bound, dtype)


def kaiming_normal(
    seed: Seed, shape: Sequence[int], a: float = 0.0, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Normal with standard deviation sqrt(2 / ((1 + a^2) fan_in))."""
    return normal(seed, shape, 0.0, math.sqrt(2 / ((1 + a * a) * _fans(shape)[0])), dtype)


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) < 2:
        raise ValueError(
            f"buropt.nn.init: a weight of shape {tuple(shape)} has no fan-in; it needs two axes, "
            "(out, in)"
        )
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _uniform_layer(
    rng: np.random.Generator, shape: Sequence[int], bias: bool, dtype: DTypeLike
) -> Parameters:
    weight = kaiming_uniform(rng, shape, math.sqrt(5), dtype)  # sqrt(6 / (1 + 5)) = 1
    if not bias:
        return {"weight": weight}
    bound = 1 / math.sqrt(_fans(shape)[0])
    return {"weight": weight, "bias": uniform(rng, shape[:1], -bound, bound, dtype)}
