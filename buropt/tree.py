"""Nested dicts, lists and tuples of arrays, and the one flat vector that optimizers see.

`flatten` turns a tree into a vector and a `TreeSpec`; the spec turns any such vector back, be it
an array (leaves are views of it) or a traced vector (leaves are traced slices). Dicts keep the
order of their keys; `None` stands for an absent part and has no numbers. Errors name a part by
its path, such as ``x0['w'][0]``.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

_CACHE_LINE = 64  # bytes


@dataclass(frozen=True)
class Structure:
    """The shape of a tree without its leaves; hashable, so that it can be part of a cache key.

    Attributes
    ----------
    kind : str
        ``leaf``, ``none``, ``dict``, ``list``, ``tuple`` or ``namedtuple``.
    children : tuple of Structure
        One entry a part, in order.
    keys : tuple
        The keys of a dict, in the dict's order, or the field names of a named tuple.
    container : type or None
        The class of a named tuple.
    """

    kind: str
    children: tuple[Structure, ...] = ()
    keys: tuple[Hashable, ...] = ()
    container: type | None = None

    @property
    def n_leaves(self) -> int:
        """How many leaves the tree has."""
        return 1 if self.kind == "leaf" else sum(child.n_leaves for child in self.children)

    def paths(self, root: str) -> list[str]:
        """Name each leaf in order, for a tree that is called `root`."""
        if self.kind == "leaf":
            return [root]
        return [
            path
            for name, child in zip(self._part_names(), self.children, strict=True)
            for path in child.paths(root + name)
        ]

    def nest(self, inner: Structure) -> Structure:
        """The structure with `inner` in the place of each leaf."""
        if self.kind == "leaf":
            return inner
        children = tuple(child.nest(inner) for child in self.children)
        return replace(self, children=children)

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Build the tree from its leaves in order."""
        if len(leaves) != self.n_leaves:
            raise ValueError(f"the tree has {self.n_leaves} leaves, got {len(leaves)}")
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind == "leaf":
            return next(leaves)
        if self.kind == "none":
            return None
        parts = [child._build(leaves) for child in self.children]
        if self.kind == "dict":
            return dict(zip(self.keys, parts, strict=True))
        if self.kind == "namedtuple":
            return cast(Any, self.container)(*parts)
        return parts if self.kind == "list" else tuple(parts)

    def _part_names(self) -> list[str]:
        if self.kind == "dict":
            return [f"[{key!r}]" for key in self.keys]
        if self.kind == "namedtuple":
            return [f".{key}" for key in self.keys]
        return [f"[{i}]" for i in range(len(self.children))]


_LEAF = Structure("leaf")
_NONE = Structure("none")


def flatten_leaves(tree: Any) -> tuple[list[Any], Structure]:
    """Split a tree into its leaves, in order, and its structure.

    Dicts, lists, tuples and named tuples are containers, `None` is an empty one, and everything
    else is a leaf.
    """
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves)


def _collect(tree: Any, leaves: list[Any]) -> Structure:
    if tree is None:
        return _NONE
    if isinstance(tree, dict):
        children = tuple(_collect(value, leaves) for value in tree.values())
        return Structure("dict", children, tuple(tree))
    if isinstance(tree, list | tuple):
        children = tuple(_collect(value, leaves) for value in tree)
        if isinstance(tree, list):
            return Structure("list", children)
        fields = getattr(tree, "_fields", None)
        if fields is not None:
            return Structure("namedtuple", children, tuple(fields), type(tree))
        return Structure("tuple", children)
    leaves.append(tree)
    return _LEAF


@dataclass(frozen=True)
class TreeSpec:
    """How a tree of arrays lies in one flat vector.

    Attributes
    ----------
    structure : Structure
        The containers.
    shapes : tuple of tuple of int
        The shape of each leaf, in order.
    dtype : numpy.dtype
        ``float64`` or ``float32``, the dtype of the vector.
    name : str
        What error messages call the tree.
    """

    structure: Structure
    shapes: tuple[tuple[int, ...], ...]
    dtype: np.dtype[Any]
    name: str = "x0"

    @property
    def dim(self) -> int:
        """The length of the flat vector."""
        return sum(_size(shape) for shape in self.shapes)

    @property
    def offsets(self) -> list[int]:
        """Where each leaf begins in the vector."""
        ends = itertools.accumulate((_size(shape) for shape in self.shapes), initial=0)
        return list(ends)[:-1]

    @property
    def paths(self) -> list[str]:
        """The path of each leaf, such as ``x0['w'][0]``."""
        return self.structure.paths(self.name)

    def flatten(self, tree: Any) -> Array:
        """Put a tree of this very structure into a new vector of shape (dim,).

        It begins at a cache line, as NumPy's own arrays seldom do: products with a matrix in it
        take up to a fifth less time.

        Raises
        ------
        ValueError
            If the containers or the shape of a leaf differ; the text names the leaf's path.
        TypeError
            If a leaf does not hold real numbers.
        """
        leaves, structure = flatten_leaves(tree)
        if structure != self.structure:
            expected, got = self.paths, structure.paths(self.name)
            raise ValueError(
                f"{self.name}: the tree has another structure: expected {_shorten(expected)}, "
                f"got {_shorten(got)}. Pass dicts, lists and tuples nested like the ones given "
                "first, keys in the same order."
            )
        vector = _aligned(self.dim, self.dtype)
        start = 0
        for path, shape, leaf in zip(self.paths, self.shapes, leaves, strict=True):
            array = _real_array(leaf, path)
            if array.shape != shape:
                raise ValueError(f"{path}: expected shape {shape}, got {array.shape}")
            vector[start : start + array.size] = array.ravel()
            start += array.size
        return vector

    def unflatten(self, vector: Any) -> Any:
        """Give the tree back from a vector of shape (dim,).

        Parameters
        ----------
        vector : ndarray or Tracer, shape (dim,)
            An array's leaves are views of it; a traced vector's leaves are traced slices.

        Raises
        ------
        ValueError
            If the vector has another shape.
        """
        if vector.shape != (self.dim,):
            raise ValueError(
                f"{self.name}: expected a vector of shape ({self.dim},), got shape {vector.shape}"
            )
        if self.structure == _LEAF:
            return vector if self.shapes[0] == vector.shape else vector.reshape(self.shapes[0])
        leaves = []
        start = 0
        for shape in self.shapes:
            stop = start + _size(shape)
            part = vector[start:stop]
            leaves.append(part if part.shape == shape else part.reshape(shape))
            start = stop
        return self.structure.unflatten(leaves)


def _aligned(dim: int, dtype: np.dtype[Any]) -> Array:
    """An uninitialized vector that begins at a cache line."""
    memory = np.empty(dim * dtype.itemsize + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + dim * dtype.itemsize].view(dtype)


def flatten(tree: Any, name: str = "x0", dtype: DTypeLike | None = None) -> tuple[Array, TreeSpec]:
    """Put every number of a tree of arrays into one new vector.

    Parameters
    ----------
    tree : array or nested dict, list, tuple of arrays
        Leaves are arrays or numbers of any shape. A list is a container: ``[1.0, 2.0]`` is two
        leaves of shape ``()``.
    name : str
        What error messages call the tree.
    dtype : float64 or float32, optional
        The vector's dtype. Left out: ``float32`` if every leaf is a float32 array, otherwise
        ``float64`` (integers are promoted).

    Returns
    -------
    vector : ndarray, shape (dim,)
    spec : TreeSpec
        Turns such vectors back into trees.

    Raises
    ------
    TypeError
        If a leaf does not hold real numbers (booleans, complex numbers, strings, objects), is a
        masked array or a matrix, or a dtype is not supported.
    ValueError
        If there are no leaves.
    """
    leaves, structure = flatten_leaves(tree)
    paths = structure.paths(name)
    if not leaves:
        raise ValueError(f"{name} holds no arrays: got {tree!r}. Pass at least one number.")
    arrays = [_real_array(leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
    if dtype is None:
        all_single = all(array.dtype == np.float32 for array in arrays)
        chosen: np.dtype[Any] = np.dtype(np.float32 if all_single else np.float64)
    else:
        chosen = np.dtype(dtype)
        if chosen not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise TypeError(f"{name}: dtype must be float32 or float64, got {chosen}")
    spec = TreeSpec(structure, tuple(array.shape for array in arrays), chosen, name)
    numbers = np.concatenate([array.ravel() for array in arrays])
    vector = _aligned(numbers.size, chosen)
    vector[:] = numbers
    return vector, spec


def _real_array(leaf: Any, path: str) -> Array:
    """The leaf as an array of real numbers, or an error that names its path."""
    array = np.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic | int | float) else None
    if array is None:
        raise TypeError(
            f"{path} is of type {type(leaf).__name__}, which is not an array of "
            "numbers. Pass NumPy arrays in dicts, lists and tuples."
        )
    check_plain(leaf, path)
    if array.dtype.kind not in "fiu":
        raise TypeError(
            f"{path} has dtype {array.dtype}, and only real numbers can be optimized. "
            f"Convert it, e.g. with np.asarray({path}, dtype=float)."
        )
    if array.dtype.itemsize > 8:
        raise TypeError(f"{path} has dtype {array.dtype}; the widest supported is float64.")
    return array


def is_masked(value: object) -> bool:
    """Whether it is a masked array, asked without importing `numpy.ma`, which takes a while."""
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(value, module.MaskedArray)


def check_plain(array: Any, name: str) -> None:
    """Refuse subclasses of arrays whose meaning a conversion would lose: masks, matrix products."""
    if is_masked(array):
        raise TypeError(f"{name} is a masked array, whose mask would be lost; pass its filled(...)")
    if isinstance(array, np.matrix):
        raise TypeError(
            f"{name} is of type matrix, whose rows stay 2-D; pass np.asarray(...) of it"
        )


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _shorten(paths: list[str], limit: int = 6) -> str:
    shown = ", ".join(paths[:limit]) or "no leaves"
    return shown + (f" and {len(paths) - limit} more" if len(paths) > limit else "")
