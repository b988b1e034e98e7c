"""The nonconvex loss of MARINA's experiments with binary labels (arXiv:2102.07845)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from buropt.data.dataset import Array
from buropt.problems.base import Problem
from buropt.problems.constants import linear_model_constants
from buropt.problems.samples import Split, prepare, require_signs

# phi(m) = (1 - 1/(1 + exp(-m)))^2 = s^2 with s = expit(-m), ds/dm = -s (1 - s). Hence
#   phi'  = -2 s^2 (1 - s) = -2 (s^2 - s^3)
#   phi'' = -2 (2 s - 3 s^2) ds/dm = 2 s^2 (2 - 3 s) (1 - s) = 2 (2 s^2 - 5 s^3 + 3 s^4).
# On 0 < s < 1 it is stationary where 12 s^2 - 15 s + 4 = 0, s = (15 -+ sqrt(33)) / 24: the maximum
# 0.15406 at s = 0.38564 and the minimum -0.12020 at s = 0.86436; it vanishes at s = 0 and 1.
_S = (15 - math.sqrt(33)) / 24
CURVATURE = 2 * _S**2 * (2 - 3 * _S) * (1 - _S)
# phi''' = -2 s^2 (1 - s) (4 - 15 s + 12 s^2) is stationary where 8 - 57 s + 108 s^2 - 60 s^3 = 0,
# and largest in absolute value at the root s = 0.63626429.
THIRD = 0.2020231


def loss(x: Any, a: Any, b: Any) -> Any:
    """(1 - 1/(1 + exp(-b a'x)))^2 of one sample: features a (dim,), label b in {-1, +1}."""
    return np.square(expit(-b * (a @ x)))  # no cancellation, no overflow


def nonconvex_logistic(
    A: Any,
    y: Array,
    *,
    split: Split = None,
    dtype: str | None = None,
    threads: int | None = None,
) -> Problem:
    """f(x) = (1/N) sum_j (1 - 1/(1 + exp(-y_j a_j'x)))^2.

    Parameters
    ----------
    A : ndarray or CSR array, shape (n_samples, dim)
    y : ndarray, shape (n_samples,)
        Labels -1 and +1.
    split : None, int or index arrays
        Samples of each worker; None: one worker; a number: contiguous blocks.
    dtype : {"float64", "float32"}, optional
        Of the computation; that of `A` by default.
    threads : int, optional

    Returns
    -------
    Problem
        Starts at 0. All smoothness constants are bounds, with the best curvature constant, 0.15406.

    Raises
    ------
    ValueError
        If labels are not -1 and +1, shapes do not fit, or the split is no partition.
    """
    samples = prepare("nonconvex_logistic", A, y, split)
    require_signs("nonconvex_logistic", samples.y)
    oracle = samples.compile(loss, None, dtype, threads)
    constants = linear_model_constants(
        samples.A64,
        samples.shards,
        curvature=CURVATURE,
        regularizer_curvature=0.0,
        mu=0.0,
        curvature_says="c = 0.15406, R = 0",
        exact=False,
        convex=False,
        third=THIRD,
    )
    return Problem("nonconvex_logistic", oracle, oracle.x0, constants)
