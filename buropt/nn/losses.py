"""Losses of classification and regression."""

from __future__ import annotations

import operator
from typing import Literal, TypeAlias

import numpy as np

from buropt.nn._operands import Array, as_array, trace_of, where
from buropt.nn.activations import log_softmax, softplus
from buropt.trace.errors import place

Reduction: TypeAlias = Literal["mean", "sum", "none"]


def cross_entropy(logits: Array, labels: Array, reduction: Reduction = "mean") -> Array:
    """Softmax cross-entropy with integer labels: log(sum(exp(logits))) - logits[label].

    Parameters
    ----------
    logits : array, shape (..., C)
    labels : array of integers 0 to C - 1, shape (...)
        A label out of range raises `IndexError` if its value is known, and makes the loss NaN if it
        is only known when the traced function runs.
    reduction : "mean", "sum" or "none"
        Over all labels; "none" gives a loss for each, shape (...).

    Raises
    ------
    TypeError
        If the labels are not integers.
    ValueError
        If the shapes do not fit.
    """
    logits = as_array(logits)
    labels = _labels("cross_entropy", labels, logits)
    if logits.ndim == 0 or labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"buropt.nn.cross_entropy: logits of shape {logits.shape} need labels of shape "
            f"{logits.shape[:-1]}, one for each row, got {labels.shape}.{where(logits, labels)}"
        )
    _check_range("cross_entropy", labels, logits.shape[-1], logits)
    trace = trace_of(logits, labels)
    if trace is not None:
        operands = (trace.lift(logits), trace.lift(labels))
        losses: Array = trace.emit("softmax_cross_entropy", operands)
    else:
        picked = np.take_along_axis(log_softmax(logits), labels[..., None], axis=-1)
        losses = -picked[..., 0]
    return _reduced("cross_entropy", losses, reduction)


def binary_cross_entropy_with_logits(
    logits: Array, targets: Array, reduction: Reduction = "mean"
) -> Array:
    """-t log(sigmoid(z)) - (1 - t) log(sigmoid(-z)) of logits z and targets t in [0, 1].

    Parameters
    ----------
    logits, targets : arrays of one shape
    reduction : "mean", "sum" or "none"
        Over all elements.
    """
    _check_same("binary_cross_entropy_with_logits", logits, targets)
    losses = softplus(logits) - targets * logits
    return _reduced("binary_cross_entropy_with_logits", losses, reduction)


def mse(predictions: Array, targets: Array, reduction: Reduction = "mean") -> Array:
    """The squared error (prediction - target)^2.

    Parameters
    ----------
    predictions, targets : arrays of one shape
    reduction : "mean", "sum" or "none"
        Over all elements.
    """
    _check_same("mse", predictions, targets)
    return _reduced("mse", np.square(predictions - targets), reduction)


def one_hot(labels: Array, n: int) -> Array:
    """Rows of zeros with a one at the label, shape (..., n).

    A label out of range is treated as by `cross_entropy`: `IndexError`, or a row of NaN.
    """
    n = operator.index(n)
    labels = _labels("one_hot", labels)
    _check_range("one_hot", labels, n)
    trace = trace_of(labels)
    if trace is not None:
        return trace.emit("one_hot", (labels,), {"n": n})
    return np.eye(n)[labels]


def _labels(name: str, labels: Array, *others: Array) -> Array:
    """Integers, traced or not; the other operands tell where it is."""
    trace = trace_of(labels)
    array: Array = np.asarray(labels) if trace is None else trace.lift(labels)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"buropt.nn.{name}: labels must be integers, got dtype {array.dtype}."
            f"{where(labels, *others)} Instead: an integer array, e.g. labels.astype(np.int64)."
        )
    return array


def _check_range(name: str, labels: Array, n: int, *others: Array) -> None:
    """Raise IndexError for labels out of range, now or when data are bound."""
    trace = trace_of(labels)
    if trace is not None:
        trace.indices.require(labels.node, n, place(trace.name), lowest=0)
        return
    wrong = labels[(labels < 0) | (labels >= n)]
    if wrong.size > 0:
        raise IndexError(
            f"buropt.nn.{name}: label {wrong.flat[0]} is not in 0..{n - 1}.{where(*others)}"
        )


def _check_same(name: str, a: Array, b: Array) -> None:
    shapes = as_array(a).shape, as_array(b).shape
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"buropt.nn.{name}: the arrays have shapes {shapes[0]} and {shapes[1]}, which must be "
            f"equal.{where(a, b)} Instead: reshape one of them, e.g. with x[..., 0]."
        )


def _reduced(name: str, losses: Array, reduction: Reduction) -> Array:
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise ValueError(
            f"buropt.nn.{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}"
        )
    return np.mean(losses) if reduction == "mean" else np.sum(losses)
