"""The peers: one file each, which knows how that peer differentiates, compiles and steps.

A case writes its function once, as ``f(ops, x, *data)`` where `ops` is the peer, and every peer
runs it in its own best form.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial

from experiments.bench.contest import Build, Contestant
from experiments.bench.frameworks.base import Framework as Framework

# Peer: module of this package, class.
FRAMEWORKS = {
    "jax": ("jax", "Jax"),
    "torch": ("torch", "Torch"),
    "torch.compile": ("torch", "TorchCompiled"),
    "tf.function": ("tensorflow", "TensorFlow"),
    "tf.eager": ("tensorflow", "TensorFlowEager"),
    "mlx": ("mlx", "Mlx"),
    "autograd": ("autograd", "Autograd"),
    "casadi": ("casadi", "Casadi"),
    "heyoka": ("heyoka", "Heyoka"),
    "micrograd": ("micrograd", "Micrograd"),
}
# Those that differentiate functions of arrays.
OF_ARRAYS = ("jax", "torch", "torch.compile", "tf.function", "tf.eager", "mlx", "autograd")


def get(name: str) -> Framework:
    """Start a peer.

    Raises
    ------
    NotInstalledError
        If it is not installed.
    """
    module, kind = FRAMEWORKS[name]
    framework: type[Framework] = getattr(
        importlib.import_module(f"experiments.bench.frameworks.{module}"), kind
    )
    return framework()


def each(
    build: Callable[[Framework], Contestant], names: Sequence[str] = tuple(FRAMEWORKS)
) -> dict[str, Build]:
    """The contestants of many peers that are built alike."""

    def start(name: str) -> Contestant:
        return build(get(name))

    return {name: partial(start, name) for name in names}
