"""Reading the subscripts of `np.einsum`: strings, lists of integers, ellipses."""

from __future__ import annotations

import operator
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from buropt.trace.errors import location

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

# One name for each axis: a letter, or "...k" for the axis that is k-th from the end of those that
# an ellipsis stands for.
Labels = list[str]

_LETTERS = string.ascii_uppercase + string.ascii_lowercase  # in NumPy's order, 0 to 51
_ELLIPSIS = "..."


def read_subscripts(
    trace: Trace, subscripts: Any, operands: Sequence[Any]
) -> tuple[list[Tracer], list[Labels], Labels]:
    """The operands, the label of each of their axes, and the labels of the result.

    Raises
    ------
    ValueError
        If NumPy would not take the subscripts for these operands either.
    """
    if isinstance(subscripts, str):
        arrays = [trace.lift(operand) for operand in operands]
        text = subscripts.replace(" ", "")
        left, arrow, right = text.partition("->")
        inputs = [_split(trace, term) for term in left.split(",")]
        output = _split(trace, right) if arrow else None
    else:  # operand, list, operand, list ..., and perhaps a list for the result
        items = [subscripts, *operands]
        n_operands = len(items) // 2
        arrays = [trace.lift(item) for item in items[: 2 * n_operands : 2]]
        inputs = [_from_list(trace, item) for item in items[1 : 2 * n_operands : 2]]
        output = _from_list(trace, items[-1]) if len(items) % 2 else None
    if len(inputs) != len(arrays):
        refuse(trace, f"subscripts for {len(inputs)} operands, but there are {len(arrays)}")
    labels = [
        _expand(trace, term, array.ndim, array.shape)
        for term, array in zip(inputs, arrays, strict=True)
    ]
    dots = max((_dots(term) for term in labels), key=len)
    if output is None:
        everything = [label for term in labels for label in term if label not in dots]
        once = sorted(label for label in set(everything) if everything.count(label) == 1)
        return arrays, labels, dots + once
    if _ELLIPSIS in output:
        at = output.index(_ELLIPSIS)
        result = output[:at] + dots + output[at + 1 :]
    elif dots:
        refuse(trace, "an ellipsis stands for axes that the result does not name; add ... to it")
    else:
        result = output
    known = {label for term in labels for label in term}
    for label in result:
        if label not in known:
            refuse(trace, f"the result has the index {label}, which no operand has")
        if result.count(label) > 1:
            refuse(trace, f"the result has the index {label} twice")
    return arrays, labels, result


def refuse(trace: Trace, what: str) -> NoReturn:
    """Raise for subscripts that are wrong in NumPy, too."""
    raise ValueError(
        f"np.einsum: {what}. "
        f"{location(trace.name)} Instead: a letter for each axis, as in 'ij,jk->ik'."
    )


def _split(trace: Trace, term: str) -> Labels:
    before, dots, after = term.partition(_ELLIPSIS)
    labels = [*before, *([_ELLIPSIS] if dots else []), *after]
    for label in labels:
        if label != _ELLIPSIS and label not in _LETTERS:
            refuse(trace, f"{label!r} in {term!r} is neither a letter nor part of one ellipsis")
    return labels


def _from_list(trace: Trace, items: Any) -> Labels:
    labels = []
    for item in items:
        if item is Ellipsis:
            labels.append(_ELLIPSIS)
            continue
        number = operator.index(item)
        if not 0 <= number < len(_LETTERS):
            refuse(trace, f"the subscript {number} is not between 0 and {len(_LETTERS) - 1}")
        labels.append(_LETTERS[number])
    if labels.count(_ELLIPSIS) > 1:
        refuse(trace, "a list of subscripts has two ellipses")
    return labels


def _expand(trace: Trace, term: Labels, ndim: int, shape: tuple[int, ...]) -> Labels:
    """One label for each axis."""
    n_letters = len(term) - term.count(_ELLIPSIS)
    fits = n_letters <= ndim if _ELLIPSIS in term else n_letters == ndim
    if not fits:
        text = "".join(term)
        refuse(trace, f"the subscripts {text!r} do not fit an operand of shape {shape}")
    if _ELLIPSIS not in term:
        return term
    at = term.index(_ELLIPSIS)
    dots = [f"{_ELLIPSIS}{k}" for k in range(ndim - n_letters, 0, -1)]
    return term[:at] + dots + term[at + 1 :]


def _dots(labels: Labels) -> Labels:
    return [label for label in labels if label.startswith(_ELLIPSIS)]
