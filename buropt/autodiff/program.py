"""What a compiled derivative does on each call: run the program, give the gradient its form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from buropt.trace.arguments import Input
from buropt.trace.indices import IntegerInput
from buropt.tree import Structure, flatten_leaves

Array: TypeAlias = NDArray[Any]
Run: TypeAlias = Callable[[Sequence[Any], Any], Any]

_LEAF = Structure("leaf")
_PAIR = Structure("tuple", (_LEAF, _LEAF))


@dataclass(frozen=True)
class Program:
    """A compiled derivative: takes the inputs in order, gives results in the user's form.

    Attributes
    ----------
    program : _core.Program
    dtype : numpy.dtype
        The graph's dtype.
    masks : tuple of int
        The inputs that are boolean arrays.
    integers : tuple of (int, IntegerInput)
        The inputs that are arrays of integers, and what is required of them.
    shapes, dtypes : tuple
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
    masks: tuple[int, ...]
    integers: tuple[tuple[int, IntegerInput], ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    structure: Structure
    first_out: int
    out_structure: Structure | None

    def shortest_run(self) -> Run:
        """`run`, or a shorter form of it for one or two results in the graph's dtype."""
        if self.masks or self.integers or any(dtype != self.dtype for dtype in self.dtypes):
            return self.run
        if self.structure == _LEAF and self.out_structure == _LEAF:
            return self._short_run(with_value=False)
        if self.structure != _PAIR:
            return self.run
        if self.first_out == 1 and self.out_structure == _LEAF and self.shapes[0] == ():
            return self._short_run(with_value=True)
        return self._pair_run() if self.out_structure is None else self.run

    def _short_run(self, with_value: bool) -> Run:
        program, dtype, shape = self.program, self.dtype, self.shapes[-1]
        to_scalar = dtype.type

        def run_scalar(leaves: Sequence[Any], out: Any) -> Any:
            results = program(*leaves)
            gradient = to_scalar(results[-1])
            if out is not None:
                gradient = _write(out, gradient)
            return (to_scalar(results[0]), gradient) if with_value else gradient

        def run_array(leaves: Sequence[Any], out: Any) -> Any:
            if out is not None and _can_take(out, shape, dtype, leaves):
                results = program.run(tuple(leaves), [None, out] if with_value else [out])
            else:
                results = program(*leaves)
                if out is not None:
                    results[-1] = _write(out, results[-1])
            return (to_scalar(results[0]), results[1]) if with_value else results[0]

        return run_array if shape else run_scalar

    def _pair_run(self) -> Run:
        program, to_scalar = self.program, self.dtype.type

        def run_scalars(leaves: Sequence[Any], out: Any) -> Any:
            value, tangent = program(*leaves)
            return to_scalar(value), to_scalar(tangent)

        def run_arrays(leaves: Sequence[Any], out: Any) -> Any:
            return tuple(program(*leaves))

        return run_arrays if self.shapes[0] else run_scalars

    def run(self, leaves: Sequence[Any], out: Any) -> Any:
        """Evaluate, and put the results into new arrays or into `out`."""
        inputs = list(leaves)
        for k in self.masks:
            inputs[k] = np.asarray(inputs[k], self.dtype)
        for k, integers in self.integers:
            integers.check(inputs[k])
        results = [
            result.astype(dtype, copy=False) if shape else dtype.type(result)
            for result, shape, dtype in zip(
                self.program(*inputs), self.shapes, self.dtypes, strict=True
            )
        ]
        if out is None:
            return self.structure.unflatten(results)
        if self.out_structure is None:
            raise TypeError("this derivative has no out=. Instead: use its result.")
        _write_leaves(out, results[self.first_out :], self.out_structure)
        return (*results[:1], out) if self.first_out else out


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


def _write_leaves(out: Any, results: list[Array], structure: Structure) -> None:
    targets, given = flatten_leaves(out)
    if given != structure:
        raise ValueError(
            "out must be nested like the gradient, with one array for each of "
            f"{', '.join(structure.paths('out'))}"
        )
    for target, result in zip(targets, results, strict=True):
        _write(target, result)
