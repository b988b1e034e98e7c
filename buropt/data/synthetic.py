"""Seeded synthetic data: quadratics with a known spectrum, and a classification set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from buropt.data.dataset import Array, Dataset
from buropt.data.libsvm import FloatName

Basis: TypeAlias = Literal["rotated", "diagonal"]


@dataclass(frozen=True, eq=False)
class Quadratics:
    """f_i(x) = x'A_i x / 2 - b_i'x for each worker i, where all A_i share their eigenvectors.

    Attributes
    ----------
    A : ndarray, shape (n_workers, dim, dim), or (n_workers, dim) when the A_i are diagonal
    b : ndarray, shape (n_workers, dim)
    eigenvalues : ndarray, shape (n_workers, dim)
        Row i are the eigenvalues of A_i; column k belongs to the same eigenvector in every row, so
        the constants of mean A_i and mean A_i^2 are read off without rounding.
    x_star : ndarray, shape (dim,)
        Minimizer of the mean of the f_i (one of them, when mu = 0).
    f_star : float
        The minimum.
    """

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    x_star: NDArray[np.float64]
    f_star: float


def quadratics(
    n_workers: int,
    dim: int,
    *,
    L: float = 1.0,
    mu: float = 0.1,
    heterogeneity: float = 0.5,
    gradient_heterogeneity: float = 1.0,
    basis: Basis = "rotated",
    seed: int = 0,
) -> Quadratics:
    """Quadratics whose mean has smallest eigenvalue `mu` and largest `L`, exactly.

    With s_i spread evenly over [-1, 1] (mean 0), A_i = (1 + heterogeneity s_i) A for one matrix A
    with eigenvalues geometrically spaced from `mu` to `L` (evenly from 0 when mu = 0). Hence
    L_i = |1 + heterogeneity s_i| L, L+ = L sqrt(1 + heterogeneity^2 mean s_i^2) and
    L+- = L heterogeneity sqrt(mean s_i^2).

    Parameters
    ----------
    n_workers, dim : int
    L, mu : float
        0 <= mu <= L, L > 0; equal when dim = 1.
    heterogeneity : float
        Spread of the Hessians; 0: all equal; above 1 some f_i are concave, the mean is not.
    gradient_heterogeneity : float
        Root mean square of the norms of grad f_i at the minimizer; 0: all f_i share it.
        Without effect for one worker.
    basis : {"rotated", "diagonal"}
        "rotated": random eigenvectors, dense matrices. "diagonal": coordinate axes, O(dim) memory.
    seed : int

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    _check_quadratics(n_workers, dim, L, mu, heterogeneity, gradient_heterogeneity, basis)
    generator = np.random.Generator(np.random.Philox(seed))
    spectrum = np.geomspace(mu, L, dim) if mu > 0 else np.linspace(mu, L, dim)
    spectrum[0], spectrum[-1] = mu, L
    spread = np.linspace(-1.0, 1.0, n_workers) if n_workers > 1 else np.zeros(1)
    spread = (spread - spread[::-1]) / 2  # antisymmetric to the last bit: the mean is exactly 0
    eigenvalues = np.outer(1 + heterogeneity * spread, spectrum)

    # Minimizer and deviations are drawn in the eigenbasis, where everything is a product of
    # coordinates; the rotation comes last.
    z_star = generator.standard_normal(dim)
    deviations = generator.standard_normal((n_workers, dim))
    deviations -= deviations.mean(axis=0)
    size = np.sqrt(np.mean(np.sum(deviations**2, axis=1)))
    if n_workers > 1:
        deviations *= gradient_heterogeneity / size
    else:
        deviations[:] = 0
    b = eigenvalues * z_star + deviations
    f_star = -0.5 * float(np.sum(spectrum * z_star**2))
    if basis == "diagonal":
        return Quadratics(eigenvalues, b, eigenvalues, z_star, f_star)

    rotation = _random_rotation(generator, dim)
    A = np.einsum("jk,ik,lk->ijl", rotation, eigenvalues, rotation, optimize=True)
    A = (A + A.transpose(0, 2, 1)) / 2
    return Quadratics(A, b @ rotation.T, eigenvalues, rotation @ z_star, f_star)


def synthetic_classification(
    n_samples: int = 1000,
    n_features: int = 50,
    *,
    density: float = 1.0,
    flip: float = 0.05,
    condition: float = 10.0,
    dtype: FloatName = "float64",
    seed: int = 0,
) -> Dataset:
    """Gaussian samples labelled by a random hyperplane through the origin.

    Parameters
    ----------
    n_samples, n_features : int
    density : float
        Share of entries that are not zero, in (0, 1]; below 1 the matrix is a CSR array.
    flip : float
        Probability in [0, 1] that a label is wrong, so that the classes overlap.
    condition : float
        The scale of the features falls geometrically from 1 to 1/sqrt(condition): the condition
        number of the covariance.
    dtype : {"float64", "float32"}
    seed : int

    Returns
    -------
    Dataset
        Labels -1 and +1.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if n_samples < 1 or n_features < 1:
        raise ValueError(f"{n_samples} samples x {n_features} features: write 1 or more of each")
    if not 0 < density <= 1:
        raise ValueError(f"density={density} is out of range; write a number in (0, 1]")
    if not 0 <= flip <= 1:
        raise ValueError(f"flip={flip} is out of range; write a probability")
    if not 1 <= condition < np.inf:
        raise ValueError(f"condition={condition} is out of range; write 1 or more")
    generator = np.random.Generator(np.random.Philox(seed))
    scale = np.geomspace(1.0, condition**-0.5, n_features)
    A = generator.standard_normal((n_samples, n_features)) * scale
    if density < 1:
        A[generator.random(A.shape) >= density] = 0.0
    hyperplane = generator.standard_normal(n_features) / scale
    y = np.where((A @ hyperplane >= 0) ^ (generator.random(n_samples) < flip), 1.0, -1.0)
    matrix = A.astype(dtype) if density == 1 else sp.csr_array(A.astype(dtype))
    return Dataset(matrix, y.astype(dtype), "synthetic_classification")


def _random_rotation(generator: np.random.Generator, dim: int) -> Array:
    """Orthogonal matrix with the uniform (Haar) distribution: QR of Gaussians, signs fixed."""
    q, r = np.linalg.qr(generator.standard_normal((dim, dim)))
    return np.asarray(q * np.sign(np.diag(r)))


def _check_quadratics(
    n_workers: int,
    dim: int,
    L: float,
    mu: float,
    heterogeneity: float,
    gradient_heterogeneity: float,
    basis: Basis,
) -> None:
    if n_workers < 1 or dim < 1:
        raise ValueError(f"n_workers={n_workers}, dim={dim}: write 1 or more for each")
    if not (0 <= mu <= L and 0 < L < np.inf):
        raise ValueError(f"L={L}, mu={mu} are out of range; write 0 <= mu <= L and 0 < L")
    if dim == 1 and mu != L:
        raise ValueError(f"dim=1 has a single eigenvalue, but L={L} and mu={mu}; write mu={L}")
    if not 0 <= heterogeneity < np.inf:
        raise ValueError(f"heterogeneity={heterogeneity} is out of range; write 0 or more")
    if not 0 <= gradient_heterogeneity < np.inf:
        raise ValueError(
            f"gradient_heterogeneity={gradient_heterogeneity} is out of range; write 0 or more"
        )
    if basis not in get_args(Basis):
        raise ValueError(f"basis={basis!r} is unknown; write one of {', '.join(get_args(Basis))}")
