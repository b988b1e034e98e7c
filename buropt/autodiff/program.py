"""What a compiled derivative does on each call: run the program, give the gradient its form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from buropt import _core
from buropt.trace.arguments import Input
from buropt.trace.indices import IntegerInput
from buropt.tree import Structure, flatten_leaves

Array: TypeAlias = NDArray[Any]

_LEAF = Structure("leaf")


@dataclass(frozen=True)
class Program:
    """A compiled derivative: takes the inputs in order, gives results in the user's form.

    Attributes
    ----------
    program : _core.Program
    dtype : numpy.dtype
        The graph's dtype.
    axes : tuple of (int, int)
        The inputs whose samples lie along another axis than the first, and that axis.
    masks : tuple of int
        The inputs that are boolean arrays.
    integers : tuple of (int, IntegerInput)
        The inputs that are arrays of integers, and what is required of them.
    arrays : tuple of bool
        Whether each result is an array and not a number.
    dtypes : tuple of numpy.dtype
        Of each result.
    structure : Structure
        The containers of the results.
    first_out : int
        The results from here on are what `out` receives.
    out_structure : Structure or None
        The containers of `out`; None if there can be none.
    """

    program: Any
    dtype: np.dtype[Any]
    axes: tuple[tuple[int, int], ...]
    masks: tuple[int, ...]
    integers: tuple[tuple[int, IntegerInput], ...]
    arrays: tuple[bool, ...]
    dtypes: tuple[np.dtype[Any], ...]
    structure: Structure
    first_out: int
    out_structure: Structure | None

    def add_to(self, quick: _core.QuickPrograms, args: tuple[Any, ...]) -> None:
        """Let calls with arguments like these, all of them leaves, go straight to the program."""
        is_tuple = self.structure.kind == "tuple"
        leaves = self.structure.children if is_tuple else (self.structure,)
        # Then a call is nothing but a run of it.
        is_plain = (
            isinstance(self.program, _core.Program)
            and not (self.masks or self.integers)
            and all(dtype == self.dtype for dtype in self.dtypes)
            and all(leaf == _LEAF for leaf in leaves)
        )
        program = self.program if is_plain else None
        quick.add(args, self.run, program, is_tuple, self.out_structure == _LEAF)

    def run(self, leaves: Sequence[Any], out: Any) -> Any:
        """Evaluate, and put the results into new arrays or into `out`."""
        inputs = list(leaves)
        for k, axis in self.axes:
            inputs[k] = np.moveaxis(inputs[k], axis, 0)
        for k in self.masks:
            inputs[k] = np.asarray(inputs[k], self.dtype)
        for k, integers in self.integers:
            integers.check(inputs[k])
        if out is not None and self._write_into(inputs, out):
            return out
        results = [
            result.astype(dtype, copy=False) if is_array else dtype.type(result)
            for result, is_array, dtype in zip(
                self.program(*inputs), self.arrays, self.dtypes, strict=True
            )
        ]
        if out is None:
            return self.structure.unflatten(results)
        if self.out_structure is None:
            raise TypeError("this derivative has no out=. Instead: use its result.")
        _write_leaves(out, results[self.first_out :], self.out_structure)
        return (*results[:1], out) if self.first_out else out

    def _write_into(self, inputs: list[Any], out: Any) -> bool:
        """Whether the program itself has written its results into `out`."""
        into = getattr(self.program, "into", None)
        if into is None:
            return False
        targets, given = flatten_leaves(out)
        return given == self.out_structure and bool(into(inputs, targets))


def gradient_dtype(kind: Input, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the argument, or of the graph for integers and Python numbers."""
    is_float = kind.dtype is not None and kind.dtype.kind == "f"
    return cast("np.dtype[Any]", kind.dtype).newbyteorder("=") if is_float else dtype


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


def _write_leaves(out: Any, results: list[Array], structure: Structure) -> None:
    if structure == _LEAF:
        _write(out, results[0])
        return
    targets, given = flatten_leaves(out)
    if given != structure:
        raise ValueError(
            "out must be nested like the gradient, with one array for each of "
            f"{', '.join(structure.paths('out'))}"
        )
    for target, result in zip(targets, results, strict=True):
        _write(target, result)
