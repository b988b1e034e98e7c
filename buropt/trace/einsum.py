"""The rule for `np.einsum` of one or two operands: transposes, a matrix product, a sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import UnsupportedOpError, location

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.einsum, "subscripts *operands")
def einsum(trace: Trace, subscripts: Any, operands: Sequence[Any]) -> Tracer:
    """Sums of products by index letters, such as ``"ij,j->i"``."""
    if not isinstance(subscripts, str):
        _refuse(trace, "index lists", "a string such as 'ij,j->i'")
    arrays = [trace.lift(operand) for operand in operands]
    inputs, output = _parse(trace, subscripts, arrays)
    permutes = len(arrays) == 1 and len(inputs[0]) == len(output)
    if all(array.is_bool for array in arrays) and not permutes:
        _refuse(trace, "a product or sum of masks alone, in NumPy again a mask,", "1.0 * mask")
    if len(arrays) == 1:
        return _reduce(trace, arrays[0], inputs[0], output)
    (a, b), (of_a, of_b) = arrays, inputs
    # Letters of one operand alone that the result does not have are summed first.
    a, of_a = _sum_away(trace, a, of_a, of_b + output)
    b, of_b = _sum_away(trace, b, of_b, of_a + output)
    inside = [letter for letter in of_a if letter in of_b and letter not in output]
    batch = [letter for letter in of_a if letter in of_b and letter in output]
    rows = [letter for letter in of_a if letter not in of_b]
    columns = [letter for letter in of_b if letter not in of_a]
    if inside and not batch:
        result = _as_matrix(a, of_a, rows, inside) @ _as_matrix(b, of_b, inside, columns)
        extents = dict(zip(of_a + of_b, a.shape + b.shape, strict=True))
        order = rows + columns
        result = result.reshape([extents[letter] for letter in order])
    else:
        order = batch + rows + columns + inside
        product = _aligned(a, of_a, order) * _aligned(b, of_b, order)
        result = product.sum(axis=tuple(range(len(order) - len(inside), len(order))))
        order = batch + rows + columns
    return trace.fresh(result.transpose([order.index(letter) for letter in output]))


def _parse(
    trace: Trace, subscripts: str, arrays: list[Tracer]
) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand and of the result."""
    text = subscripts.replace(" ", "")
    if "." in text:
        _refuse(trace, f"the ellipsis in {subscripts!r}", "one letter for each axis")
    left, arrow, right = text.partition("->")
    inputs = [list(part) for part in left.split(",")]
    if len(arrays) > 2:
        _refuse(trace, f"{len(arrays)} operands", "one np.einsum for each pair of operands")
    if any(len(set(letters)) < len(letters) for letters in inputs):
        _refuse(
            trace,
            f"a letter repeated within an operand in {subscripts!r}",
            "np.sum(a * np.eye(n)) for a trace",
        )
    if [len(letters) for letters in inputs] != [array.ndim for array in arrays]:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(
            f"buropt.einsum: {subscripts!r} does not fit operands of shapes {shapes}. "
            f"{location(trace.name)}"
        )
    extents: dict[str, int] = {}
    for letters, array in zip(inputs, arrays, strict=True):
        for letter, extent in zip(letters, array.shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                raise ValueError(
                    f"buropt.einsum: index {letter} of {subscripts!r} has extents "
                    f"{extents[letter]} and {extent}. {location(trace.name)}"
                )
    everything = [letter for letters in inputs for letter in letters]
    implied = sorted(letter for letter in everything if everything.count(letter) == 1)
    output = list(right) if arrow else implied
    if not set(output) <= set(everything) or len(set(output)) < len(output):
        raise ValueError(
            f"buropt.einsum: the result of {subscripts!r} names an index twice or one "
            f"that no operand has. {location(trace.name)}"
        )
    return inputs, output


def _reduce(trace: Trace, array: Tracer, letters: list[str], output: list[str]) -> Tracer:
    array, letters = _sum_away(trace, array, letters, output)
    return trace.fresh(array.transpose([letters.index(letter) for letter in output]))


def _sum_away(
    trace: Trace, array: Tracer, letters: list[str], kept: list[str]
) -> tuple[Tracer, list[str]]:
    axes = tuple(k for k, letter in enumerate(letters) if letter not in kept)
    if not axes:
        return array, letters
    return array.sum(axis=axes), [letter for letter in letters if letter in kept]


def _as_matrix(array: Tracer, letters: list[str], rows: list[str], columns: list[str]) -> Tracer:
    """The operand of a matrix product, a vector if one group of letters is empty."""
    moved = array.transpose([letters.index(letter) for letter in rows + columns])
    extents = dict(zip(letters, array.shape, strict=True))
    groups = [math.prod(extents[letter] for letter in group) for group in (rows, columns) if group]
    return moved.reshape(groups)


def _aligned(array: Tracer, letters: list[str], order: list[str]) -> Tracer:
    """The operand with one axis for each letter of `order`, of extent 1 where it has none."""
    own = [letter for letter in order if letter in letters]
    moved = array.transpose([letters.index(letter) for letter in own])
    extents = dict(zip(letters, array.shape, strict=True))
    return moved.reshape([extents.get(letter, 1) for letter in order])


def _refuse(trace: Trace, what: str, instead: str) -> NoReturn:
    raise UnsupportedOpError(
        f"np.einsum: {what} cannot be traced. {location(trace.name)} Instead: {instead}."
    )
