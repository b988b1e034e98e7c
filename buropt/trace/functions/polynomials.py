"""Rules for polynomials given by their coefficients, the highest first."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions.joining import concatenate, stack

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@function(np.polyval, "p x")
def polyval(trace: Trace, p: Any, x: Any) -> Any:
    """The value at x, by Horner's rule."""
    at = trace.lift(x)
    result: Any = np.zeros_like(at)
    for coefficient in trace.lift(p):
        result = result * at + coefficient
    return result


@function(np.vander, "x N increasing")
def vander(trace: Trace, x: Any, N: Any = None, increasing: bool = False) -> Tracer:
    """The matrix whose columns are powers of x."""
    array = trace.lift(x)
    if array.ndim != 1:
        raise ValueError(
            f"np.vander: an array of shape {array.shape} is not a vector. "
            f"{location(trace.name)} Instead: x.ravel()."
        )
    n = array.size if N is None else operator.index(N)
    powers = [array**k for k in range(max(n, 1))]  # at least one, for its kind
    return stack(trace, powers if increasing else powers[::-1], 1)[:, :n]


@function(np.polyder, "p m")
def polyder(trace: Trace, p: Any, m: Any = 1) -> Any:
    """The m-th derivative of a polynomial."""
    coefficients: Any = trace.lift(p)
    for _ in range(operator.index(m)):
        coefficients = coefficients[:-1] * np.arange(coefficients.size - 1, 0, -1)
    return trace.fresh(coefficients)


@function(np.polyint, "p m k")
def polyint(trace: Trace, p: Any, m: Any = 1, k: Any = None) -> Any:
    """The m-th antiderivative of a polynomial, with constants of integration `k`."""
    n = operator.index(m)
    if n == 0:
        return trace.fresh(trace.lift(p))
    constants: Any = trace.lift(np.zeros(n) if k is None else k).reshape(-1)
    if constants.size == 1 and n > 1:
        constants = np.broadcast_to(constants, (n,))
    if constants.size < n:
        raise ValueError(
            f"np.polyint: {constants.size} constants for {n} integrations. "
            f"{location(trace.name)} Instead: one constant for each, or one number for all."
        )
    coefficients: Any = trace.number(trace.lift(p))
    for i in range(n):
        integrated = coefficients / np.arange(coefficients.size, 0, -1)
        coefficients = concatenate(trace, [integrated, constants[i : i + 1]], 0)
    return trace.fresh(coefficients)


@function(np.polyadd, "a1 a2")
def polyadd(trace: Trace, a1: Any, a2: Any) -> Any:
    """The sum of two polynomials."""
    left, right = _of_one_length(trace, a1, a2)
    return left + right


@function(np.polysub, "a1 a2")
def polysub(trace: Trace, a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
    left, right = _of_one_length(trace, a1, a2)
    return left - right


def _of_one_length(trace: Trace, a1: Any, a2: Any) -> list[Tracer]:
    pair = [trace.lift(a).reshape(-1) for a in (a1, a2)]
    n = max(a.size for a in pair)
    zeros = [trace.constant(np.zeros(n - a.size), "b") for a in pair]
    return [
        concatenate(trace, [zero, a], 0) if zero.size else a
        for zero, a in zip(zeros, pair, strict=True)
    ]
