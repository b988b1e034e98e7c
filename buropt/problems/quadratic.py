"""Quadratics: f_i(x) = x'A_i x / 2 - b_i'x + c_i, one for each worker."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt import oracle as oracles
from buropt.data.dataset import Array
from buropt.data.synthetic import Basis, Quadratics, quadratics
from buropt.problems.base import Problem
from buropt.problems.constants import Constants, quadratic_constants, root_mean_square


def dense_loss(x: Any, A: Any, b: Any, c: Any) -> Any:
    """x'Ax/2 - b'x + c with A (dim, dim), b (dim,)."""
    return 0.5 * (x @ (A @ x)) - b @ x + c


def diagonal_loss(x: Any, diagonal: Any, b: Any, c: Any) -> Any:
    """The same with a diagonal matrix, given as (dim,)."""
    return 0.5 * np.sum(diagonal * x * x) - b @ x + c


def quadratic(
    A: Array,
    b: Array,
    c: Array | None = None,
    *,
    x0: Array | None = None,
    dtype: str | None = None,
    threads: int | None = None,
) -> Problem:
    """f(x) = mean over workers of x'A_i x / 2 - b_i'x + c_i, from given matrices.

    Parameters
    ----------
    A : ndarray, shape (n_workers, dim, dim), symmetric, or (n_workers, dim), diagonals
    b : ndarray, shape (n_workers, dim)
    c : ndarray, shape (n_workers,), optional
        Zeros by default.
    x0 : ndarray, shape (dim,), optional
        Start; zeros by default.
    dtype : {"float64", "float32"}, optional
    threads : int, optional

    Returns
    -------
    Problem
        All constants exact; mu is the smallest eigenvalue of the mean, or 0.0 if that is not
        positive. f_star is None if f is unbounded below.

    Raises
    ------
    ValueError
        If shapes do not fit or an A_i is not symmetric.
    """
    A, b = np.asarray(A, dtype=np.float64), np.asarray(b, dtype=np.float64)
    c = np.zeros(len(b)) if c is None else np.asarray(c, dtype=np.float64)
    if b.ndim != 2 or A.shape not in (b.shape, (*b.shape, b.shape[-1])) or c.shape != b.shape[:1]:
        raise ValueError(
            f"quadratic: A has shape {A.shape}, b {b.shape}, c {c.shape}; pass A (n_workers, dim, "
            "dim) or, for diagonal matrices, (n_workers, dim); b (n_workers, dim); c (n_workers,)"
        )
    if A.ndim == 3 and not np.array_equal(A, A.transpose(0, 2, 1)):
        raise ValueError("quadratic: A has a matrix that is not symmetric; pass (A_i + A_i') / 2")
    hessians = list(A) if A.ndim == 3 else [np.diag(diagonal) for diagonal in A]
    f_star = _minimum(sum(hessians) / len(hessians), b.mean(axis=0), float(c.mean()))
    constants = quadratic_constants(hessians, minimum=f_star)
    return _problem(A, b, c, x0, constants, dtype, threads)


def synthetic_quadratic(
    n_workers: int = 10,
    dim: int = 100,
    *,
    L: float = 1.0,
    mu: float = 0.01,
    heterogeneity: float = 0.5,
    gradient_heterogeneity: float = 1.0,
    basis: Basis = "rotated",
    seed: int = 0,
    dtype: str | None = None,
    threads: int | None = None,
) -> Problem:
    """Quadratics with chosen constants; see `buropt.data.quadratics` for what the arguments mean.

    Returns
    -------
    Problem
        Starts at 0. Constants and f_star come from the spectrum that was chosen, without rounding
        errors of an eigenvalue computation.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    data = quadratics(
        n_workers,
        dim,
        L=L,
        mu=mu,
        heterogeneity=heterogeneity,
        gradient_heterogeneity=gradient_heterogeneity,
        basis=basis,
        seed=seed,
    )
    return _problem(
        data.A, data.b, np.zeros(n_workers), None, _spectral_constants(data), dtype, threads
    )


def _problem(
    A: NDArray[np.float64],
    b: NDArray[np.float64],
    c: NDArray[np.float64],
    x0: Array | None,
    constants: Constants,
    dtype: str | None,
    threads: int | None,
) -> Problem:
    n_workers, dim = b.shape
    oracle = oracles.compile(
        dense_loss if A.ndim == 3 else diagonal_loss,
        np.zeros(dim) if x0 is None else x0,
        data=(A, b, c),
        dtype=dtype,
        threads=threads,
        workers=n_workers,
    )
    return Problem("quadratic", oracle, oracle.x0, constants)


def _spectral_constants(data: Quadratics) -> Constants:
    """With common eigenvectors every constant is a maximum over columns of the eigenvalues."""
    eigenvalues = data.eigenvalues
    mean = eigenvalues.mean(axis=0)
    L_i = np.abs(eigenvalues).max(axis=1)
    # Columns are multiples of each other, so each maximum is found at the largest mean eigenvalue.
    return Constants(
        L=float(np.abs(mean).max()),
        L_i=L_i,
        L_sample_max=float(L_i.max()),
        L_plus=max(root_mean_square(column) for column in eigenvalues.T),
        L_pm=max(root_mean_square(column) for column in (eigenvalues - mean).T),
        mu=max(float(mean.min()), 0.0),
        convex=bool(eigenvalues.min() >= 0),
        minimum=data.f_star,
        source={
            "L": "closed form: chosen",
            "L_i": "closed form: |1 + heterogeneity s_i| L",
            "L_sample_max": "closed form: L_max, a sample is a worker",
            "L_plus": "closed form: L sqrt(mean (1 + heterogeneity s_i)^2)",
            "L_pm": "closed form: L heterogeneity sqrt(mean s_i^2)",
            "mu": "closed form: chosen",
            "f_star": "closed form: -x*'A x*/2",
        },
    )


def _minimum(mean: Any, b: NDArray[np.float64], c: float) -> float | None:
    """Minimum of x'Hx/2 - b'x + c; None if there is none."""
    eigenvalues, vectors = np.linalg.eigh(mean)
    rounding = 4 * len(b) * float(np.finfo(np.float64).eps) * float(np.abs(eigenvalues).max())
    coordinates = vectors.T @ b
    flat = np.abs(eigenvalues) <= rounding
    slope = math.sqrt(float(np.sum(coordinates[flat] ** 2)))
    if (eigenvalues < -rounding).any() or slope > 1e-12 * float(np.linalg.norm(b)):
        return None
    curved = ~flat
    return c - 0.5 * float(np.sum(coordinates[curved] ** 2 / eigenvalues[curved]))
