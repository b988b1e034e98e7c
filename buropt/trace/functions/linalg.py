"""Rules for `np.linalg`: systems of equations, inverses, determinants, Cholesky factors.

All of them take stacks (..., n, n). A matrix is factored once: `lu` is a node of its own, which
`solve`, `inv`, `det` and `slogdet` of the same matrix share.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from buropt.trace.dispatch import function
from buropt.trace.errors import location
from buropt.trace.functions.shapes import moveaxis, swapaxes
from buropt.trace.ufuncs import matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


class SlogdetResult(NamedTuple):
    """What `np.linalg.slogdet` returns, with NumPy's names."""

    sign: Tracer
    logabsdet: Tracer


class EighResult(NamedTuple):
    """What `np.linalg.eigh` returns, with NumPy's names."""

    eigenvalues: Tracer
    eigenvectors: Tracer


@function(np.linalg.solve, "a b")
def solve(trace: Trace, a: Any, b: Any) -> Tracer:
    """The x with a x = b; b is a vector if it has one axis, else matrices, as in NumPy 2."""
    matrix, right = square(trace, "np.linalg.solve", a), trace.lift(b)
    n, is_vector = matrix.shape[-1], right.ndim == 1
    if right.ndim == 0 or right.shape[0 if is_vector else -2] != n:
        raise np.linalg.LinAlgError(
            f"np.linalg.solve: a of shape {matrix.shape} and b of shape {right.shape} do not fit. "
            f"{location(trace.name)} Instead: b of shape ({n},) for one vector, or (..., {n}, k)."
        )
    columns = right.reshape(n, 1) if is_vector else right
    result = trace.emit("solve", (matrix, _factors(trace, matrix), columns))
    return result.squeeze(-1) if is_vector else result


@function(np.linalg.inv, "a")
def inv(trace: Trace, a: Any) -> Tracer:
    """The inverse."""
    matrix = square(trace, "np.linalg.inv", a)
    return trace.emit("inv", (matrix, _factors(trace, matrix)))


@function(np.linalg.det, "a")
def det(trace: Trace, a: Any) -> Tracer:
    """The determinant; its derivatives are right for singular matrices too."""
    matrix = square(trace, "np.linalg.det", a)
    return trace.emit("det", (matrix, _factors(trace, matrix)))


@function(np.linalg.slogdet, "a")
def slogdet(trace: Trace, a: Any) -> SlogdetResult:
    """Sign and log of the magnitude of the determinant; the sign's derivative is 0."""
    matrix = square(trace, "np.linalg.slogdet", a)
    factors = _factors(trace, matrix)
    sign = trace.emit("sign_det", (factors,))
    return SlogdetResult(sign, trace.emit("logabsdet", (matrix, factors)))


@function(np.linalg.cholesky, "a upper")
def cholesky(trace: Trace, a: Any, upper: bool = False) -> Tracer:
    """The lower factor, which reads the lower triangle of a alone; `upper` for the upper ones."""
    matrix = square(trace, "np.linalg.cholesky", a)
    if upper:
        return transposed(trace, cholesky(trace, transposed(trace, matrix)))
    return trace.emit("cholesky", (matrix,))


@function(np.linalg.eigh, "a UPLO")
def eigh(trace: Trace, a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices, of which one triangle is read."""
    matrix = _symmetric(trace, "np.linalg.eigh", a, UPLO)
    operands = (matrix, trace.emit("eigh", (matrix,)))
    return EighResult(trace.emit("eigvalsh", operands), trace.emit("eigvecsh", operands))


@function(np.linalg.eigvalsh, "a UPLO")
def eigvalsh(trace: Trace, a: Any, UPLO: str = "L") -> Tracer:
    """The eigenvalues of symmetric matrices, ascending."""
    matrix = _symmetric(trace, "np.linalg.eigvalsh", a, UPLO)
    return trace.emit("eigvalsh", (matrix, trace.emit("eigh", (matrix,))))


def _symmetric(trace: Trace, name: str, a: Any, uplo: str) -> Tracer:
    matrix = square(trace, name, a)
    if uplo not in ("L", "U", "l", "u"):
        raise ValueError(
            f"{name}: UPLO is {uplo!r}. {location(trace.name)} Instead: 'L' or 'U', the triangle "
            "to read."
        )
    return matrix if uplo in ("L", "l") else transposed(trace, matrix)


@function(np.linalg.matrix_power, "a n")
def matrix_power(trace: Trace, a: Any, n: Any) -> Tracer:
    """The n-th power for a constant integer n, by repeated squaring; of the inverse if n < 0."""
    base, exponent = square(trace, "np.linalg.matrix_power", a), operator.index(n)
    if exponent == 0:
        one = np.broadcast_to(np.eye(base.shape[-1]), base.shape)
        return trace.constant(one, base.kind)
    if exponent < 0:
        base, exponent = inv(trace, base), -exponent
    result: Tracer | None = None
    while exponent:
        if exponent % 2:
            result = base if result is None else matmul(trace, result, base)
        exponent //= 2
        if exponent:
            base = matmul(trace, base, base)
    assert result is not None
    return trace.fresh(result)


@function(np.linalg.tensorinv, "a ind")
def tensorinv(trace: Trace, a: Any, ind: int = 2) -> Tracer:
    """The inverse of a as a map from its last axes to its first `ind` axes."""
    array = trace.lift(a)
    if ind <= 0:
        raise ValueError(f"np.linalg.tensorinv: ind is {ind}, not positive. {location(trace.name)}")
    rows = math.prod(array.shape[:ind])
    return inv(trace, array.reshape(rows, -1)).reshape(array.shape[ind:] + array.shape[:ind])


@function(np.linalg.tensorsolve, "a b axes")
def tensorsolve(trace: Trace, a: Any, b: Any, axes: Any = None) -> Tracer:
    """The x with `np.tensordot(a, x, x.ndim)` equal to b."""
    array, right = trace.lift(a), trace.lift(b)
    if axes is not None:
        array = moveaxis(trace, array, axes, tuple(range(array.ndim - len(axes), array.ndim)))
    flat = array.reshape(right.size, -1)
    return solve(trace, flat, right.ravel()).reshape(array.shape[right.ndim :])


def square(trace: Trace, name: str, a: Any) -> Tracer:
    """The operand, checked to be a square matrix or a stack of them."""
    matrix = trace.lift(a)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise np.linalg.LinAlgError(
            f"{name}: an array of shape {matrix.shape} is not a square matrix. "
            f"{location(trace.name)} Instead: an array of shape (n, n), or (..., n, n) for a stack."
        )
    return matrix


def transposed(trace: Trace, matrix: Tracer) -> Tracer:
    """The matrices in the last two axes, transposed."""
    return swapaxes(trace, matrix, -1, -2)


def _factors(trace: Trace, matrix: Tracer) -> Tracer:
    return trace.emit("lu", (matrix,))
