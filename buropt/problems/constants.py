"""Smoothness and convexity constants, from spectra of the data.

The smoothness of a linear model's loss phi(a_j'x) with |phi''| <= c is c times an eigenvalue of a
Gram matrix. All constants are true bounds, as the eigenvalues of `spectra.py` are, so a step size
such as 1/L is never too large. With worker i's function scaled as

    f_i(x) = (n_workers / n_samples) sum over j in S_i of loss_j(x) + r(x),

its Gram matrix is (n_workers / n_samples) A_i'A_i, which for equal shards is the mean over the
shard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt.data.dataset import Array
from buropt.problems.spectra import (
    bottom_eigenvalue,
    gram,
    is_positive_semidefinite,
    is_small,
    squared_norms,
    top_eigenvalue,
    top_gram_eigenvalue,
)

MOMENTS_LIMIT = 2e10  # n_workers * dim^3 up to which L+ and L+- are computed from all Hessians


class Minimum(NamedTuple):
    """The minimum of f and a point x, shape (dim,), where it is attained."""

    value: float
    x: NDArray[np.float64]


Solve = Callable[[], Minimum | None]


@dataclass(frozen=True, eq=False)
class Constants:
    """Constants of f = mean of f_i; each is the best one or an upper bound (mu: a lower one).

    Attributes
    ----------
    L : float
        Smoothness of f.
    L_i : ndarray, shape (n_workers,)
        Smoothness of each f_i.
    L_sample_max : float
        Largest smoothness of one sample's loss plus the regularizer.
    L_plus : float or None
        L+: mean |grad f_i(x) - grad f_i(y)|^2 <= L+^2 |x - y|^2.
    L_pm : float or None
        L+-, the Hessian variance (arXiv:2110.03300): the same with the variance over workers in
        place of the second moment.
    mu : float
        Strong convexity of f; 0.0 if it has none that is known.
    convex : bool
        Whether every f_i, and every sample's loss, is known to be convex.
    L_samples : ndarray, shape (n_samples,), or None
        Smoothness of each sample's loss plus the regularizer.
    L_regularizer : float
        The part of L_samples that the regularizer has; 0.0 where there is none.
    L_coordinates : ndarray, shape (dim,), or None
        Smoothness of f along each coordinate.
    L_hessian : float or None
        Lipschitz constant of the Hessian of f.
    mu_worker, mu_sample : float
        Strong convexity that every f_i, and every sample's loss plus the regularizer, has.
    sample_minimum : float or None
        A lower bound of every sample's loss plus the regularizer.
    minimum : Minimum, callable or None
        The minimum of f, or how to find it; None: not known. Read it as `f_star` and `x_star`.
    source : dict
        For each constant, the formula, and whether it is a "closed form" or a "bound".
    """

    L: float
    L_i: NDArray[np.float64]
    L_sample_max: float
    L_plus: float | None = None
    L_pm: float | None = None
    mu: float = 0.0
    convex: bool = False
    L_samples: NDArray[np.float64] | None = field(default=None, repr=False)
    L_regularizer: float = 0.0
    L_coordinates: NDArray[np.float64] | None = field(default=None, repr=False)
    L_hessian: float | None = None
    mu_worker: float = 0.0
    mu_sample: float = 0.0
    sample_minimum: float | None = None
    minimum: Minimum | Solve | None = field(default=None, repr=False)
    source: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def L_max(self) -> float:
        """Largest of the L_i."""
        return float(np.max(self.L_i))

    @property
    def L_tilde(self) -> float:
        """Root mean square of the L_i."""
        return root_mean_square(self.L_i)

    @property
    def L_sample_mean(self) -> float:
        """Mean of L_samples; L_sample_max where they are not known."""
        return self.L_sample_max if self.L_samples is None else float(np.mean(self.L_samples))

    @property
    def L_sample_tilde(self) -> float:
        """Root mean square of L_samples; L_sample_max where they are not known."""
        return self.L_sample_max if self.L_samples is None else root_mean_square(self.L_samples)

    @property
    def f_star(self) -> float | None:
        """The minimum of f, or None."""
        return None if self._minimum is None else self._minimum.value

    @property
    def x_star(self) -> NDArray[np.float64] | None:
        """A point where f is minimal, shape (dim,), or None."""
        return None if self._minimum is None else self._minimum.x

    def solved(self) -> Constants:
        """A copy that holds the minimum itself, where there was a way to find it."""
        return replace(self, minimum=self._minimum)

    @cached_property
    def _minimum(self) -> Minimum | None:
        """Solved for when first asked, then kept."""
        return self.minimum() if callable(self.minimum) else self.minimum


def root_mean_square(values: Array) -> float:
    """Square root of the mean of the squares."""
    return math.sqrt(np.mean(np.square(values)))


def linear_model_constants(
    A: Any,
    shards: Sequence[NDArray[np.int64]],
    *,
    curvature: float,
    regularizer_curvature: float,
    mu: float,
    curvature_says: str,
    exact: bool,
    convex: bool,
    third: float = 0.0,
    regularizer_third: float = 0.0,
    minimum: Solve | None = None,
) -> Constants:
    """Constants of f_i(x) = (n/N) sum_j phi_j(a_j'x) + r(x) with |phi_j''| <= c and |r''| <= R.

    All phi_j and r are nonnegative, and r is a sum over the coordinates.

    Parameters
    ----------
    A : ndarray or CSR array, shape (n_samples, dim)
    shards : index arrays, one a worker
    curvature, regularizer_curvature : float
        c and R.
    mu : float
        Strong convexity of f, or a lower bound.
    curvature_says : str
        c and R in words, for `Constants.source`.
    exact : bool
        Whether all c and R are reached at one common point, so that L and L_i are the best ones.
    convex : bool
        Whether losses and regularizer are convex.
    third, regularizer_third : float
        Bounds of |phi_j'''| and |r'''|.
    minimum : callable, optional
    """
    n, n_samples = len(shards), A.shape[0]
    top = top_gram_eigenvalue(A) / n_samples
    L = curvature * top + regularizer_curvature
    rows = squared_norms(A, axis=1)
    loss_L_i = np.array(
        [curvature * n / n_samples * top_gram_eigenvalue(A[shard]) for shard in shards]
    )
    L_i = loss_L_i + regularizer_curvature
    kind = "closed form" if exact else "bound"
    source = {
        "L": f"{kind}: c lambda_max(A'A)/N + R, {curvature_says}",
        "L_i": f"{kind}: c (n/N) lambda_max(A_i'A_i) + R, {curvature_says}",
        "L_sample_max": f"{kind}: c max_j |a_j|^2 + R, {curvature_says}",
        "L_plus": "closed form: one worker, L" if n == 1 else "bound: sqrt(mean L_i^2)",
        "L_pm": "closed form: one worker, 0" if n == 1 else "bound: sqrt(mean (L_i - R)^2)",
        "L_samples": f"{kind}: c |a_j|^2 + R, {curvature_says}",
        "L_coordinates": f"{kind}: c mean_j a_jk^2 + R, {curvature_says}",
        "L_hessian": "bound: c3 max_j |a_j| lambda_max(A'A)/N + R3, |phi'''| <= c3, |r'''| <= R3",
        "mu": f"bound: the regularizer's {mu:g}" if mu > 0 else "not strongly convex",
        "f_star": "solved to rounding" if minimum is not None else "not known",
    }
    return Constants(
        L=L,
        L_i=L_i,
        L_sample_max=curvature * float(rows.max()) + regularizer_curvature,
        L_samples=curvature * rows + regularizer_curvature,
        L_regularizer=regularizer_curvature,
        L_coordinates=curvature * squared_norms(A, axis=0) / n_samples + regularizer_curvature,
        L_hessian=third * math.sqrt(rows.max()) * top + regularizer_third,
        L_plus=L if n == 1 else root_mean_square(L_i),
        L_pm=0.0 if n == 1 else root_mean_square(loss_L_i),
        mu=mu,
        mu_worker=mu,
        mu_sample=mu,
        sample_minimum=0.0,
        convex=convex,
        minimum=minimum,
        source=source,
    )


def least_squares_constants(
    A: Any,
    shards: Sequence[NDArray[np.int64]],
    *,
    l2: float,
    minimum: Solve | None,
) -> Constants:
    """Constants of f(x) = |A x - y|^2 / (2N) + l2 |x|^2 / 2: a linear model with phi'' = 1.

    Exact as far as Hessians are small enough to be formed: all of them, or the mean at least (for
    mu).
    """
    n, (n_samples, dim) = len(shards), A.shape
    identity = l2 * np.eye(dim) if is_small(dim) else None
    if identity is not None and n * dim**3 <= MOMENTS_LIMIT:
        return quadratic_constants(
            [gram(A[shard]) * (n / n_samples) + identity for shard in shards],
            L_samples=squared_norms(A, axis=1) + l2,
            L_regularizer=l2,
            mu_sample=l2,
            sample_minimum=0.0,
            minimum=minimum,
        )
    constants = linear_model_constants(
        A,
        shards,
        curvature=1.0,
        regularizer_curvature=l2,
        mu=l2,
        curvature_says="c = 1, R = l2",
        exact=True,
        convex=True,
        minimum=minimum,
    )
    if identity is None:
        return constants
    return replace(
        constants,
        mu=max(bottom_eigenvalue(gram(A) / n_samples + identity), l2),
        source=constants.source | {"mu": "closed form: lambda_min(A'A/N) + l2"},
    )


def quadratic_constants(
    hessians: Sequence[NDArray[np.float64]],
    *,
    L_samples: NDArray[np.float64] | None = None,
    L_regularizer: float = 0.0,
    mu_sample: float | None = None,
    sample_minimum: float | None = None,
    minimum: Minimum | Solve | None = None,
) -> Constants:
    """All constants of functions with constant Hessians H_i, shape (dim, dim), exactly.

    L+-^2 = lambda_max(mean H_i^2 - H^2) is computed as lambda_max(mean (H_i - H)^2), the same
    matrix without cancellation. `L_samples` and `mu_sample` default to those of the workers
    (samples are workers).
    """
    mean, second, variance = (np.zeros_like(hessians[0]) for _ in range(3))
    for H in hessians:
        mean += H / len(hessians)
    for H in hessians:
        second += H @ H / len(hessians)
        variance += (H - mean) @ (H - mean) / len(hessians)
    L_i = np.array([top_eigenvalue(H) for H in hessians])
    L_samples = L_i if L_samples is None else L_samples
    mu_worker = min(bottom_eigenvalue(H) for H in hessians)
    return Constants(
        L=top_eigenvalue(mean),
        L_i=L_i,
        L_sample_max=float(np.max(L_samples)),
        L_samples=L_samples,
        L_regularizer=L_regularizer,
        L_coordinates=np.abs(np.diag(mean)),
        L_hessian=0.0,
        L_plus=math.sqrt(top_eigenvalue(second)),
        L_pm=math.sqrt(top_eigenvalue(variance)),
        mu=bottom_eigenvalue(mean),
        mu_worker=mu_worker,
        mu_sample=mu_worker if mu_sample is None else mu_sample,
        sample_minimum=sample_minimum,
        convex=all(is_positive_semidefinite(H) for H in hessians),
        minimum=minimum,
        source={
            "L": "closed form: lambda_max(mean H_i)",
            "L_i": "closed form: lambda_max(H_i)",
            "L_sample_max": "closed form: largest Hessian of a sample",
            "L_samples": "closed form: lambda_max of each sample's Hessian",
            "L_coordinates": "closed form: diagonal of the mean Hessian",
            "L_hessian": "closed form: 0, a quadratic",
            "L_plus": "closed form: sqrt(lambda_max(mean H_i^2))",
            "L_pm": "closed form: sqrt(lambda_max(mean H_i^2 - (mean H_i)^2))",
            "mu": "closed form: lambda_min(mean H_i)",
            "f_star": "closed form: the stationary point" if minimum is not None else "none",
        },
    )


def diagonal_constants(
    diagonals: NDArray[np.float64],
    *,
    sample_minimum: float | None = None,
    minimum: Minimum | None = None,
) -> Constants:
    """The same for diagonal Hessians, one a row of (n_workers, dim): maxima over coordinates.

    Hessians with common eigenvectors are diagonal in that basis: rows are then their eigenvalues.
    """
    mean = diagonals.mean(axis=0)
    L_i = np.abs(diagonals).max(axis=1)
    return Constants(
        L=float(np.abs(mean).max()),
        L_i=L_i,
        L_sample_max=float(L_i.max()),
        L_samples=L_i,
        L_coordinates=np.abs(mean),
        L_hessian=0.0,
        L_plus=_largest_root_mean_square(diagonals),
        L_pm=_largest_root_mean_square(diagonals - mean),
        mu=max(float(mean.min()), 0.0),
        mu_worker=max(float(diagonals.min()), 0.0),
        mu_sample=max(float(diagonals.min()), 0.0),
        sample_minimum=sample_minimum,
        convex=bool(diagonals.min() >= 0),
        minimum=minimum,
        source={
            "L": "closed form: max_k |mean h_ik|",
            "L_i": "closed form: max_k |h_ik|",
            "L_sample_max": "closed form: L_max, a sample is a worker",
            "L_samples": "closed form: L_i, a sample is a worker",
            "L_coordinates": "closed form: |mean h_ik|",
            "L_hessian": "closed form: 0, a quadratic",
            "L_plus": "closed form: max_k sqrt(mean h_ik^2)",
            "L_pm": "closed form: max_k sqrt(mean (h_ik - mean h_ik)^2)",
            "mu": "closed form: min_k mean h_ik",
            "f_star": "closed form: the stationary point" if minimum is not None else "none",
        },
    )


def _largest_root_mean_square(rows: NDArray[np.float64]) -> float:
    return math.sqrt(np.mean(np.square(rows), axis=0).max())
