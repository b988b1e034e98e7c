"""Norms and extreme eigenvalues of data as bounds: the largest from above, the smallest from below.

A factor covers rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from buropt.data.dataset import is_sparse

DENSE_LIMIT = 1024  # matrices up to this size: all eigenvalues (50 ms); larger ones: Lanczos
LANCZOS_TOLERANCE = 1e-8
LANCZOS_SAFETY = 1e-6


def squared_norms(A: Any, axis: int) -> NDArray[np.float64]:
    """|a|^2, from above, of all rows (axis 1) or columns (axis 0) of A."""
    squares = A.multiply(A).sum(axis=axis) if is_sparse(A) else (A * A).sum(axis=axis)
    return np.asarray(squares).ravel() * (1 + _rounding(A.shape[axis]))


def is_small(dim: int) -> bool:
    """Whether matrices of this size are formed and decomposed."""
    return dim <= DENSE_LIMIT


def top_gram_eigenvalue(A: Any) -> float:
    """lambda_max(A'A), from above, for a dense or sparse float64 matrix (rows, dim).

    Works on the smaller of A'A and A A'. Beyond `DENSE_LIMIT` by Lanczos, whose value lies below
    the eigenvalue by a relative error far under `LANCZOS_SAFETY`.
    """
    if A.shape[0] < A.shape[1]:
        A = A.T
    if min(A.shape) <= DENSE_LIMIT:
        return top_eigenvalue(gram(A))
    if abs(A).max() == 0:  # no start vector is any good
        return 0.0
    operator = spla.LinearOperator(
        shape=(A.shape[1], A.shape[1]), matvec=lambda v: A.T @ (A @ v), dtype=np.dtype(np.float64)
    )
    start = np.random.Generator(np.random.Philox(0)).standard_normal(A.shape[1])
    (value,) = spla.eigsh(
        operator, k=1, which="LA", v0=start, tol=LANCZOS_TOLERANCE, return_eigenvectors=False
    )
    return float(value) * (1 + LANCZOS_SAFETY)


def gram(A: Any) -> NDArray[np.float64]:
    """A'A as a dense matrix."""
    product = A.T @ A
    return np.asarray(product.toarray() if is_sparse(product) else product, dtype=np.float64)


def top_eigenvalue(H: NDArray[np.float64]) -> float:
    """Largest absolute eigenvalue of a symmetric matrix, from above."""
    eigenvalues = np.linalg.eigvalsh(H)
    return max(abs(float(eigenvalues[0])), abs(float(eigenvalues[-1]))) * (1 + _rounding(len(H)))


def bottom_eigenvalue(H: NDArray[np.float64]) -> float:
    """Smallest eigenvalue of a symmetric matrix, from below; 0.0 if it may not be positive."""
    eigenvalues = np.linalg.eigvalsh(H)
    value = float(eigenvalues[0]) - float(eigenvalues[-1]) * _rounding(len(H))
    return max(value, 0.0)


def is_positive_semidefinite(H: NDArray[np.float64]) -> bool:
    """Whether a symmetric matrix has no negative eigenvalue, up to rounding."""
    eigenvalues = np.linalg.eigvalsh(H)
    return bool(eigenvalues[0] >= -abs(eigenvalues[-1]) * _rounding(len(H)))


def _rounding(dim: int) -> float:
    """Relative error, with room to spare, of a sum or an eigenvalue of this size."""
    return 4 * dim * float(np.finfo(np.float64).eps)
