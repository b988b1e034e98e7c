"""Jacobians and Hessians: the derivatives along all unit vectors by one program.

The unit vectors are the samples of a batch: each sample has a number, and the direction of sample i
is 1 at entry i. Few directions, and those of a Jacobian inside of another traced function, are
recorded one after another instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buropt import _core
from buropt.autodiff.transforms import ByArgument, Copies, Recorded
from buropt.trace import Trace, Tracer
from buropt.trace.arguments import Arguments
from buropt.tree import Structure

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]

_FEW = 4


class Jacobian(ByArgument):
    """`jacobian`."""

    kind = "jacobian"
    result = "Jacobian"

    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """Forward mode, a column for each input, or reverse mode, a row for each output."""
        copies = Copies(trace, arguments, arguments.by, is_whole)
        values, structure, checked = self._outputs(trace, arguments, copies)
        forms = Blocks(
            tuple(value.shape for value in values), tuple(copy.shape for copy in copies.variables)
        )
        whole = structure.nest(self.by_structure(arguments))
        if is_whole and forms.n_directions > _FEW:
            number = trace.input("direction", (), batched=True)
            leaves = [
                trace.emit("to_batched", (derivative,))  # also of what is 0 in every direction
                for derivative in _derivatives(trace, copies, values, forms, number)
            ]
            names = [f"derivative {k}" for k in range(len(leaves))]
            batch = forms
        else:
            rows = [
                _derivatives(trace, copies, values, forms, k) for k in range(forms.n_directions)
            ]
            stacked: list[Any] = [np.stack(one) for one in zip(*rows, strict=True)]
            stacked = stacked or [trace.lift(np.zeros((0, *target))) for target in forms.targets]
            leaves = forms.cut(stacked)
            paths = arguments.paths()
            names = [
                f"d {value}/d {paths[k]}"
                for value in structure.paths("value")
                for k in arguments.by
            ]
            batch = None
        like: list[int | None] = [None] * (len(values) * len(copies.variables))
        return Recorded(leaves, whole, names, like, arguments.by, checked, 0, whole, batch)

    def _outputs(
        self, trace: Trace, arguments: Arguments, copies: Copies
    ) -> tuple[list[Tracer], Structure, list[Tracer]]:
        """What is differentiated, its form, and what must depend on the arguments."""
        values, structure = trace.call_nested(self.fun, *copies.args, **copies.kwargs)
        return values, structure, values


class Hessian(Jacobian):
    """`hessian`."""

    kind = "hessian"
    result = "Hessian"

    def _outputs(
        self, trace: Trace, arguments: Arguments, copies: Copies
    ) -> tuple[list[Tracer], Structure, list[Tracer]]:
        value = trace.call(self.fun, *copies.args, **copies.kwargs)
        return copies.gradient(value), self.by_structure(arguments), [value]


@dataclass(frozen=True)
class Blocks:
    """The shapes of what is differentiated and of what it is differentiated by."""

    values: tuple[Shape, ...]
    variables: tuple[Shape, ...]

    @cached_property
    def forward(self) -> bool:
        """Whether there are fewer inputs than outputs."""
        return _total(self.variables) <= _total(self.values)

    @cached_property
    def sources(self) -> tuple[Shape, ...]:
        """Where the directions are."""
        return self.variables if self.forward else self.values

    @cached_property
    def targets(self) -> tuple[Shape, ...]:
        """What has a derivative along each of them."""
        return self.values if self.forward else self.variables

    @cached_property
    def n_directions(self) -> int:
        """How many unit vectors there are."""
        return _total(self.sources)

    def program(self, graph: _core.Graph, inputs: Sequence[tuple[str, Shape, bool]]) -> RowsProgram:
        """Gives the blocks for the inputs."""
        return RowsProgram(graph, inputs, self)

    def cut(self, derivatives: Sequence[Any]) -> list[Any]:
        """The blocks of the Jacobian from the derivatives along all unit vectors.

        `derivatives` has an array, or a tracer, for each target (a value in forward mode, a
        variable in reverse), the direction along the first axis.
        """
        blocks = []
        for value_number, value in enumerate(self.values):
            for number, variable in enumerate(self.variables):
                source, target = (number, value_number) if self.forward else (value_number, number)
                start = _total(self.sources[:source])
                stop = start + math.prod(self.sources[source])
                part = derivatives[target][start:stop]
                if self.forward:
                    part = part.reshape(math.prod(variable), math.prod(value)).T
                blocks.append(part.reshape(value + variable))
        return blocks


class RowsProgram:
    """A program whose batch are the unit vectors."""

    def __init__(
        self, graph: _core.Graph, inputs: Sequence[tuple[str, Shape, bool]], blocks: Blocks
    ) -> None:
        self._blocks = blocks
        self._dtype = np.dtype(graph.dtype)
        self._numbers = np.arange(blocks.n_directions).astype(self._dtype)
        self._empty = [None] * len(blocks.targets)
        self._query = _core.Query(
            graph,
            [*inputs, ("direction", (), True)],
            [(f"derivative {k}", shape, True) for k, shape in enumerate(blocks.targets)],
            [*(("vector", k, 0) for k in range(len(inputs))), ("rows", len(inputs), 0)],
            [(k, 0) for k in range(len(blocks.targets))],
            [],
            [],
            0,
            _core.default_threads(),
        )

    def __call__(self, *leaves: Any) -> list[Array]:
        """The blocks of the Jacobian, C-contiguous."""
        arrays = [np.asarray(leaf, self._dtype) for leaf in leaves]
        derivatives: Any = self._query([*arrays, self._numbers], None, None, 1.0, self._empty)
        return [np.ascontiguousarray(block) for block in self._blocks.cut(derivatives)]


def _derivatives(
    trace: Trace, copies: Copies, values: list[Tracer], blocks: Blocks, number: Tracer | int
) -> list[Tracer]:
    """The derivatives along one unit vector."""
    n = blocks.n_directions
    places = np.arange(float(n))
    unit = trace.lift(1.0 * (places == number))
    parts = []
    start = 0
    for shape in blocks.sources:
        stop = start + math.prod(shape)
        parts.append(unit[start:stop].reshape(shape))
        start = stop
    if blocks.forward:
        return copies.pushed(values, parts)
    return copies.pulled(values, parts)


def _total(shapes: Sequence[Shape]) -> int:
    return sum(math.prod(shape) for shape in shapes)
