"""Rules for covariances and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import TraceError, location
from buropt.trace.functions.diagonals import diagonal
from buropt.trace.functions.selection import clip

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.cov, "m y rowvar bias ddof fweights aweights dtype")
def cov(
    trace: Trace,
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Tracer:
    """The covariance matrix of variables, a row each, from observations, a column each."""
    X = _variables(trace, "np.cov", m, rowvar)
    if y is not None:
        other = _variables(trace, "np.cov", y, True)
        X = np.concatenate([X, other if rowvar or other.shape[0] == 1 else other.T])
    n = X.shape[1]
    weights: Any = None
    for given in (fweights, aweights):
        if given is None:
            continue
        one = trace.lift(given)
        if one.shape != (n,):
            raise ValueError(
                f"np.cov: weights of shape {one.shape} for {n} observations. "
                f"{location(trace.name)} Instead: one weight for each observation."
            )
        weights = one if weights is None else weights * one
    off = ddof if ddof is not None else int(not bias)
    total: Any
    if weights is None:
        total, factor = trace.constant(float(n)), trace.constant(float(n - off))
        weighted = X
    else:
        total = np.sum(weights)
        factor = total - off
        if aweights is not None and off:
            factor = total - off * np.sum(weights * aweights) / total
        weighted = X * weights
    centered = X - np.sum(weighted, axis=1, keepdims=True) / total
    right = (centered if weights is None else centered * weights).T
    # As in NumPy, too few observations give no finite number.
    result = (centered @ right) / np.maximum(factor, 0.0)
    return trace.fresh(result.squeeze())


def _variables(trace: Trace, name: str, m: Any, rowvar: bool) -> Any:
    array = trace.number(trace.lift(m))
    if array.ndim > 2:
        raise ValueError(
            f"{name}: an array of shape {array.shape} has more than 2 axes. "
            f"{location(trace.name)} Instead: a matrix with a row for each variable."
        )
    if array.ndim < 2:
        return array.reshape(1, -1)
    return array if rowvar else array.T


@function(np.corrcoef, "x y rowvar dtype")
def corrcoef(trace: Trace, x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """The correlation coefficients of variables, limited to [-1, 1] against rounding."""
    c = cov(trace, x, y, rowvar)
    if c.ndim == 0:
        return c / c
    deviations = np.sqrt(diagonal(trace, c))
    return clip(trace, c / deviations[:, None] / deviations[None, :], -1, 1)


@function(np.bincount, "x weights minlength")
def bincount(trace: Trace, x: Any, weights: Any = None, minlength: int = 0) -> Tracer:
    """The sum of the weights of each integer: sums over segments."""
    integers = trace.lift(x)
    constant = trace.builder.constant_value(integers.node)
    if constant is None or weights is None:
        raise TraceError(
            f"np.bincount: a traced list of integers gives a result of unknown length. "
            f"{location(trace.name)} Instead: np.sum(w[:, None] * (x[:, None] == np.arange(n)), 0)."
        )
    values = trace.number(trace.lift(weights))
    if integers.kind == "f" or integers.ndim != 1 or values.shape != integers.shape:
        raise ValueError(
            f"np.bincount: x of shape {integers.shape} and weights of shape {values.shape} are "
            f"not vectors of one length, x of integers. "
            f"{location(trace.name)} Instead: a weight for each integer."
        )
    numbers = np.asarray(constant)
    if np.any(numbers < 0):
        raise ValueError(
            f"np.bincount: x has negative elements. "
            f"{location(trace.name)} Instead: integers from 0 on."
        )
    n = max([minlength, *(numbers + 1).astype(int).tolist()])
    return trace.emit("take_vjp", (values, integers), {"axis": 0, "shape": [n]})
