"""Rules that cut arrays into parts."""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions._arguments import along, axes_of
from buropt.trace.functions.shapes import moveaxis

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

_unstack: Any = getattr(np, "unstack", None)  # from NumPy 2.1 on


@function(np.array_split, "ary indices_or_sections axis")
def array_split(trace: Trace, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    """Cut at some positions, or into a number of parts that are nearly equal."""
    array = trace.lift(ary)
    (k,) = axes_of(trace, axis, array.ndim)
    extent = array.shape[k]
    if np.ndim(indices_or_sections) == 0:
        n_parts = operator.index(indices_or_sections)
        if n_parts <= 0:
            raise ValueError(
                f"np.array_split: {n_parts} parts are asked for. "
                f"{location(trace.name)} Instead: 1 or more."
            )
        short, n_long = divmod(extent, n_parts)
        sizes = [short + 1] * n_long + [short] * (n_parts - n_long)
        cuts = [0, *np.cumsum(sizes).tolist()]
        slices = [slice(*pair) for pair in itertools.pairwise(cuts)]
    else:
        inner = [operator.index(cut) for cut in indices_or_sections]
        slices = [slice(*pair) for pair in zip([0, *inner], [*inner, None], strict=True)]
    return [array[along(k, part)] for part in slices]


@function(np.split, "ary indices_or_sections axis")
def split(trace: Trace, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    """Cut at some positions, or into a number of equal parts."""
    array = trace.lift(ary)
    if np.ndim(indices_or_sections) == 0:
        n_parts = operator.index(indices_or_sections)
        (k,) = axes_of(trace, axis, array.ndim)
        if n_parts > 0 and array.shape[k] % n_parts != 0:
            raise ValueError(
                f"np.split: axis {k} of an array of shape {array.shape} cannot be cut into "
                f"{n_parts} equal parts. {location(trace.name)} Instead: np.array_split."
            )
    return array_split(trace, array, indices_or_sections, axis)


@function(np.hsplit, "ary indices_or_sections")
def hsplit(trace: Trace, ary: Any, indices_or_sections: Any) -> list[Tracer]:
    """Cut along the second axis, vectors along their only one."""
    array = _with_axes(trace, "np.hsplit", ary, 1)
    return split(trace, array, indices_or_sections, 1 if array.ndim > 1 else 0)


@function(np.vsplit, "ary indices_or_sections")
def vsplit(trace: Trace, ary: Any, indices_or_sections: Any) -> list[Tracer]:
    """Cut along the first axis of at least two."""
    return split(trace, _with_axes(trace, "np.vsplit", ary, 2), indices_or_sections, 0)


@function(np.dsplit, "ary indices_or_sections")
def dsplit(trace: Trace, ary: Any, indices_or_sections: Any) -> list[Tracer]:
    """Cut along the third axis."""
    return split(trace, _with_axes(trace, "np.dsplit", ary, 3), indices_or_sections, 2)


def _with_axes(trace: Trace, name: str, ary: Any, least: int) -> Tracer:
    array = trace.lift(ary)
    if array.ndim < least:
        raise ValueError(
            f"{name}: an array of shape {array.shape} has less than {least} axes. "
            f"{location(trace.name)} Instead: np.split along an axis that it has."
        )
    return array


if _unstack is not None:

    @function(_unstack, "x axis")
    def unstack(trace: Trace, x: Any, axis: int = 0) -> tuple[Tracer, ...]:
        """The parts of an array along an axis, without that axis."""
        array = _with_axes(trace, "np.unstack", x, 1)
        return tuple(moveaxis(trace, array, axis, 0))
