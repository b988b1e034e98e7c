"""Bounds in SciPy's forms, or nested as the parameters are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import Bounds

from buropt.scipy.parameters import LEAF, Array, Parameters
from buropt.tree import Structure


def read_bounds(bounds: Any, parameters: Parameters) -> Any:
    """Bounds as SciPy takes them.

    Parameters
    ----------
    bounds : scipy.optimize.Bounds, sequence of pairs, nested pairs, or None
        Pairs ``(low, high)`` for all n numbers in a row; or, for nested parameters, a nest like
        theirs with a pair in the place of each array: its parts are None, numbers, or arrays that
        broadcast to the array's shape. None in the place of a pair, or of a dict, is no bound.

    Raises
    ------
    ValueError
        If a nest is not like the parameters'; the message gives the place in it.
    """
    if isinstance(bounds, Bounds):
        low, high = np.asarray(bounds.lb), np.asarray(bounds.ub)
        if max(low.ndim, high.ndim) > 1:
            return Bounds(low.ravel(), high.ravel(), np.ravel(bounds.keep_feasible))
        return bounds
    structure = parameters.spec.structure
    if bounds is None or structure == LEAF or not _is_nest(bounds, parameters):
        return bounds
    shapes = iter(parameters.spec.shapes)
    pairs = list(_pairs(structure, bounds, shapes, "bounds"))
    return Bounds(*(np.concatenate(side) for side in zip(*pairs, strict=True)))


def of_pairs(pairs: Any) -> Bounds:
    """Pairs ``(low, high)`` for all numbers in a row, None for no bound."""
    if isinstance(pairs, Bounds):
        return pairs
    low, high = zip(*pairs, strict=True)
    return Bounds(
        [-np.inf if side is None else side for side in low],
        [np.inf if side is None else side for side in high],
    )


def clipped(x: Array, bounds: Any) -> Array:
    """The point of the bounds that is nearest to x; x itself if they do not fit, as SciPy says."""
    if bounds is None or not (isinstance(bounds, Bounds) or np.shape(bounds) == (x.size, 2)):
        return x
    limits = of_pairs(bounds)
    low, high = np.asarray(limits.lb, np.float64), np.asarray(limits.ub, np.float64)
    if low.size not in (1, x.size) or high.size not in (1, x.size):
        return x
    return np.minimum(np.maximum(x, low), high)


def _is_nest(bounds: Any, parameters: Parameters) -> bool:
    """A list can be both; it is SciPy's if it has a pair of numbers for every number."""
    if parameters.spec.structure.kind in ("dict", "namedtuple"):
        return isinstance(bounds, dict | tuple)
    return not (len(bounds) == parameters.start.size and np.shape(bounds[0]) == (2,))


def _pairs(
    structure: Structure, node: Any, shapes: Iterator[tuple[int, ...]], path: str
) -> Iterator[tuple[Array, Array]]:
    if structure.kind == "leaf":
        yield _pair(node, next(shapes), path)
        return
    names: list[Any] = list(structure.keys) or list(range(len(structure.children)))
    if structure.kind == "namedtuple" and hasattr(node, "_asdict"):
        node = node._asdict()
    parts = dict.fromkeys(names) if node is None else node
    if isinstance(parts, list | tuple):
        parts = dict(enumerate(parts))
    if not isinstance(parts, dict) or set(parts) != set(names):
        raise ValueError(
            f"{path} must be nested like x0, with a part for each of {names}; got {node!r}"
        )
    for name, child in zip(names, structure.children, strict=True):
        yield from _pairs(child, parts[name], shapes, f"{path}[{name!r}]")


def _pair(node: Any, shape: tuple[int, ...], path: str) -> tuple[Array, Array]:
    if node is None:
        node = None, None
    if not isinstance(node, list | tuple) or len(node) != 2:
        raise ValueError(f"{path} must be a pair (low, high) or None, got {node!r}")
    sides = []
    for side, absent in zip(node, (-np.inf, np.inf), strict=True):
        value = np.asarray(absent if side is None else side, np.float64)
        try:
            sides.append(np.broadcast_to(value, shape).ravel())
        except ValueError:
            raise ValueError(
                f"{path} has a side of shape {value.shape}, which does not fit the shape {shape}"
            ) from None
    return sides[0], sides[1]
