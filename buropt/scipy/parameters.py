"""`Parameters`: the user's start point, nested or not, and the flat float64 vector of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buropt.tree import Structure, TreeSpec, flatten, flatten_leaves

if TYPE_CHECKING:
    from buropt.oracle import Oracle

Array: TypeAlias = NDArray[np.float64]
LEAF = Structure("leaf")


class Parameters:
    """How the user's parameters lie in the vectors that SciPy sees.

    Attributes
    ----------
    start : ndarray, shape (n,), float64
        The start point.
    spec : TreeSpec
        The containers and shapes; its dtype is the one that is computed in.
    """

    def __init__(self, start: Array, spec: TreeSpec) -> None:
        self.start = start
        self.spec = spec

    @classmethod
    def read(cls, x0: Any, name: str = "x0") -> Parameters:
        """Those of a start point.

        Raises
        ------
        TypeError, ValueError
            If it does not hold real numbers; the message gives the place in it.
        """
        start, spec = flatten(as_scipy_reads(x0), name)
        return cls(start.astype(np.float64), spec)

    @classmethod
    def of_oracle(cls, oracle: Oracle, x0: Any) -> Parameters:
        """An oracle's parameters, started at its own x0, at a nest like that, or at a vector."""
        own = cls.read(oracle.unflatten(oracle.x0))
        if x0 is None:
            return own
        given = cls.read(x0)
        if given.spec.structure == LEAF and given.start.shape == oracle.x0.shape:
            return cls(given.start, replace(given.spec, dtype=oracle.dtype))
        return cls(own.spec.flatten(x0).astype(np.float64), own.spec)

    @property
    def is_vector(self) -> bool:
        """Whether the user's form is SciPy's."""
        return self.spec.structure == LEAF and len(self.spec.shapes[0]) == 1

    def tree(self, x: Any) -> Any:
        """A vector (n,) in the user's form, in float64 and in memory of its own."""
        return self.spec.unflatten(np.array(x, np.float64))

    def computed(self, x: Any) -> Any:
        """A vector in the dtype of the computation."""
        return np.ascontiguousarray(x, self.spec.dtype)


def as_scipy_reads(x0: Any) -> Any:
    """A start point in which a list of numbers is an array, and a number an array of one.

    Dicts, and lists and tuples that hold arrays, stay the containers that they are.
    """
    if isinstance(x0, int | float | np.generic):
        return np.atleast_1d(x0)
    if isinstance(x0, np.ndarray) and x0.ndim == 0:
        return x0.reshape(1)
    if isinstance(x0, list | tuple) and _holds_numbers(x0):
        return np.array(x0)
    return x0


def _holds_numbers(tree: list[Any] | tuple[Any, ...]) -> bool:
    """Whether nothing but lists of numbers is inside, as in [[1, 2], [3, 4]]."""
    leaves, structure = flatten_leaves(tree)
    is_nest = all(kind in ("list", "tuple", "leaf") for kind in _kinds(structure))
    return is_nest and all(isinstance(leaf, int | float | np.generic) for leaf in leaves)


def _kinds(structure: Structure) -> set[str]:
    return {structure.kind}.union(*(_kinds(child) for child in structure.children))


def of_vector(fun: Callable[..., Any], spec: TreeSpec, *, scalar: bool) -> Callable[..., Any]:
    """`fun` as a function of the flat vector, and with `scalar` of one number as its result.

    Raises
    ------
    ValueError
        When it is traced, if `scalar` and the result has more than one number.
    """
    unflatten = spec.unflatten

    def flat(x: Any, *args: Any) -> Any:
        value = fun(unflatten(x), *args)
        shape = getattr(value, "shape", ())
        if not scalar or shape == ():
            return value
        if shape == (1,):
            return value[0]
        raise ValueError(
            f"the objective must return one number, got an array of shape {shape}. Instead: sum "
            "it, or call buropt.scipy.least_squares for a vector of residuals."
        )

    flat.__wrapped__ = fun  # type: ignore[attr-defined]  # messages name the user's function
    return flat


def converter(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """What gives a float64 array the dtype of the computation; nothing to do for float64."""
    if dtype == np.float64:
        return lambda x: x
    return lambda x: x.astype(dtype)
