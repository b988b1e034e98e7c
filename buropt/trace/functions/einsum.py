"""The rule for `np.einsum`: diagonals, transposes, matrix products and sums."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.functions._subscripts import Labels, read_subscripts, refuse
from buropt.trace.functions.diagonals import diagonal
from buropt.trace.ufuncs import cast, matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.einsum, "subscripts *operands")
def einsum(trace: Trace, subscripts: Any, operands: Sequence[Any], optimize: Any = False) -> Tracer:
    """Sums of products by index letters, such as ``"ij,j->i"``, two operands at a time."""
    arrays, labels, output = read_subscripts(trace, subscripts, operands)
    terms = [_without_repeats(trace, array, own) for array, own in zip(arrays, labels, strict=True)]
    terms = _without_broadcasts(trace, terms)
    kept = set(output)
    if len(terms) == 1:
        array, own = terms[0]
        if set(own) <= kept:
            return array.transpose([own.index(label) for label in output])
    masks_only = all(array.is_bool for array, _ in terms)
    if masks_only:  # NumPy: "and" for products and "or" for sums
        terms = [(cast(trace, array, "i"), own) for array, own in terms]
    if len(terms) == 1:
        result, own = _sum_away(*terms[0], kept)
    else:
        result, own = _contract(trace, terms, output)
    result = result.transpose([own.index(label) for label in output])
    return trace.fresh(cast(trace, result, "b") if masks_only else result)


_Term = tuple["Tracer", Labels]


def _without_repeats(trace: Trace, array: Tracer, labels: Labels) -> _Term:
    """Axes with the same label become their diagonal."""
    while len(set(labels)) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        if array.shape[i] != array.shape[j]:
            refuse(
                trace,
                f"the index {label} stands for axes of extents {array.shape[i]} and "
                f"{array.shape[j]} of one operand",
            )
        array = diagonal(trace, array, 0, i, j)
        labels = [*labels[:i], *labels[i + 1 : j], *labels[j + 1 :], label]
    return array, labels


def _without_broadcasts(trace: Trace, terms: list[_Term]) -> list[_Term]:
    """Axes of extent 1 that another operand has with more are left out."""
    extents: dict[str, int] = {}
    for array, labels in terms:
        for label, extent in zip(labels, array.shape, strict=True):
            seen = extents.setdefault(label, extent)
            if seen == 1:
                extents[label] = extent
            elif extent not in (1, seen):
                name = "an ellipsis" if label.startswith(".") else f"the index {label}"
                refuse(trace, f"{name} stands for axes of extents {seen} and {extent}")
    result = []
    for array, labels in terms:
        own = [
            label
            for label, extent in zip(labels, array.shape, strict=True)
            if extent == extents[label]
        ]
        if len(own) < len(labels):
            array = array.reshape([extents[label] for label in own])
        result.append((array, own))
    return result


def _contract(trace: Trace, terms: list[_Term], output: Labels) -> _Term:
    """Multiply two terms at a time, in an order that keeps the work small."""
    for positions in _path(terms, output):
        chosen = [terms[k] for k in positions]
        terms = [term for k, term in enumerate(terms) if k not in positions]
        product = chosen[0]
        for i, other in enumerate(chosen[1:], start=2):
            rest = [labels for _, labels in [*terms, *chosen[i:]]]
            product = _pair(trace, product, other, {*output}.union(*rest))
        terms.append(product)
    return terms[0]


def _path(terms: list[_Term], output: Labels) -> list[tuple[int, ...]]:
    """Which terms to multiply in each step; the product becomes the last term."""
    names = sorted({label for _, labels in terms for label in labels})
    if len(terms) == 2 or len(names) > len(string.ascii_letters):
        return [(0, 1)] * (len(terms) - 1)
    letters = dict(zip(names, string.ascii_letters, strict=False))
    inputs = ",".join("".join(letters[label] for label in labels) for _, labels in terms)
    text = f"{inputs}->{''.join(letters[label] for label in output)}"
    dummies = [np.broadcast_to(0.0, array.shape) for array, _ in terms]
    return list(np.einsum_path(text, *dummies, optimize="greedy")[0][1:])


def _pair(trace: Trace, left: _Term, right: _Term, kept: set[str]) -> _Term:
    """The product of two terms, summed over labels that nothing else has."""
    a, of_a = _sum_away(*left, kept.union(right[1]))
    b, of_b = _sum_away(*right, kept.union(of_a))
    shared = [label for label in of_a if label in of_b]
    inside = [label for label in shared if label not in kept]
    batch = [label for label in shared if label in kept]
    rows = [label for label in of_a if label not in shared]
    columns = [label for label in of_b if label not in shared]
    order = batch + rows + columns
    if not inside or (batch and not rows and not columns):
        product = _aligned(a, of_a, order + inside) * _aligned(b, of_b, order + inside)
        return _sum_away(product, order + inside, kept)
    extents = dict(zip(of_a + of_b, a.shape + b.shape, strict=True))
    product = matmul(
        trace,
        _as_matrices(a, of_a, batch, rows, inside),
        _as_matrices(b, of_b, batch, inside, columns),
    )
    return product.reshape([extents[label] for label in order]), order


def _sum_away(array: Tracer, labels: Labels, kept: Iterable[str]) -> _Term:
    axes = tuple(k for k, label in enumerate(labels) if label not in kept)
    if not axes:
        return array, labels
    return array.sum(axis=axes), [label for label in labels if label in kept]


def _as_matrices(
    array: Tracer, labels: Labels, batch: Labels, rows: Labels, columns: Labels
) -> Tracer:
    """The operand of a product of stacks of matrices; without a stack, it may be a vector."""
    moved = array.transpose([labels.index(label) for label in batch + rows + columns])
    extents = dict(zip(labels, array.shape, strict=True))
    groups = [group for group in (rows, columns) if group or batch]
    sides = [math.prod(extents[label] for label in group) for group in groups]
    return moved.reshape([extents[label] for label in batch] + sides)


def _aligned(array: Tracer, labels: Labels, order: Labels) -> Tracer:
    """The operand with one axis for each label of `order`, of extent 1 where it has none."""
    own = [label for label in order if label in labels]
    moved = array.transpose([labels.index(label) for label in own])
    extents = dict(zip(labels, array.shape, strict=True))
    return moved.reshape([extents.get(label, 1) for label in order])
