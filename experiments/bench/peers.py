"""Importing peers, and turning their calls into contestants."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.bench.contest import Contestant, NotInstalledError


def need(module: str) -> Any:
    """Import a peer.

    Raises
    ------
    NotInstalledError
        If it is not installed or cannot start here.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotInstalledError(f"not installed ({error})") from error
    except Exception as error:  # a broken installation must not stop the others
        raise NotInstalledError(f"cannot be imported ({error})") from error


def jax(x64: bool) -> tuple[Any, Any]:
    """Give jax and jax.numpy, in double precision or single."""
    module = need("jax")
    module.config.update("jax_enable_x64", x64)
    return module, need("jax.numpy")


def torch(threads: int | None = None) -> Any:
    """PyTorch; the number of threads is that of the environment unless given."""
    module = need("torch")
    if threads is not None:
        module.set_num_threads(threads)
    return module


class CasadiCall:
    """A CasADi function of one vector with value and gradient, called on fixed memory."""

    def __init__(self, function: Any, x: Any) -> None:
        self._function = function  # the buffers point into it
        self._buffer, self.call = function.buffer()
        self._x, self._value, self._gradient = x, np.zeros(1), np.zeros(x.size)
        self._buffer.set_arg(0, memoryview(self._x))
        self._buffer.set_res(0, memoryview(self._value))
        self._buffer.set_res(1, memoryview(self._gradient))

    def answer(self) -> Any:
        """Value and gradient."""
        self.call()
        return flat(self._value, self._gradient)


def flat(*arrays: Any) -> np.ndarray[Any, Any]:
    """All numbers in one vector, for comparing answers."""
    return np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays])


def leaves(tree: Any, like: Any) -> list[Any]:
    """The arrays of nested dicts and lists in the order of `like`, which is that of buropt."""
    if isinstance(like, dict):
        return [leaf for key in like for leaf in leaves(tree[key], like[key])]
    if isinstance(like, list | tuple):
        pairs = zip(tree, like, strict=True)
        return [leaf for part, model in pairs for leaf in leaves(part, model)]
    return [tree]


def same(call: Callable[[], Any]) -> Contestant:
    """A contestant whose call returns its answer: a number, an array, or a tuple of them."""

    def answer() -> Any:
        result = call()
        return flat(*result) if isinstance(result, tuple | list) else flat(result)

    return Contestant(call, answer)
