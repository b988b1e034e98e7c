"""Symmetric matrices as vectors of their upper triangles.

Entries off the diagonal are multiplied by sqrt(2), so that the Euclidean norm of the vector is the
Frobenius norm of the matrix, and a compressor of vectors means the same for both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt import _core

Array = NDArray[np.floating[Any]]


def triangle_size(dim: int) -> int:
    """The number d(d+1)/2 of entries."""
    return dim * (dim + 1) // 2


def triangle(matrices: Array) -> Array:
    """Upper triangles (..., d(d+1)/2) of symmetric (..., d, d), off the diagonal times sqrt(2)."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    factors = np.where(rows == columns, 1.0, math.sqrt(2)).astype(matrices.dtype)
    return np.ascontiguousarray(matrices[..., rows, columns] * factors)


def matrix(entries: Array, dim: int) -> Array:
    """The symmetric matrices (..., d, d) of which `triangle` made the entries (..., d(d+1)/2)."""
    rows, columns = np.triu_indices(dim)
    result: Array = np.zeros((*entries.shape[:-1], dim, dim), entries.dtype)
    factors = np.where(rows == columns, 1.0, math.sqrt(0.5)).astype(entries.dtype)
    result[..., rows, columns] = result[..., columns, rows] = entries * factors
    return result


def solve_shifted(entries: Array, shift: float, b: Array) -> Array:
    """(A + shift I)^-1 b for the matrix A of the entries, by Cholesky's factorization.

    NaN if A + shift I is not positive definite.
    """
    x: Array = b.copy()
    _core.solve_triangle(entries, shift, x)
    return x


def products(entries: Array, x: Array) -> Array:
    """A_k x, (k, d), for the matrices A_k of the rows of entries (k, d(d+1)/2)."""
    results: Array = np.empty((len(entries), len(x)), x.dtype)
    _core.triangle_products(entries, x, results)
    return results
