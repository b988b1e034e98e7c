"""Linear least squares with an l2 regularizer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.data.dataset import Array
from buropt.problems.base import Problem
from buropt.problems.constants import Minimum, least_squares_constants
from buropt.problems.minimum import strongly_convex_minimum
from buropt.problems.samples import Split, prepare, require_weight, ridge
from buropt.problems.spectra import gram, is_small

if TYPE_CHECKING:
    from buropt.oracle import Oracle


def loss(x: Any, a: Any, b: Any) -> Any:
    """(a'x - b)^2 / 2 of one sample: features a (dim,), target b."""
    return 0.5 * np.square(a @ x - b)


def least_squares(
    A: Any,
    y: Array,
    *,
    l2: float = 0.0,
    split: Split = None,
    dtype: str | None = None,
    threads: int | None = None,
) -> Problem:
    """f(x) = (1/(2N)) |A x - y|^2 + (l2/2) |x|^2.

    Parameters
    ----------
    A : ndarray or CSR array, shape (n_samples, dim)
    y : ndarray, shape (n_samples,)
    l2 : float
        Weight of the regularizer, 0 or more.
    split : None, int or index arrays
        Samples of each worker; None: one worker; a number: contiguous blocks.
    dtype : {"float64", "float32"}, optional
        Of the computation; that of `A` by default.
    threads : int, optional

    Returns
    -------
    Problem
        Starts at 0. L, L_i and L_sample_max are exact. So are L+, L+- and mu while the Hessians are
        small enough to be formed (dim up to about 1000, fewer with very many workers); otherwise
        they are bounds. f_star is solved for when asked; None when dim is large and l2 = 0.

    Raises
    ------
    ValueError
        If l2 is negative, shapes do not fit, or the split is no partition.
    """
    samples = prepare("least_squares", A, y, split)
    require_weight("least_squares", "l2", l2)
    oracle = samples.compile(loss, ridge(l2), dtype, threads)
    constants = least_squares_constants(
        samples.A64,
        samples.shards,
        l2=l2,
        minimum=partial(_minimum, samples.A64, samples.y, l2, oracle),
    )
    return Problem("least_squares", oracle, oracle.x0, constants)


def _minimum(A: Any, y: Array, l2: float, oracle: Oracle) -> Minimum | None:
    """F at the solution of least norm of the normal equations, after one step of refinement.

    An error e in x costs only e'He/2, so directions whose eigenvalue is lost in rounding do not
    matter.
    """
    n_samples, dim = A.shape
    if not is_small(dim):
        return strongly_convex_minimum(oracle, l2) if l2 > 0 else None
    hessian = gram(A) / n_samples + l2 * np.eye(dim)
    rhs = A.T @ y / n_samples
    eigenvalues, vectors = np.linalg.eigh(hessian)
    kept = eigenvalues > dim * np.finfo(np.float64).eps * eigenvalues[-1]
    vectors, eigenvalues = vectors[:, kept], eigenvalues[kept]

    def solve(right: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(vectors @ ((vectors.T @ right) / eigenvalues))

    x = solve(rhs)
    x += solve(rhs - hessian @ x)
    return Minimum(float(oracle.value(x.astype(oracle.dtype))), x)
