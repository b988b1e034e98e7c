"""Quadratics: f_i(x) = x'A_i x / 2 - b_i'x + c_i, one for each worker."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt import oracle as oracles
from buropt.data.dataset import Array
from buropt.data.synthetic import Basis, Quadratics, quadratics
from buropt.problems.base import Problem
from buropt.problems.constants import Constants, Minimum, diagonal_constants, quadratic_constants


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
        Diagonals stay diagonals, at O(n_workers dim) in all.
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
    mean, mean_b, mean_c = A.mean(axis=0), b.mean(axis=0), float(c.mean())
    if A.ndim == 3:
        eigenvalues, vectors = np.linalg.eigh(mean)
        minimum = _minimum(eigenvalues, vectors.T @ mean_b, mean_c)
        if minimum is not None:
            minimum = Minimum(minimum.value, vectors @ minimum.x)
        constants = quadratic_constants(
            list(A), sample_minimum=_least_minimum(A, b, c), minimum=minimum
        )
    else:
        constants = diagonal_constants(
            A,
            sample_minimum=_least_minimum(A, b, c),
            minimum=_minimum(mean, mean_b, mean_c),
        )
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
    c = np.zeros(n_workers)
    constants = _spectral_constants(data, _least_minimum(data.A, data.b, c))
    return _problem(data.A, data.b, c, None, constants, dtype, threads)


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


def _spectral_constants(data: Quadratics, sample_minimum: float | None) -> Constants:
    """The matrices share their eigenvectors, so that they are diagonal in that basis."""
    constants = diagonal_constants(
        data.eigenvalues,
        sample_minimum=sample_minimum,
        minimum=Minimum(data.f_star, data.x_star),
    )
    diagonal = data.A if data.A.ndim == 2 else np.diagonal(data.A, axis1=1, axis2=2)
    return replace(
        constants,
        L_coordinates=np.abs(diagonal.mean(axis=0)),
        source={
            "L": "closed form: chosen",
            "L_i": "closed form: |1 + heterogeneity s_i| L",
            "L_sample_max": "closed form: L_max, a sample is a worker",
            "L_samples": "closed form: L_i, a sample is a worker",
            "L_coordinates": "closed form: diagonal of the mean Hessian",
            "L_hessian": "closed form: 0, a quadratic",
            "L_plus": "closed form: L sqrt(mean (1 + heterogeneity s_i)^2)",
            "L_pm": "closed form: L heterogeneity sqrt(mean s_i^2)",
            "mu": "closed form: chosen",
            "f_star": "closed form: -x*'A x*/2",
        },
    )


def _least_minimum(
    A: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]
) -> float | None:
    """The smallest of the minima of all x'A_i x/2 - b_i'x + c_i, if all have one."""
    minima = []
    for A_i, b_i, c_i in zip(A, b, c, strict=True):
        if A_i.ndim == 1:
            minima.append(_minimum(A_i, b_i, float(c_i)))
        else:
            eigenvalues, vectors = np.linalg.eigh(A_i)
            minima.append(_minimum(eigenvalues, vectors.T @ b_i, float(c_i)))
    known = [minimum.value for minimum in minima if minimum is not None]
    return min(known) if len(known) == len(minima) else None


def _minimum(
    eigenvalues: NDArray[np.float64], coordinates: NDArray[np.float64], c: float
) -> Minimum | None:
    """Minimum of x'Hx/2 - b'x + c, given the eigenvalues of H and b in the basis of its vectors.

    None if there is none.
    """
    rounding = 4 * len(eigenvalues) * float(np.finfo(np.float64).eps) * np.abs(eigenvalues).max()
    flat = np.abs(eigenvalues) <= rounding
    slope = math.sqrt(float(np.sum(coordinates[flat] ** 2)))
    if (eigenvalues < -rounding).any() or slope > 1e-12 * float(np.linalg.norm(coordinates)):
        return None
    curved = ~flat
    x = np.zeros_like(coordinates)
    x[curved] = coordinates[curved] / eigenvalues[curved]
    return Minimum(c - 0.5 * float(coordinates @ x), x)
