"""Rules for functions that pick elements by integers, or by masks that are constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.trace.dispatch import function, unsupported_keyword
from buropt.trace.errors import TraceError, location, place
from buropt.trace.functions._arguments import axes_of, with_axis
from buropt.trace.functions.selection import clip, where
from buropt.trace.indexing.advanced import take as take_along

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.take, "a indices axis out mode")
def take(trace: Trace, a: Any, indices: Any, axis: Any = None, mode: Any = "raise") -> Tracer:
    """Elements along an axis, or of the flattened array; repeats add in the gradient.

    Traced indices that are computed and out of range read NaN.
    """
    array, k = with_axis(trace, a, axis)
    picks = _indices(trace, "np.take", indices, array.shape[k], mode)
    values = trace.builder.constant_value(picks.node)
    if values is None:
        return take_along(trace, array, picks, k)
    return take_along(trace, array, np.asarray(values).astype(np.int64) % max(array.shape[k], 1), k)


@function(np.take_along_axis, "arr indices axis")
def take_along_axis(trace: Trace, arr: Any, indices: Any, axis: Any = -1) -> Tracer:
    """Along an axis, one element for each index; the other axes go together.

    Traced indices that are computed and out of range read NaN.
    """
    array, k = with_axis(trace, arr, axis)
    picks = trace.lift(indices)
    if picks.ndim != array.ndim:
        raise ValueError(
            f"buropt.take_along_axis: the array has {array.ndim} axes and the indices have "
            f"{picks.ndim}. {location(trace.name)} Instead: as many axes, 1 where all go together."
        )
    picks = _indices(trace, "np.take_along_axis", picks, array.shape[k], "raise")
    try:
        together = list(np.broadcast_shapes(_without(array.shape, k), _without(picks.shape, k)))
    except ValueError:
        raise ValueError(
            f"buropt.take_along_axis: indices of shape {picks.shape} do not fit an array of shape "
            f"{array.shape} along axis {k}: the other axes must be equal, or 1. "
            f"{location(trace.name)} Instead: np.take, to pick the same elements everywhere."
        ) from None
    trace.indices.require(picks.node, array.shape[k], place(trace.name))
    array = _spread(trace, array, [*together[:k], array.shape[k], *together[k:]])
    picks = _spread(trace, picks, [*together[:k], picks.shape[k], *together[k:]])
    return trace.emit("take_along_axis", (array, picks), {"axis": k}, kind=array.kind)


@function(np.choose, "a choices out mode")
def choose(trace: Trace, a: Any, choices: Any, mode: Any = "raise") -> Tracer:
    """For each position the element of the choice that an integer names; a scalar names it whole.

    This is how a traced integer looks up a row of an array that is not traced.
    """
    array = _table(trace, choices)
    picks = _indices(trace, "np.choose", a, array.shape[0], mode, lowest=0)
    if not trace.indices.require(picks.node, array.shape[0], place(trace.name), lowest=0):
        picks = where(trace, picks < 0, array.shape[0], picks)  # out of range, not from the end
    if picks.ndim == 0:
        return take(trace, array, picks, 0)
    common = list(np.broadcast_shapes(picks.shape, array.shape[1:]))
    added = [1] * (len(common) + 1 - array.ndim)
    array = array.reshape(array.shape[0], *added, *array.shape[1:])
    picks = _spread(trace, picks, common).reshape(1, *common)
    return take_along_axis(trace, _spread(trace, array, [array.shape[0], *common]), picks, 0)[0]


def _table(trace: Trace, choices: Any) -> Tracer:
    """The choices along the first axis of one array."""
    if isinstance(choices, Sequence):
        parts = [trace.lift(choice) for choice in choices]
        shape = list(np.broadcast_shapes(*(part.shape for part in parts)))
        choices = np.stack([_spread(trace, part, shape) for part in parts])
    array = trace.lift(choices)
    axes_of(trace, 0, array.ndim)
    return array


@function(np.compress, "condition a axis out")
def compress(trace: Trace, condition: Any, a: Any, axis: Any = None) -> Tracer:
    """Elements along an axis where a constant mask holds."""
    mask = _constant_mask(trace, "np.compress", condition)
    if mask.ndim != 1:
        raise ValueError(
            f"buropt.compress: the condition must have one axis, got shape {mask.shape}. "
            f"{location(trace.name)} Instead: np.extract, or x[mask]."
        )
    return take(trace, a, mask.nonzero()[0], axis)


@function(np.extract, "condition arr")
def extract(trace: Trace, condition: Any, arr: Any) -> Tracer:
    """The elements where a constant mask holds, in C order."""
    return take(trace, arr, _constant_mask(trace, "np.extract", condition).ravel().nonzero()[0])


def _constant_mask(trace: Trace, name: str, condition: Any) -> NDArray[np.bool_]:
    value = trace.builder.constant_value(trace.lift(condition).node)
    if value is None:
        raise TraceError(
            f"{name}: a traced condition selects an unknown number of elements. "
            f"{location(trace.name)} Instead: np.where(condition, a, b)."
        )
    return np.asarray(value).astype(bool)


def _indices(
    trace: Trace, name: str, indices: Any, extent: int, mode: Any, lowest: int | None = None
) -> Tracer:
    """Integers as an operand; constant ones are checked here, as NumPy checks them."""
    picks = trace.lift(indices)
    if picks.kind == "f":
        raise TraceError(
            f"{name}: the indices are floats. {location(trace.name)} Instead: integers, such as "
            "an integer array among the arguments or data."
        )
    if picks.kind == "b":
        picks = trace.integer(picks)
    if extent == 0 and picks.size > 0:
        raise IndexError(
            f"{name}: there is nothing to take along an axis of extent 0. {location(trace.name)} "
            "Instead: no indices, or an array with elements."
        )
    constant = trace.builder.constant_value(picks.node)
    if mode not in ("raise", "wrap", "clip"):
        raise unsupported_keyword(trace, name, "mode")
    if mode != "raise":
        if constant is None:
            return clip(trace, picks, 0, extent - 1) if mode == "clip" else picks % extent
        values = np.asarray(constant)
        values = np.remainder(values, extent) if mode == "wrap" else np.clip(values, 0, extent - 1)
        return trace.constant(values, "i")
    if constant is not None:
        values = np.asarray(constant)
        lowest = -extent if lowest is None else lowest
        outside = (values < lowest) | (values >= extent)
        if outside.any():
            raise IndexError(
                f"{name}: index {int(values[outside][0])} is out of bounds for an axis of extent "
                f"{extent}. {location(trace.name)} Instead: indices from {lowest} to {extent - 1}."
            )
    return picks


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _spread(trace: Trace, array: Tracer, shape: Sequence[int]) -> Tracer:
    if array.shape == tuple(shape):
        return array
    return trace.emit("broadcast_to", (array,), {"shape": list(shape)}, kind=array.kind)
