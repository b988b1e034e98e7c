"""What a compiled derivative does on each call: run the program, give the gradient its form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from buropt.trace.arguments import Input
from buropt.trace.kinds import inexact, inexact_text
from buropt.tree import Structure, flatten_leaves

Array: TypeAlias = NDArray[Any]
Run: TypeAlias = Callable[[Sequence[Any], Any], Any]

_LEAF = Structure("leaf")


@dataclass(frozen=True)
class Program:
    """A compiled derivative: takes the inputs in order, gives gradients in the user's form.

    Attributes
    ----------
    program : _core.Program
        Gives the value, if asked for, and the gradients.
    dtype : numpy.dtype
        The graph's dtype.
    masks : tuple of int
        The inputs that are boolean arrays.
    integers : tuple of (int, str)
        The inputs that are arrays of integers, which the graph's dtype must hold exactly, and
        their names.
    shapes, dtypes : tuple
        Of each gradient.
    structure : Structure
        The containers of the result.
    with_value : bool
    """

    program: Any
    dtype: np.dtype[Any]
    masks: tuple[int, ...]
    integers: tuple[tuple[int, str], ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    structure: Structure
    with_value: bool

    def shortest_run(self) -> Run:
        """`run`, or a shorter form of it for one gradient in the graph's dtype."""
        if self.masks or self.integers or self.structure != _LEAF or self.dtypes != (self.dtype,):
            return self.run
        program, with_value, dtype = self.program, self.with_value, self.dtype
        to_scalar = dtype.type

        def run_scalar(leaves: Sequence[Any], out: Any) -> Any:
            results = program(*leaves)
            gradient = to_scalar(results[-1])
            if out is not None:
                gradient = _write(out, gradient)
            return (to_scalar(results[0]), gradient) if with_value else gradient

        def run_array(leaves: Sequence[Any], out: Any) -> Any:
            if out is not None and _can_take(out, self.shapes[0], dtype, leaves):
                results = program.run(tuple(leaves), [None, out] if with_value else [out])
            else:
                results = program(*leaves)
                if out is not None:
                    results[-1] = _write(out, results[-1])
            return (to_scalar(results[0]), results[1]) if with_value else results[0]

        return run_array if self.shapes[0] else run_scalar

    def run(self, leaves: Sequence[Any], out: Any) -> Any:
        """Evaluate, and put the gradients into new arrays or into `out`."""
        inputs = list(leaves)
        for k in self.masks:
            inputs[k] = np.asarray(inputs[k], self.dtype)
        for k, path in self.integers:
            integer = inexact(inputs[k], self.dtype)
            if integer is not None:
                what, instead = inexact_text(integer, self.dtype)
                raise ValueError(f"the argument {path} {what}. Instead: {instead}.")
        results = self.program(*inputs)
        gradients = [
            gradient.astype(dtype, copy=False) if shape else dtype.type(gradient)
            for gradient, shape, dtype in zip(
                results[int(self.with_value) :], self.shapes, self.dtypes, strict=True
            )
        ]
        if out is not None:
            tree = _write_tree(out, gradients, self.structure)
        else:
            tree = self.structure.unflatten(gradients)
        return (self.dtype.type(results[0]), tree) if self.with_value else tree


def gradient_dtype(kind: Input, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the argument, or of the graph for integers and Python numbers."""
    is_float = kind.dtype is not None and kind.dtype.kind == "f"
    return cast("np.dtype[Any]", kind.dtype).newbyteorder("=") if is_float else dtype


def _can_take(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], leaves: Any) -> bool:
    """Whether the program can write straight into `out`: plain memory apart from the inputs."""
    if type(out) is not np.ndarray or out.shape != shape or out.dtype != dtype:
        return False
    if not out.flags.carray:  # contiguous, aligned and writeable
        return False
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            # Two arrays that own their memory only share it if they are the same one.
            own_memory = leaf.base is None and out.base is None
            if leaf is out or not (own_memory or not np.may_share_memory(leaf, out)):
                return False
    return True


def _write(out: Any, gradient: Any) -> Any:
    """Copy a gradient, an array or a NumPy scalar, into the caller's array."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an array of shape {gradient.shape}, got {type(out).__name__}")
    if out.shape != gradient.shape:
        raise ValueError(f"out must have the gradient's shape {gradient.shape}, got {out.shape}")
    if out.dtype == gradient.dtype:
        out[...] = gradient
    else:
        np.copyto(out, gradient, casting="same_kind")
    return out


def _write_tree(out: Any, gradients: list[Array], structure: Structure) -> Any:
    targets, given = flatten_leaves(out)
    if given != structure:
        raise ValueError(
            "out must be nested like the gradient, with one array for each of "
            f"{', '.join(structure.paths('out'))}"
        )
    for target, gradient in zip(targets, gradients, strict=True):
        _write(target, gradient)
    return out
