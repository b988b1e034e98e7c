"""Importing peers, turning their calls into contestants, and trees of parameters."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
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


def nested(values: Iterator[Any], like: Any) -> Any:
    """The inverse of `leaves`: values in order, nested as `like` is."""
    if isinstance(like, dict):
        return {key: nested(values, part) for key, part in like.items()}
    if isinstance(like, list | tuple):
        return [nested(values, part) for part in like]
    return next(values)


def same(call: Callable[[], Any]) -> Contestant:
    """A contestant whose call returns its answer: a number, an array, or a tuple of them."""

    def answer() -> Any:
        result = call()
        return flat(*result) if isinstance(result, tuple | list) else flat(result)

    return Contestant(call, answer)
