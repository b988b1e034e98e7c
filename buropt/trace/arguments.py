"""Which arguments of a call become inputs of the graph, and which are part of the recording.

Arrays and floats become inputs. Python ints, booleans, strings, functions and other immutable
values stay as they are while the function is traced, so that it may branch on them and use them as
sizes; they belong to the key under which the recording is kept. An argument to differentiate by
must hold real numbers and always becomes an input.
"""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from buropt.trace.errors import TraceError, function_name
from buropt.trace.kinds import Kind, kind_of
from buropt.trace.tracer import Tracer
from buropt.tree import Structure, flatten_leaves, is_masked

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc, type)


@dataclass(frozen=True)
class Input:
    """An argument, or a part of one, that becomes an input of the graph.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype or None
        None for a Python number, which takes the dtype of the others.
    is_array : bool
        Whether it is an array and not a scalar.
    kind : str
        The kind of the traced value: "f", "i" or "b"; "f" for integers to differentiate by.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    is_array: bool
    kind: Kind


@dataclass(frozen=True)
class Static:
    """An argument, or a part of one, that is part of the recording."""

    kind: type
    value: Hashable


class Arguments:
    """The flattened arguments of one call.

    Attributes
    ----------
    leaves : list
        Arrays, numbers and other objects, in order.
    structure : Structure
        The containers: a pair of the positional and the keyword arguments.
    by : list of int
        The leaves to differentiate by.
    by_structures : list of Structure
        The structure of each argument to differentiate by.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: tuple[int, ...],
        names: Callable[[], list[str]] | None = None,
    ) -> None:
        self._fun = fun
        self._names = names
        self.leaves, self.structure = flatten_leaves((args, kwargs))
        of_args, _ = self.structure.children
        ends = [0]
        for child in of_args.children:
            ends.append(ends[-1] + child.n_leaves)
        self._ends = ends
        self.by: list[int] = []
        self.by_structures: list[Structure] = []
        for argnum in argnums:
            if not -len(args) <= argnum < len(args):
                raise TypeError(
                    f"{function_name(fun)} cannot be differentiated by argument {argnum}: it was "
                    f"called with {len(args)} positional arguments. Instead: pass that argument "
                    "by position, or choose another argnums."
                )
            k = argnum % len(args)
            self.by += range(ends[k], ends[k + 1])
            self.by_structures.append(of_args.children[k])

    @property
    def n_args(self) -> int:
        """How many positional arguments there are."""
        return len(self._ends) - 1

    def leaves_of(self, argument: int) -> list[int]:
        """The leaves of a positional argument."""
        return list(range(self._ends[argument], self._ends[argument + 1]))

    def with_leaves(self, leaves: list[Any]) -> Arguments:
        """The same arguments with other leaves."""
        other = copy.copy(self)
        other.leaves = leaves
        return other

    def paths(self) -> list[str]:
        """The name of each leaf, such as ``params['w'][0]``."""
        of_args, of_kwargs = self.structure.children
        names = parameter_names(self._fun) if self._names is None else self._names()
        names += [f"args[{k}]" for k in range(len(names), len(of_args.children))]
        result = []
        for name, child in zip(names, of_args.children, strict=False):
            result += child.paths(name)
        for key, child in zip(of_kwargs.keys, of_kwargs.children, strict=True):
            result += child.paths(str(key))
        return result

    def has_tracers(self) -> bool:
        """Whether the call happens while another function is traced."""
        return any(isinstance(leaf, Tracer) for leaf in self.leaves)

    def classify(self) -> tuple[Input | Static, ...]:
        """What each leaf becomes.

        Raises
        ------
        TraceError
            If a leaf to differentiate by does not hold real numbers, or another one is neither an
            array of numbers nor immutable. The text names the leaf's path.
        """
        by = set(self.by)
        return tuple(
            self._to_differentiate_by(k) if k in by else self._other(k)
            for k in range(len(self.leaves))
        )

    def _to_differentiate_by(self, k: int) -> Input:
        leaf = self.leaves[k]
        if isinstance(leaf, np.ndarray | np.generic):
            self._check_dtype(k, leaf.dtype, "fiu")
            return self._array_input(k, "f")
        if isinstance(leaf, float | int) and not isinstance(leaf, bool):
            return Input((), None, False, "f")
        instead = "pass arrays or numbers, in dicts, lists or tuples"
        if isinstance(leaf, bool):
            instead = "convert it to a float"
        raise self._error(
            k, f"is of type {type(leaf).__name__}; a derivative needs real numbers", instead
        )

    def _other(self, k: int) -> Input | Static:
        leaf = self.leaves[k]
        if isinstance(leaf, np.ndarray | np.floating):
            self._check_dtype(k, leaf.dtype, "fiub")
            return self._array_input(k, kind_of(leaf.dtype))
        if isinstance(leaf, float):
            return Input((), None, False, "f")
        if hasattr(leaf, "tocsr"):
            raise self._error(
                k, "is a SciPy sparse matrix", "bo.compile(loss, x0, data=...), or its toarray()"
            )
        if not _is_immutable(leaf):
            raise self._error(
                k,
                f"is of type {type(leaf).__name__}, whose contents may change between calls",
                "pass the arrays and numbers in it, or let the function take it from outside",
            )
        return Static(type(leaf), leaf)

    def _array_input(self, k: int, kind: Kind) -> Input:
        leaf = self.leaves[k]
        if is_masked(leaf) or isinstance(leaf, np.matrix):
            raise self._error(k, f"is of type {type(leaf).__name__}", "np.asarray(...) of it")
        return Input(leaf.shape, leaf.dtype, isinstance(leaf, np.ndarray), kind)

    def _check_dtype(self, k: int, dtype: np.dtype[Any], kinds: str) -> None:
        if dtype.kind not in kinds:
            raise self._error(
                k,
                f"has dtype {dtype}; a graph computes with real numbers",
                "convert it, e.g. with np.asarray(..., dtype=float)",
            )
        if dtype.kind == "f" and dtype.newbyteorder("=") not in _FLOATS:
            raise self._error(k, f"has dtype {dtype}", "convert it to float32 or float64")

    def _error(self, k: int, what: str, instead: str) -> TraceError:
        return TraceError(
            f"{function_name(self._fun)}: the argument {self.paths()[k]} {what}. "
            f"Instead: {instead}."
        )


def common_dtype(inputs: list[Input]) -> np.dtype[Any]:
    """The float dtype in which NumPy would compute with such floats; float64 without any.

    Masks, and integers that are not differentiated by, are labels and positions as a rule: they
    leave the dtype as it is.
    """
    strong = [one.dtype for one in inputs if one.dtype is not None and one.kind == "f"]
    single = bool(strong) and np.result_type(*strong) == np.float32
    return np.dtype(np.float32 if single else np.float64)


def _is_immutable(value: object) -> bool:
    """Whether equal values mean the same to a function: hashed by value, or code."""
    if isinstance(value, _CODE):
        return True
    if type(value).__hash__ in (None, object.__hash__):
        return False
    try:
        hash(value)
    except TypeError:  # e.g. a frozen dataclass that holds an array
        return False
    return True


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """The names of a function's positional parameters, as far as they are known."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):  # a function without a Python signature
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional]
