"""Rules for NumPy functions that are not ufuncs: one row each, in terms of a few nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function, is_graph_dtype, unsupported, unsupported_keyword
from buropt.trace.errors import TraceError, location
from buropt.trace.ufuncs import as_mask, matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

_AXIS_ERROR = getattr(np, "exceptions", np).AxisError  # its home moved in NumPy 1.25


# Reductions


@function(np.sum, "a axis dtype out keepdims initial where")
def sum_(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The sum over some axes; a mask is counted."""
    array = trace.lift(a)
    axes = _axes(trace, axis, array.ndim)
    return trace.emit("sum", (array,), {"axes": axes, "keepdims": int(keepdims)})


@function(np.mean, "a axis dtype out keepdims where")
def mean(trace: Trace, a: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
    """The mean over some axes."""
    array = trace.lift(a)
    count = math.prod(array.shape[k] for k in _axes(trace, axis, array.ndim))
    total = sum_(trace, array, axis, keepdims)
    return trace.emit("divide", (total, trace.constant(float(count))))


# Products


@function(np.dot, "a b out")
def dot(trace: Trace, a: Any, b: Any) -> Tracer:
    """Vectors and matrices as `a @ b`; a scalar operand multiplies."""
    left, right = trace.lift(a), trace.lift(b)
    if left.ndim == 0 or right.ndim == 0:
        product: Tracer = left * right
        return product
    return matmul(trace, left, right)


@function(np.inner, "a b")
def inner(trace: Trace, a: Any, b: Any) -> Tracer:
    """The sum of products over the last axes."""
    left, right = trace.lift(a), trace.lift(b)
    return dot(trace, left, right.T if right.ndim == 2 else right)


@function(np.vdot, "a b")
def vdot(trace: Trace, a: Any, b: Any) -> Tracer:
    """The dot product of the flattened operands."""
    return dot(trace, trace.lift(a).ravel(), trace.lift(b).ravel())


@function(np.outer, "a b out")
def outer(trace: Trace, a: Any, b: Any) -> Tracer:
    """All products of two flattened operands."""
    left, right = trace.lift(a), trace.lift(b)
    product: Tracer = left.reshape(-1, 1) * right.reshape(1, -1)
    return product


# Selection


@function(np.where, "condition x y")
def where(trace: Trace, condition: Any, x: Any = None, y: Any = None) -> Tracer:
    """`x` where the condition holds, `y` elsewhere; the branch not taken contributes nothing."""
    if x is None or y is None:
        raise unsupported(trace, "np.where with a condition only")
    mask = as_mask(trace, trace.lift(condition))
    yes, no = trace.lift(x), trace.lift(y)
    return trace.emit("where", (mask, yes, no), is_bool=yes.is_bool and no.is_bool)


@function(np.clip, "a a_min a_max out min max")
def clip(
    trace: Trace, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None
) -> Tracer:
    """Limit to [a_min, a_max]; on the border itself the derivative is 1."""
    array = trace.lift(a)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    # A NaN stays, be it in the array (not equal to itself) or in a bound (compares false).
    if low is not None:
        array = where(trace, (array >= low) | (array != array), array, low)
    if high is not None:
        array = where(trace, (array <= high) | (array != array), array, high)
    return trace.fresh(array)


# Shape


@function(np.reshape, "a shape order copy")
def reshape(trace: Trace, a: Any, shape: Any, order: Any = "C") -> Tracer:
    """The same elements in C order with another shape; one extent may be -1."""
    _check_order(trace, "np.reshape", order)
    array = trace.lift(a)
    wanted = _extents(shape)
    known = math.prod(extent for extent in wanted if extent != -1)
    fits = known == array.size
    if wanted.count(-1) == 1:
        fits = known > 0 and array.size % known == 0
        wanted = [array.size // known if extent == -1 else extent for extent in wanted]
    if not fits or any(extent < 0 for extent in wanted):
        raise ValueError(
            f"buropt.reshape: an array of shape {array.shape} has {array.size} elements and does "
            f"not fit into shape {tuple(_extents(shape))}. {location(trace.name)}"
        )
    return _reshaped(trace, array, wanted)


@function(np.ravel, "a order")
def ravel(trace: Trace, a: Any, order: Any = "C") -> Tracer:
    """All elements in C order."""
    _check_order(trace, "np.ravel", order)
    array = trace.lift(a)
    return _reshaped(trace, array, [array.size])


@function(np.expand_dims, "a axis")
def expand_dims(trace: Trace, a: Any, axis: Any) -> Tracer:
    """Insert axes of extent 1."""
    array = trace.lift(a)
    n_new = len(axis) if isinstance(axis, tuple | list) else 1
    new = _axes(trace, axis, array.ndim + n_new)
    old = iter(array.shape)
    shape = [1 if k in new else next(old) for k in range(array.ndim + n_new)]
    return _reshaped(trace, array, shape)


@function(np.squeeze, "a axis")
def squeeze(trace: Trace, a: Any, axis: Any = None) -> Tracer:
    """Remove axes of extent 1."""
    array = trace.lift(a)
    ones = [k for k, extent in enumerate(array.shape) if extent == 1]
    removed = ones if axis is None else _axes(trace, axis, array.ndim)
    if not set(removed) <= set(ones):
        raise ValueError(
            f"buropt.squeeze: axis {axis} of an array of shape {array.shape} does not have extent "
            f"1. {location(trace.name)}"
        )
    shape = [extent for k, extent in enumerate(array.shape) if k not in removed]
    return _reshaped(trace, array, shape)


@function(np.atleast_1d, "*arys")
def atleast_1d(trace: Trace, arys: Sequence[Any]) -> Any:
    """Give scalars one axis."""
    arrays = [trace.lift(array) for array in arys]
    arrays = [array.reshape(1) if array.ndim == 0 else array for array in arrays]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


@function(np.atleast_2d, "*arys")
def atleast_2d(trace: Trace, arys: Sequence[Any]) -> Any:
    """Give scalars and vectors axes in front."""
    arrays = [trace.lift(array) for array in arys]
    arrays = [array.reshape(1, -1) if array.ndim < 2 else array for array in arrays]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


@function(np.transpose, "a axes")
def transpose(trace: Trace, a: Any, axes: Any = None) -> Tracer:
    """Permute the axes; reverse them if no order is given."""
    array = trace.lift(a)
    order = list(range(array.ndim))[::-1] if axes is None else _axes(trace, axes, array.ndim)
    if len(order) != array.ndim:
        raise ValueError(
            f"buropt.transpose: axes {tuple(axes)} do not match an array of shape {array.shape}. "
            f"{location(trace.name)}"
        )
    if order == list(range(array.ndim)):
        return trace.view(array, array)
    result = trace.emit("transpose", (array,), {"axes": order}, is_bool=array.is_bool)
    return trace.view(result, array)


@function(np.swapaxes, "a axis1 axis2")
def swapaxes(trace: Trace, a: Any, axis1: int, axis2: int) -> Tracer:
    """Exchange two axes."""
    array = trace.lift(a)
    order = list(range(array.ndim))
    (i,), (j,) = _axes(trace, axis1, array.ndim), _axes(trace, axis2, array.ndim)
    order[i], order[j] = j, i
    return transpose(trace, array, order)


@function(np.moveaxis, "a source destination")
def moveaxis(trace: Trace, a: Any, source: Any, destination: Any) -> Tracer:
    """Move axes to other positions; the others keep their order."""
    array = trace.lift(a)
    old, new = _axes(trace, source, array.ndim), _axes(trace, destination, array.ndim)
    if len(old) != len(new):
        raise ValueError(
            f"buropt.moveaxis: source {source} and destination {destination} differ in length. "
            f"{location(trace.name)}"
        )
    order = [k for k in range(array.ndim) if k not in old]
    for to, axis in sorted(zip(new, old, strict=True)):
        order.insert(to, axis)
    return transpose(trace, array, order)


@function(np.flip, "m axis")
def flip(trace: Trace, m: Any, axis: Any = None) -> Tracer:
    """Reverse the order along some axes."""
    array = trace.lift(m)
    reverse = _axes(trace, axis, array.ndim)
    return array[tuple(slice(None, None, -1 if k in reverse else 1) for k in range(array.ndim))]


@function(np.broadcast_to, "array shape subok")
def broadcast_to(trace: Trace, array: Any, shape: Any) -> Tracer:
    """Repeat along new axes and axes of extent 1."""
    base = trace.lift(array)
    attributes = {"shape": _extents(shape)}
    result = trace.emit("broadcast_to", (base,), attributes, is_bool=base.is_bool)
    return trace.view(result, base)


# Joining


@function(np.concatenate, "arrays axis out dtype casting")
def concatenate(trace: Trace, arrays: Any, axis: Any = 0, dtype: Any = None) -> Tracer:
    """Join arrays along an axis that they have."""
    parts = _parts(trace, arrays)
    if axis is None:
        parts, axis = [part.ravel() for part in parts], 0
    if any(part.ndim == 0 for part in parts):
        raise ValueError(
            "buropt.concatenate: a value of shape () has no axis to join along. "
            f"{location(trace.name)} Instead: np.stack([...])."
        )
    (k,) = _axes(trace, axis, parts[0].ndim)
    all_masks = all(part.is_bool for part in parts)
    is_bool = _is_mask_dtype(trace, "np.concatenate", dtype, all_masks)
    if is_bool and not all_masks:  # NumPy refuses this cast as well
        raise unsupported_keyword(trace, "np.concatenate", "dtype")
    return trace.emit("concatenate", parts, {"axis": k}, is_bool=is_bool)


@function(np.stack, "arrays axis out dtype casting")
def stack(trace: Trace, arrays: Any, axis: int = 0, dtype: Any = None) -> Tracer:
    """Join arrays of one shape along a new axis."""
    parts = _parts(trace, arrays)
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"buropt.stack: all arrays must have the same shape, got {sorted(shapes)}. "
            f"{location(trace.name)}"
        )
    return concatenate(trace, [expand_dims(trace, part, axis) for part in parts], axis, dtype)


@function(np.vstack, "tup dtype casting")
def vstack(trace: Trace, tup: Any, dtype: Any = None) -> Tracer:
    """Join as rows."""
    return concatenate(trace, [atleast_2d(trace, (part,)) for part in _parts(trace, tup)], 0, dtype)


@function(np.hstack, "tup dtype casting")
def hstack(trace: Trace, tup: Any, dtype: Any = None) -> Tracer:
    """Join along the second axis, vectors along their only one."""
    parts = [atleast_1d(trace, (part,)) for part in _parts(trace, tup)]
    return concatenate(trace, parts, 0 if parts[0].ndim == 1 else 1, dtype)


@function(np.column_stack, "tup")
def column_stack(trace: Trace, tup: Any) -> Tracer:
    """Join vectors as columns."""
    parts = [part if part.ndim > 1 else part.reshape(-1, 1) for part in _parts(trace, tup)]
    return concatenate(trace, parts, 1)


# Copies and constants


@function(np.copy, "a order subok")
def copy(trace: Trace, a: Any) -> Tracer:
    """The same values in memory of their own."""
    return trace.fresh(trace.lift(a))


@function(np.zeros_like, "a dtype order subok shape device")
def zeros_like(trace: Trace, a: Any, dtype: Any = None, shape: Any = None) -> Tracer:
    """Zeros of the same shape; of a mask, a mask."""
    return full_like(trace, a, 0.0, dtype, shape)


@function(np.ones_like, "a dtype order subok shape device")
def ones_like(trace: Trace, a: Any, dtype: Any = None, shape: Any = None) -> Tracer:
    """Ones of the same shape; of a mask, a mask."""
    return full_like(trace, a, 1.0, dtype, shape)


@function(np.full_like, "a fill_value dtype order subok shape device")
def full_like(
    trace: Trace, a: Any, fill_value: Any, dtype: Any = None, shape: Any = None
) -> Tracer:
    """One value everywhere, cast to the dtype of `a`; it may be traced."""
    array, fill = trace.lift(a), trace.lift(fill_value)
    is_bool = _is_mask_dtype(trace, "np.full_like", dtype, array.is_bool)
    extents = list(array.shape) if shape is None else _extents(shape)
    value = as_mask(trace, fill) if is_bool else fill
    return trace.emit("broadcast_to", (value,), {"shape": extents}, is_bool=is_bool)


@function(np.shape, "a")
def shape_(trace: Trace, a: Any) -> tuple[int, ...]:
    """The shape, a plain tuple."""
    return trace.lift(a).shape


@function(np.ndim, "a")
def ndim(trace: Trace, a: Any) -> int:
    """The number of axes, a plain int."""
    return trace.lift(a).ndim


@function(np.size, "a axis")
def size(trace: Trace, a: Any, axis: Any = None) -> int:
    """The number of elements, a plain int."""
    array = trace.lift(a)
    return math.prod(array.shape[k] for k in _axes(trace, axis, array.ndim))


def _reshaped(trace: Trace, array: Tracer, shape: Sequence[int]) -> Tracer:
    if tuple(shape) == array.shape:
        return trace.view(array, array)
    result = trace.emit("reshape", (array,), {"shape": list(shape)}, is_bool=array.is_bool)
    return trace.view(result, array)


def _check_order(trace: Trace, name: str, order: Any) -> None:
    """Refuse "A" and "K" too: they would depend on the memory layout that the array had."""
    if order not in ("C", None):
        raise unsupported_keyword(trace, name, "order")


def _is_mask_dtype(trace: Trace, name: str, dtype: Any, default: bool) -> bool:
    """Whether a result of that `dtype=` is a mask; only bool and the graph's dtype exist."""
    if dtype is None:
        return default
    if is_graph_dtype(trace, dtype):
        return False
    if dtype is bool or dtype is np.bool_:
        return True
    raise unsupported_keyword(trace, name, "dtype")


def _parts(trace: Trace, arrays: Any) -> list[Tracer]:
    parts = [trace.lift(part) for part in arrays]
    if not parts:
        raise TraceError(f"there are no arrays to join. {location(trace.name)}")
    return parts


def _extents(shape: Any) -> list[int]:
    """A shape argument, an integer or a sequence of them, as a list."""
    if isinstance(shape, tuple | list):
        return [operator.index(extent) for extent in shape]
    return [operator.index(shape)]


def _axes(trace: Trace, axis: Any, ndim: int) -> list[int]:
    """An axis argument, None, an integer or a sequence, as a list of distinct axes."""
    if axis is None:
        return list(range(ndim))
    axes = [operator.index(k) for k in (axis if isinstance(axis, tuple | list) else (axis,))]
    for k in axes:
        if not -ndim <= k < ndim:
            raise _AXIS_ERROR(
                f"axis {k} is out of bounds for an array with {ndim} axes. {location(trace.name)}"
            )
    axes = [k % ndim for k in axes]
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis {axis} names an axis twice. {location(trace.name)}")
    return axes
