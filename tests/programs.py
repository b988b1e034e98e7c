"""Random little programs of NumPy calls, for `test_compositions.py`.

A program is a list of steps on a growing list of arrays. Every step is a row of `CALLS`: how to
draw its parameters for operands of given shapes, and the call itself, which takes the module to
find NumPy's functions in, so that the same program runs on NumPy, autograd and tracers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

MOST_ELEMENTS = 60
LARGEST = 8.0  # values are kept below it, so that nothing is lost to rounding


@dataclass(frozen=True)
class Call:
    """One kind of step.

    Attributes
    ----------
    run : callable
        ``run(np, *arrays, **parameters)``.
    arity : int
    draw : callable or None
        ``draw(draw, *shapes)`` gives the parameters, or None where the call does not apply.
    """

    run: Callable[..., Any]
    arity: int = 1
    draw: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Program:
    """Shapes of the inputs, and steps: (name of the call, numbers of the operands, parameters)."""

    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...]

    def __call__(self, module: Any, *inputs: Any) -> Any:
        """Run on arrays of any kind; gives one number that depends on the last few values."""
        values = list(inputs)
        for name, operands, parameters in self.steps:
            values.append(CALLS[name].run(module, *(values[k] for k in operands), **parameters))
        used = {k for _, operands, _ in self.steps for k in operands}
        loose = [k for k in range(len(values)) if k not in used]
        total = 0.0
        for k in loose:
            weights = np.cos(1.0 + k + np.arange(math.prod(np.shape(values[k]))))
            total = total + module.sum(values[k] * weights.reshape(np.shape(values[k])))
        return total


# ---- parameters


def axis_of(draw, *shapes):
    rank = len(shapes[0])
    return {"axis": draw(st.integers(-rank, rank - 1))} if rank else None


def reduction(draw, shape):
    if 0 in shape:
        return None
    axes = draw(st.sets(st.integers(0, len(shape) - 1))) if shape else set()
    axis = None if not axes else draw(st.sampled_from([tuple(axes), min(axes)]))
    return {"axis": axis, "keepdims": draw(st.booleans())}


def one_axis(draw, shape):
    if not shape or 0 in shape:
        return None
    axis = draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    return {"axis": axis}


def broadcastable(draw, *shapes):
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return None
    return {} if math.prod(shape) <= MOST_ELEMENTS else None


def new_shape(draw, shape):
    size = math.prod(shape)
    if size == 0:
        return {"shape": (0, 1)}
    rows = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    forms = [(rows, size // rows), (size,), (rows, -1), (1, size // rows, rows)]
    return {"shape": draw(st.sampled_from(forms))}


def permutation(draw, shape):
    return {"axes": tuple(draw(st.permutations(range(len(shape)))))}


def wider_shape(draw, shape):
    target = [draw(st.integers(1, 3)) if n == 1 else n for n in shape]
    target = [draw(st.integers(1, 2))] * draw(st.integers(0, 1)) + target
    return {"shape": tuple(target)} if math.prod(target) <= MOST_ELEMENTS else None


def basic_index(draw, shape):
    if not shape:
        return None
    key = []
    for n in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["slice", "slice", "integer", "all"] if n else ["slice"]))
        if kind == "integer":
            key.append(draw(st.integers(-n, n - 1)))
        elif kind == "all":
            key.append(slice(None))
        else:
            start, stop = (draw(st.one_of(st.none(), st.integers(-n, n))) for _ in range(2))
            key.append(slice(start, stop, draw(st.sampled_from([None, 1, 2, -1, -2]))))
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), None)
    return {"key": tuple(key)}


def picked(draw, shape):
    if not shape or 0 in shape:
        return None
    axis = draw(st.integers(0, len(shape) - 1))
    n = shape[axis]
    index = draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=5))
    if math.prod(shape) // n * len(index) > MOST_ELEMENTS:
        return None
    return {"indices": np.array(index), "axis": axis}


def masked(draw, shape):
    if not shape or 0 in shape:
        return None
    mask = draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0]))
    return {"mask": np.array(mask, bool)}


def same_shapes(draw, *shapes):
    rank = len(shapes[0])
    if len(set(shapes)) > 1 or len(shapes) * math.prod(shapes[0]) > MOST_ELEMENTS:
        return None
    return {"axis": draw(st.integers(-rank - 1, rank))}


def joinable(draw, a, b):
    if not a or len(a) != len(b) or math.prod(a) + math.prod(b) > MOST_ELEMENTS:
        return None
    axes = [k for k in range(len(a)) if a[:k] + a[k + 1 :] == b[:k] + b[k + 1 :]]
    return {"axis": draw(st.sampled_from(axes))} if axes else None


def product(draw, a, b):
    if not (1 <= len(a) <= 2 and 1 <= len(b) <= 2 and a[-1] == b[0]):
        return None
    return {} if math.prod(a[:-1] + b[1:]) <= MOST_ELEMENTS else None


def small(draw, *shapes):
    return {} if math.prod(math.prod(shape) for shape in shapes) <= MOST_ELEMENTS else None


def matrix(draw, *shapes):
    return {} if all(len(shape) == 2 for shape in shapes) else None


def doubled(draw, shape):
    return axis_of(draw, shape) if 2 * math.prod(shape) <= MOST_ELEMENTS else None


def contracted(draw, a, b):
    pairs = [(i, j) for i in range(len(a)) for j in range(len(b)) if a[i] == b[j] > 0]
    if not pairs:
        return None
    i, j = draw(st.sampled_from(pairs))
    size = math.prod(a[:i] + a[i + 1 :] + b[:j] + b[j + 1 :])
    return {"axes": ([i], [j])} if size <= MOST_ELEMENTS else None


def small_matrices(draw, a, b):
    return small(draw, a, b) if len(a) == len(b) == 2 else None


def square_part(draw, shape):
    """The size of the largest square part of a matrix."""
    return {"n": min(shape)} if len(shape) == 2 and 0 < min(shape) < 5 else None


def at_least_two(draw, shape):
    axes = [k for k, n in enumerate(shape) if n > 1]
    return {"axis": draw(st.sampled_from(axes))} if axes and 0 not in shape else None


# ---- calls


def unary(function: Callable[..., Any]) -> Call:
    return Call(function)


def binary(function: Callable[..., Any]) -> Call:
    return Call(function, 2, broadcastable)


CALLS: dict[str, Call] = {
    "tanh": unary(lambda np, x: np.tanh(x)),
    "squash": unary(lambda np, x: x / np.sqrt(1 + (0.25 * x) ** 2)),
    "sin": unary(lambda np, x: np.sin(x)),
    "cos": unary(lambda np, x: np.cos(x)),
    "exp": unary(lambda np, x: np.exp(-(x**2))),
    "expm1": unary(lambda np, x: np.expm1(0.2 * x)),
    "log": unary(lambda np, x: np.log(1.5 + x * x)),
    "log1p": unary(lambda np, x: np.log1p(x**2)),
    "sqrt": unary(lambda np, x: np.sqrt(0.3 + x**2)),
    "abs": unary(lambda np, x: np.abs(x)),
    "negative": unary(lambda np, x: -x),
    "reciprocal": unary(lambda np, x: 1 / (2 + np.sin(x))),
    "square": unary(lambda np, x: np.square(x)),
    "cube": unary(lambda np, x: x**3),
    "power -1.5": unary(lambda np, x: (1 + x**2) ** -1.5),
    "arctan": unary(lambda np, x: np.arctan(x)),
    "sinh": unary(lambda np, x: np.sinh(0.3 * x)),
    "arcsinh": unary(lambda np, x: np.arcsinh(x)),
    "softplus": unary(lambda np, x: np.logaddexp(0.0, x)),
    "clip": unary(lambda np, x: np.clip(x, -0.7, 0.9)),
    "add": binary(lambda np, a, b: a + b),
    "subtract": binary(lambda np, a, b: np.subtract(a, b)),
    "multiply": binary(lambda np, a, b: a * b),
    "divide": binary(lambda np, a, b: a / (2.0 + np.cos(b))),
    "power": binary(lambda np, a, b: (1.2 + np.tanh(a)) ** np.tanh(b)),
    "maximum": binary(lambda np, a, b: np.maximum(a, b)),
    "minimum": binary(lambda np, a, b: np.minimum(a, b)),
    "logaddexp": binary(lambda np, a, b: np.logaddexp(a, b)),
    "arctan2": binary(lambda np, a, b: np.arctan2(a, 2.5 + np.sin(b))),
    "where": Call(lambda np, c, a, b: np.where(c > 0.1, a, b), 3, broadcastable),
    "sum": Call(lambda np, x, **k: np.sum(x, **k), 1, reduction),
    "mean": Call(lambda np, x, **k: np.mean(x, **k), 1, reduction),
    "max": Call(lambda np, x, **k: np.max(x, **k), 1, reduction),
    "min": Call(lambda np, x, **k: np.min(x, **k), 1, reduction),
    "ptp": Call(lambda np, x, axis: np.max(x, axis) - np.min(x, axis), 1, one_axis),
    "prod": Call(lambda np, x, axis: np.prod(1.0 + 0.1 * x, axis), 1, one_axis),
    "cumsum": Call(lambda np, x, axis: np.cumsum(x, axis), 1, one_axis),
    "diff": Call(lambda np, x, axis: np.diff(x, axis=axis), 1, at_least_two),
    "var": Call(lambda np, x, axis: np.var(x, axis), 1, one_axis),
    "std": Call(lambda np, x, axis: np.sqrt(0.1 + np.var(x, axis)), 1, one_axis),
    "sort": Call(lambda np, x, axis: np.sort(x, axis), 1, at_least_two),
    "roll": Call(lambda np, x, axis: np.roll(x, 2, axis), 1, axis_of),
    "repeat": Call(lambda np, x, axis: np.repeat(x, 2, axis=axis), 1, doubled),
    "tile": Call(lambda np, x, axis: np.tile(x, 2), 1, doubled),
    "tril": Call(lambda np, x: np.tril(x), 1, matrix),
    "triu": Call(lambda np, x: np.triu(x), 1, matrix),
    "tensordot": Call(lambda np, a, b, axes: np.tensordot(a, b, axes), 2, contracted),
    "reshape": Call(lambda np, x, shape: np.reshape(x, shape), 1, new_shape),
    "ravel": unary(lambda np, x: np.ravel(x)),
    "transpose": Call(lambda np, x, axes: np.transpose(x, axes), 1, permutation),
    "swapaxes": Call(lambda np, x, axis: np.swapaxes(x, axis, 0), 1, axis_of),
    "expand_dims": unary(lambda np, x: np.expand_dims(x, 0)),
    "squeeze": unary(lambda np, x: np.squeeze(x)),
    "broadcast_to": Call(lambda np, x, shape: np.broadcast_to(x, shape), 1, wider_shape),
    "flip": Call(lambda np, x, axis: np.flip(x, axis), 1, axis_of),
    "concatenate": Call(lambda np, a, b, axis: np.concatenate([a, b], axis), 2, joinable),
    "stack": Call(lambda np, a, b, axis: np.stack([a, b], axis=axis), 2, same_shapes),
    "index": Call(lambda np, x, key: x[key], 1, basic_index),
    "take": Call(lambda np, x, indices, axis: np.take(x, indices, axis), 1, picked),
    "index by integers": Call(
        lambda np, x, indices, axis: x[(slice(None),) * axis + (indices,)], 1, picked
    ),
    "index by a mask": Call(lambda np, x, mask: x[mask], 1, masked),
    "matmul": Call(lambda np, a, b: a @ b, 2, product),
    "dot": Call(lambda np, a, b: np.dot(a, b), 2, product),
    "product with the transpose": Call(lambda np, a: a @ a.T, 1, matrix),
    "outer": Call(lambda np, a, b: np.outer(a, b), 2, small),
    "einsum": Call(
        lambda np, a, b: np.einsum("ik,jk->ij", a, b),
        2,
        lambda draw, a, b: {} if len(a) == len(b) == 2 and a[1:] == b[1:] else None,
    ),
    "kron": Call(lambda np, a, b: np.kron(a, b), 2, small_matrices),
    "trace": Call(lambda np, a, n: np.trace(a), 1, square_part),
    "inv": Call(
        lambda np, a, n: np.linalg.inv(3 * np.eye(n) + 0.3 * np.tanh(a[:n, :n])), 1, square_part
    ),
    "det": Call(
        lambda np, a, n: np.linalg.det(np.eye(n) + 0.3 * np.tanh(a[:n, :n])), 1, square_part
    ),
}

# ---- programs


@st.composite
def programs(draw, most_steps: int = 30) -> Program:
    """A program whose values stay moderate, tried out on the inputs of `inputs_of`."""
    shapes = tuple(
        draw(st.lists(st.lists(st.integers(1, 4), max_size=3).map(tuple), min_size=1, max_size=3))
    )
    values = [np.asarray(one) for one in inputs_of(shapes, 0)]
    steps: list[tuple[str, tuple[int, ...], dict[str, Any]]] = []

    def append(name: str, operands: tuple[int, ...], parameters: dict[str, Any]) -> None:
        with np.errstate(all="ignore"):
            result = CALLS[name].run(np, *(values[k] for k in operands), **parameters)
        values.append(np.asarray(result))
        steps.append((name, operands, parameters))

    for _ in range(draw(st.integers(1, most_steps))):
        name = draw(st.sampled_from(sorted(CALLS)))
        call = CALLS[name]
        last = len(values) - 1
        for _ in range(3):  # operands for which the call exists
            operands = tuple(max(0, last - draw(st.integers(0, 6))) for _ in range(call.arity))
            shapes_now = [values[k].shape for k in operands]
            parameters = {} if call.draw is None else call.draw(draw, *shapes_now)
            if parameters is not None:
                break
        else:
            continue
        append(name, operands, parameters)
        if np.max(np.abs(values[-1]), initial=0) > LARGEST:
            append("squash", (len(values) - 1,), {})
    return Program(shapes, tuple(steps))


def inputs_of(shapes: tuple[tuple[int, ...], ...], layout: int, seed: int = 0) -> list[Any]:
    """Random inputs; by `layout` contiguous, or views with other strides."""
    rng = np.random.default_rng(seed)
    result = []
    for shape in shapes:
        array = rng.uniform(-1.5, 1.5, shape)
        if layout == 1 and shape:
            array = np.asfortranarray(array)
        elif layout == 2 and shape:
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        elif layout == 3 and shape:
            array = np.ascontiguousarray(array[::-1])[::-1]
        result.append(array)
    return result
