"""Rows of the table in `primitive_rows.py`: what runs along axes, and products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from primitive_rows import Example, Row


def _sum(x: Any, axes: Any, keepdims: int = 0) -> Any:
    return np.sum(x, axis=tuple(axes), keepdims=bool(keepdims))


def _backwards(function: Callable[..., Any]) -> Callable[..., Any]:
    """A scan that can run from the other end, and leave the element of its own place out."""

    def reference(x: Any, axis: int, reverse: int, exclusive: int = 0) -> Any:
        x = np.flip(x, axis) if reverse else x
        if exclusive:
            ends = np.split(x, [x.shape[axis] - 1], axis)
            x = np.concatenate([np.ones_like(ends[1]), ends[0]], axis)
        y = function(x, axis=axis)
        return np.flip(y, axis) if reverse else y

    return reference


def _with_zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(-2, 2, shape) * (rng.random(shape) < 0.6)


def _matmul(a: Any, b: Any, transpose_a: int = 0, transpose_b: int = 0, sum_stack: int = 0) -> Any:
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b.swapaxes(-1, -2) if transpose_b else b
    return np.sum(a @ b, axis=tuple(range(a.ndim - 2))) if sum_stack else a @ b


def _stacks() -> tuple[Example, ...]:
    """Products of stacks of matrices: transposed or not, broadcast, summed, with vectors."""
    transposed = [{"transpose_a": i, "transpose_b": j} for i in (0, 1) for j in (0, 1)]
    a, b = {0: (3, 4), 1: (4, 3)}, {0: (4, 2), 1: (2, 4)}
    stacks = [((5,), (5,)), ((), (5,)), ((5,), ()), ((3, 1), (2,)), ((1,), (1, 1))]
    examples = [
        Example(((*of_a, *a[form["transpose_a"]]), (*of_b, *b[form["transpose_b"]])), form)
        for form in transposed
        for of_a, of_b in stacks
    ]
    summed = [{**form, "sum_stack": 1} for form in transposed]
    examples += [
        Example(((5, *a[form["transpose_a"]]), (5, *b[form["transpose_b"]])), form)
        for form in summed
    ]
    vectors = [((4,), (5, 4, 2)), ((2, 5, 3, 4), (4,)), ((5, 1, 4), (5, 4, 1)), ((5, 3, 1), (1, 2))]
    others = [((3, 4), (5, 4, 1)), ((5, 0, 4), (4, 2)), ((0, 3, 4), (0, 4, 2)), ((2, 3, 0), (0, 2))]
    return (*examples, *(Example(shapes) for shapes in vectors + others))


def picks(n: int) -> Callable[..., Any]:
    """Indices into n places, some of them counted from the end."""
    return lambda rng, shape: rng.integers(-n, n, shape)


def _reduction(function: Callable[..., Any]) -> Row:
    """A row for a function over axes."""

    def reference(x: Any, axes: Any, keepdims: int) -> Any:
        return function(x, axis=tuple(axes), keepdims=bool(keepdims))

    return Row(
        reference,
        (
            Example(((3, 4),), {"axes": [0, 1], "keepdims": 0}),
            Example(((2, 3, 4),), {"axes": [1], "keepdims": 0}),
            Example(((2, 3, 4),), {"axes": [0, 2], "keepdims": 1}),
            Example(((100,),), {"axes": [0], "keepdims": 0}),
        ),
        ((Example(((3,),), {"axes": [1], "keepdims": 0}), function.__name__),),
    )


def _arg_reduction(function: Callable[..., Any]) -> Row:
    """A row for the place of an extremum, over one axis or all."""

    def reference(x: Any, axes: Any, keepdims: int) -> Any:
        axis = None if len(axes) == x.ndim else axes[0]
        return function(x, axis=axis, keepdims=bool(keepdims))

    return Row(
        reference,
        (
            Example(((3, 4),), {"axes": [0, 1], "keepdims": 0}),
            Example(((2, 3, 4),), {"axes": [1], "keepdims": 1}),
            Example(((100,),), {"axes": [0], "keepdims": 0}),
        ),
        ((Example(((3,),), {"axes": [1], "keepdims": 0}), function.__name__),),
        constant=True,
    )


_MATRICES = ((3, 4), (4, 2))

AXES_ROWS: dict[str, Row] = {
    "sum": Row(
        _sum,
        (
            Example(((3, 4),), {"axes": [0, 1], "keepdims": 0}),
            Example(((2, 3, 4),), {"axes": [1], "keepdims": 0}),
            Example(((2, 3, 4),), {"axes": [0, 2], "keepdims": 1}),
            Example(((300,),), {"axes": [0], "keepdims": 0}),
            Example(((0, 3),), {"axes": [0], "keepdims": 0}),
        ),
        ((Example(((3,),), {"axes": [1], "keepdims": 0}), "sum"),),
    ),
    "argsort": Row(
        lambda x, axis: np.argsort(x, axis=axis, kind="stable"),
        (
            Example(((2, 5, 3),), {"axis": 1}),
            Example((((30,), _with_zeros),), {"axis": 0}),
            Example(((3, 0),), {"axis": 1}),
        ),
        ((Example(((3,),), {"axis": 1}), "argsort: axis 1 is out of range"),),
        constant=True,
    ),
    "take": Row(
        lambda x, indices, axis: np.take(x, indices.astype(int), axis),
        (
            Example(((5, 3), ((4,), picks(5))), {"axis": 0}),
            Example(((2, 5), ((2, 3), picks(5))), {"axis": 1}),
            Example(((4,), ((), picks(4))), {"axis": 0}),
        ),
        ((Example(((5,), (2,)), {"axis": 1}), "take"),),
        indices=(1,),
    ),
    "take_along_axis": Row(
        lambda x, indices, axis: np.take_along_axis(x, indices.astype(int), axis),
        (
            Example(((5, 3), ((2, 3), picks(5))), {"axis": 0}),
            Example(((2, 4), ((2, 6), picks(4))), {"axis": 1}),
        ),
        ((Example(((5, 3), (2, 2)), {"axis": 0}), r"take_along_axis.*must differ only along"),),
        indices=(1,),
    ),
    **{name: _reduction(getattr(np, name)) for name in ("max", "min")},
    "prod": replace(
        _reduction(np.prod),
        examples=(
            Example((((3, 4), _with_zeros),), {"axes": [0, 1], "keepdims": 0}),
            Example((((2, 3, 4), _with_zeros),), {"axes": [1], "keepdims": 0}),
            Example((((2, 3, 2), _with_zeros),), {"axes": [0, 2], "keepdims": 1}),
            Example(((40,),), {"axes": [0], "keepdims": 0}),
            Example(((0, 3),), {"axes": [0], "keepdims": 0}),
        ),
    ),
    "cumsum": Row(
        _backwards(np.cumsum),
        (
            Example(((2, 3, 4),), {"axis": 1, "reverse": 0}),
            Example(((5,),), {"axis": 0, "reverse": 1}),
            Example(((0, 3),), {"axis": 0, "reverse": 0}),
        ),
        ((Example(((3,),), {"axis": 1, "reverse": 0}), "cumsum: axis 1 is out of range"),),
    ),
    "cumprod": Row(
        _backwards(np.cumprod),
        (
            *(
                Example(((shape, _with_zeros),), {"axis": axis, "reverse": i, "exclusive": j})
                for i in (0, 1)
                for j in (0, 1)
                for shape, axis in (((2, 4, 3), 1), ((5,), 0))
            ),
            Example(((0, 3),), {"axis": 0, "reverse": 0, "exclusive": 1}),
        ),
        (
            (
                Example(((3,),), {"axis": 1, "reverse": 0, "exclusive": 0}),
                "cumprod: axis 1 is out of range",
            ),
        ),
    ),
    **{name: _arg_reduction(getattr(np, name)) for name in ("argmax", "argmin")},
    "matmul": Row(
        _matmul,
        (
            Example(_MATRICES),
            Example(((4, 3), (2, 4)), {"transpose_a": 1, "transpose_b": 1}),
            Example(((3, 4), (4,))),
            Example(((4,), (4, 3))),
            Example(((4,), (4,))),
            Example(((1, 1), (1, 3))),
            *_stacks(),
        ),
        (
            (Example(((3, 4), (3, 4))), r"inner sizes differ: a is \(3, 4\), b is \(3, 4\)"),
            (Example(((2, 3, 4), (3, 4, 1))), r"in front of .* a is \(2, 3, 4\), b is \(3, 4, 1\)"),
            (Example(((), (3,))), "scalars multiply with"),
        ),
    ),
}
