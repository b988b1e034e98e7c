"""`vmap`: a function of one sample as a function of many, the batch of one program.

While it is traced, the function sees one sample, as the loss of an oracle does. Inside of another
traced function, where there is no batch, the samples are recorded one after another instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buropt import _core
from buropt.autodiff.transforms import Recorded, Transform
from buropt.trace import Trace, TraceError
from buropt.trace.arguments import Arguments
from buropt.trace.errors import function_name

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
InAxes: TypeAlias = int | Sequence[int | None] | None


class Mapped(Transform):
    """`vmap`."""

    kind = "vmap"
    result = "value"

    def __init__(self, fun: Callable[..., Any], in_axes: InAxes, out_axes: int) -> None:
        super().__init__(fun)
        axes = in_axes if isinstance(in_axes, Sequence) else (in_axes,)
        for axis in axes:
            if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
                raise TypeError(
                    "in_axes must be an int or None, or a sequence with one for each positional "
                    f"argument, got {in_axes!r}"
                )
        if isinstance(out_axes, bool) or not isinstance(out_axes, int):
            raise TypeError(f"out_axes must be an int, got {out_axes!r}")
        self._in_axes = in_axes
        self._out_axis = out_axes

    def argnums(self, n_args: int) -> tuple[int, ...]:
        """None: nothing is differentiated."""
        if isinstance(self._in_axes, Sequence) and len(self._in_axes) != n_args:
            raise TypeError(
                f"{self.name}: in_axes has {len(self._in_axes)} entries, and the call {n_args} "
                "positional arguments. Instead: give one entry for each."
            )
        return ()

    def axes(self, arguments: Arguments) -> list[int | None]:
        """By leaf, the axis that the samples lie along; None for what all of them share."""
        result: list[int | None] = []
        for k in range(arguments.n_args):
            axis = self._in_axes[k] if isinstance(self._in_axes, Sequence) else self._in_axes
            result += [axis] * len(arguments.leaves_of(k))
        for leaf in arguments.leaves[len(result) :]:
            result.append(0 if np.ndim(leaf) > 0 else None)
        paths = arguments.paths()
        for k, axis in enumerate(result):
            if axis is None:
                continue
            ndim = np.ndim(arguments.leaves[k])
            if not -ndim <= axis < ndim:
                raise TraceError(
                    f"{self.name}: the argument {paths[k]} has no axis {axis}. Instead: pass an "
                    "array with a row for each sample, or in_axes=None for what all samples share."
                )
            result[k] = axis % ndim
        self._count(arguments, result)
        return result

    def _count(self, arguments: Arguments, axes: Sequence[int | None]) -> int:
        """The number of samples."""
        paths = arguments.paths()
        counts = {
            paths[k]: int(np.shape(arguments.leaves[k])[axis])
            for k, axis in enumerate(axes)
            if axis is not None
        }
        if not counts:
            raise TraceError(
                f"{self.name}: there is no argument to map over. Instead: give in_axes an axis for "
                "one of them."
            )
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{count} in {path}" for path, count in counts.items())
            raise TraceError(
                f"{self.name}: the arguments have different numbers of samples: {found}. "
                "Instead: pass arrays of the same length along the mapped axes."
            )
        n = next(iter(counts.values()))
        if n == 0:
            raise TraceError(f"{self.name}: there are no samples. Instead: pass one at least.")
        return n

    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """The function of one sample; inside of another recording, of one after the other."""
        if not is_whole:
            return self._unrolled(trace, arguments)
        args, kwargs = arguments.structure.unflatten(arguments.leaves)
        values, structure = trace.call_nested(self.fun, *args, **kwargs)
        leaves = [trace.emit("to_batched", (value,)) for value in values]
        names = structure.paths("value")
        shapes = tuple(leaf.shape for leaf in leaves)
        for shape in shapes:
            self._check_out_axis(len(shape) + 1)
        samples = Samples(shapes, self._out_axis)
        like: list[int | None] = [None] * len(leaves)
        return Recorded(leaves, structure, names, like, [], values, 0, structure, samples)

    def _unrolled(self, trace: Trace, arguments: Arguments) -> Recorded:
        axes = self.axes(arguments)
        n = self._count(arguments, axes)
        columns: list[list[Any]] = []
        for i in range(n):
            leaves = [
                leaf if axis is None else leaf[(slice(None),) * axis + (i,)]
                for leaf, axis in zip(arguments.leaves, axes, strict=True)
            ]
            args, kwargs = arguments.structure.unflatten(leaves)
            values, structure = trace.call_nested(self.fun, *args, **kwargs)
            columns.append(list(values))
        for value in columns[0]:
            self._check_out_axis(len(value.shape) + 1)
        stacked: list[Any] = [
            np.stack(values, axis=self._out_axis) for values in zip(*columns, strict=True)
        ]
        names = structure.paths("value")
        return Recorded(stacked, structure, names, [None] * len(names), [], stacked)

    def _check_out_axis(self, ndim: int) -> None:
        if not -ndim <= self._out_axis < ndim:
            raise TraceError(
                f"{self.name}: out_axes={self._out_axis}, but {function_name(self.fun)} gives a "
                f"result with {ndim - 1} axes. Instead: choose from {-ndim} to {ndim - 1}."
            )


@dataclass(frozen=True)
class Samples:
    """The shapes of one sample's results, and where the axis of the samples goes in them."""

    rows: tuple[Shape, ...]
    axis: int

    def program(self, graph: _core.Graph, inputs: Sequence[tuple[str, Shape, bool]]) -> Any:
        """Runs a graph whose inputs are (name, shape of a sample, whether each has its own)."""
        return MappedProgram(graph, inputs, self)


class MappedProgram:
    """A program whose batch are the samples; those of an input lie along its first axis."""

    def __init__(
        self, graph: _core.Graph, inputs: Sequence[tuple[str, Shape, bool]], samples: Samples
    ) -> None:
        self._axis = samples.axis
        self._dtype = np.dtype(graph.dtype)
        self._empty = [None] * len(samples.rows)
        self._query = _core.Query(
            graph,
            list(inputs),
            [(f"value {k}", shape, True) for k, shape in enumerate(samples.rows)],
            [("rows" if mapped else "vector", k, 0) for k, (_, _, mapped) in enumerate(inputs)],
            [(k, 0) for k in range(len(samples.rows))],
            [],
            [],
            0,
            _core.default_threads(),
        )

    def into(self, leaves: Sequence[Any], out: Sequence[Any]) -> bool:
        """Write the results straight into arrays, if these are plain memory apart from inputs."""
        for target in out:
            if type(target) is not np.ndarray or target.dtype != self._dtype:
                return False
            if self._axis != 0 or not target.flags.carray:
                return False
            if any(np.may_share_memory(target, leaf) for leaf in leaves):
                return False
        self._query(list(leaves), None, None, 1.0, list(out))
        return True

    def __call__(self, *leaves: Any) -> list[Array]:
        """The results for all samples."""
        results: Any = self._query(list(leaves), None, None, 1.0, self._empty)
        return [np.moveaxis(result, 0, self._axis) for result in results]
