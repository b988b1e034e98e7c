"""Logistic regression with a nonconvex, bounded regularizer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from buropt.data.dataset import Array
from buropt.problems.base import Problem
from buropt.problems.constants import linear_model_constants
from buropt.problems.logistic import CURVATURE, THIRD, loss
from buropt.problems.samples import Split, prepare, require_signs, require_weight

# r(t) = t^2 / (1 + t^2) has r''' = 24 t (t^2 - 1) / (1 + t^2)^4, largest at t^2 = 1 - 2 / sqrt(5).
_T2 = 1 - 2 / math.sqrt(5)
REGULARIZER_THIRD = 24 * math.sqrt(_T2) * (1 - _T2) / (1 + _T2) ** 4


def logistic_nonconvex_reg(
    A: Any,
    y: Array,
    *,
    lam: float = 0.1,
    split: Split = None,
    dtype: str | None = None,
    threads: int | None = None,
) -> Problem:
    """f(x) = (1/N) sum_j log(1 + exp(-y_j a_j'x)) + lam sum_k x_k^2 / (1 + x_k^2).

    Parameters
    ----------
    A : ndarray or CSR array, shape (n_samples, dim)
    y : ndarray, shape (n_samples,)
        Labels -1 and +1.
    lam : float
        Weight of the regularizer, 0 or more.
    split : None, int or index arrays
        Samples of each worker; None: one worker; a number: contiguous blocks.
    dtype : {"float64", "float32"}, optional
        Of the computation; that of `A` by default.
    threads : int, optional

    Returns
    -------
    Problem
        Starts at 0. L, L_i and L_sample_max are exact: the loss reaches its curvature bound 1/4,
        and the regularizer its bound 2 lam, both at x = 0. L+ and L+- are bounds.

    Raises
    ------
    ValueError
        If labels are not -1 and +1, lam is negative, shapes do not fit, or the split is no
        partition.
    """
    samples = prepare("logistic_nonconvex_reg", A, y, split)
    require_signs("logistic_nonconvex_reg", samples.y)
    require_weight("logistic_nonconvex_reg", "lam", lam)
    oracle = samples.compile(loss, lambda x: lam * np.sum(x * x / (1 + x * x)), dtype, threads)
    # r(t) = t^2 / (1 + t^2) has r'' = (2 - 6 t^2) / (1 + t^2)^3, between 2 (at 0) and -1/2 (at 1).
    constants = linear_model_constants(
        samples.A64,
        samples.shards,
        curvature=CURVATURE,
        regularizer_curvature=2 * lam,
        mu=0.0,
        curvature_says="c = 1/4, R = 2 lam",
        exact=True,
        convex=False,
        third=THIRD,
        regularizer_third=REGULARIZER_THIRD * lam,
    )
    return Problem("logistic_nonconvex_reg", oracle, oracle.x0, constants)
