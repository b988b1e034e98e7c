"""Rules that move elements or repeat them: rolls, turns, tiles."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import TraceError, location
from buropt.trace.functions._arguments import along, axes_of, extents_of, reshaped, with_axis
from buropt.trace.functions.joining import concatenate
from buropt.trace.functions.picking import take
from buropt.trace.functions.shapes import flip, moveaxis, swapaxes, transpose

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

_matrix_transpose: Any = getattr(np, "matrix_transpose", None)  # from NumPy 2 on


@function(np.roll, "a shift axis")
def roll(trace: Trace, a: Any, shift: Any, axis: Any = None) -> Tracer:
    """Move elements along some axes; those beyond the end come in at the start."""
    array = trace.lift(a)
    if axis is None:
        rolled = _rolled(trace, array.ravel(), sum(extents_of(shift)), 0)
        return rolled.reshape(array.shape)
    shifts, axes = np.broadcast_arrays(extents_of(shift), extents_of(axis))
    for by, one in zip(shifts.tolist(), axes.tolist(), strict=True):
        (k,) = axes_of(trace, one, array.ndim)
        array = _rolled(trace, array, by, k)
    return trace.fresh(array)


def _rolled(trace: Trace, array: Tracer, shift: int, axis: int) -> Tracer:
    extent = array.shape[axis]
    by = shift % extent if extent else 0
    if by == 0:
        return array
    cut = extent - by
    ends = [array[along(axis, slice(cut, None))], array[along(axis, slice(cut))]]
    return concatenate(trace, ends, axis)


@function(np.fft.fftshift, "x axes")
def fftshift(trace: Trace, x: Any, axes: Any = None) -> Tracer:
    """Move the first element to the middle."""
    array = trace.lift(x)
    moved = axes_of(trace, axes, array.ndim)
    return roll(trace, array, [array.shape[k] // 2 for k in moved], moved)


@function(np.fft.ifftshift, "x axes")
def ifftshift(trace: Trace, x: Any, axes: Any = None) -> Tracer:
    """Move the middle element to the start."""
    array = trace.lift(x)
    moved = axes_of(trace, axes, array.ndim)
    return roll(trace, array, [-(array.shape[k] // 2) for k in moved], moved)


@function(np.fliplr, "m")
def fliplr(trace: Trace, m: Any) -> Tracer:
    """Reverse the order along the second axis."""
    return flip(trace, m, 1)


@function(np.flipud, "m")
def flipud(trace: Trace, m: Any) -> Tracer:
    """Reverse the order along the first axis."""
    return flip(trace, m, 0)


@function(np.rot90, "m k axes")
def rot90(trace: Trace, m: Any, k: int = 1, axes: Any = (0, 1)) -> Tracer:
    """Turn by k times 90 degrees, from the first of two axes towards the second."""
    array = trace.lift(m)
    first, second = axes_of(trace, tuple(axes), array.ndim)
    turns = operator.index(k) % 4
    if turns == 2:
        return flip(trace, array, (first, second))
    if turns == 1:
        array = flip(trace, array, second)
    order = list(range(array.ndim))
    if turns:
        order[first], order[second] = second, first
    array = transpose(trace, array, order)
    return flip(trace, array, second) if turns == 3 else array


if _matrix_transpose is not None:

    @function(_matrix_transpose, "x")
    def matrix_transpose(trace: Trace, x: Any) -> Tracer:
        """Exchange the last two axes."""
        return swapaxes(trace, x, -1, -2)


@function(np.rollaxis, "a axis start")
def rollaxis(trace: Trace, a: Any, axis: int, start: int = 0) -> Tracer:
    """Move an axis to the position before another one."""
    array = trace.lift(a)
    (source,) = axes_of(trace, axis, array.ndim)
    position = start + array.ndim if start < 0 else start
    if not 0 <= position <= array.ndim:
        axes_of(trace, start, array.ndim)  # raises
    return moveaxis(trace, array, source, position - (source < position))


@function(np.tile, "A reps")
def tile(trace: Trace, A: Any, reps: Any) -> Tracer:
    """Copies of the array side by side."""
    array, copies = trace.lift(A), extents_of(reps)
    ndim = max(array.ndim, len(copies))
    copies = [1] * (ndim - len(copies)) + copies
    extents = [1] * (ndim - array.ndim) + list(array.shape)
    shape = [n for pair in zip(copies, extents, strict=True) for n in pair]
    single = reshaped(trace, array, [n for extent in extents for n in (1, extent)])
    tiles = trace.emit("broadcast_to", (single,), {"shape": shape}, kind=array.kind)
    sides = [m * n for m, n in zip(copies, extents, strict=True)]
    return trace.fresh(reshaped(trace, tiles, sides))


@function(np.repeat, "a repeats axis")
def repeat(trace: Trace, a: Any, repeats: Any, axis: Any = None) -> Tracer:
    """Each element a number of times, one number for all or one for each."""
    array, k = with_axis(trace, a, axis)
    if isinstance(repeats, type(array)):
        raise TraceError(
            f"np.repeat: a traced number of repeats gives a result of unknown shape. "
            f"{location(trace.name)} Instead: numbers that do not depend on traced values."
        )
    counts = np.asarray(repeats)
    # NumPy says what is wrong with the counts.
    index = np.repeat(np.arange(array.shape[k]), counts)
    if counts.size != 1:
        return take(trace, array, index, k)
    count = int(counts.reshape(()))
    shape = [*array.shape[: k + 1], count, *array.shape[k + 1 :]]
    single = reshaped(trace, array, [*array.shape[: k + 1], 1, *array.shape[k + 1 :]])
    repeated = trace.emit("broadcast_to", (single,), {"shape": shape}, kind=array.kind)
    shape[k : k + 2] = [shape[k] * count]
    return trace.fresh(reshaped(trace, repeated, shape))


@function(np.resize, "a new_shape")
def resize(trace: Trace, a: Any, new_shape: Any) -> Tracer:
    """The elements in C order over and over, until another shape is full."""
    array, shape = trace.lift(a), extents_of(new_shape)
    if any(extent < 0 for extent in shape):
        raise ValueError(
            f"np.resize: the extents in {tuple(shape)} must not be negative. "
            f"{location(trace.name)} Instead: extents of 0 or more."
        )
    size = math.prod(shape)
    if array.size == 0:
        zero = trace.constant(0.0, array.kind)
        return trace.emit("broadcast_to", (zero,), {"shape": shape}, kind=array.kind)
    copies = tile(trace, array.ravel(), -(-size // array.size))
    return trace.fresh(copies[:size].reshape(shape))
