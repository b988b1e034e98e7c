"""Logistic regression with an l2 regularizer."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from buropt.data.dataset import Array
from buropt.problems.base import Problem
from buropt.problems.constants import linear_model_constants
from buropt.problems.minimum import strongly_convex_minimum
from buropt.problems.samples import Split, prepare, require_signs, require_weight, ridge

CURVATURE = 0.25  # max of phi'' for phi(m) = log(1 + exp(-m)): s (1 - s) at s = 1/2, that is m = 0

THIRD = 1 / (6 * math.sqrt(3))  # max of |phi'''| = s (1 - s) |1 - 2 s|, at s = 1/2 -+ sqrt(3)/6


def loss(x: Any, a: Any, b: Any) -> Any:
    """log(1 + exp(-b a'x)) of one sample: features a (dim,), label b in {-1, +1}."""
    return np.logaddexp(0, -b * (a @ x))


def logistic(
    A: Any,
    y: Array,
    *,
    l2: float = 0.0,
    split: Split = None,
    dtype: str | None = None,
    threads: int | None = None,
) -> Problem:
    """f(x) = (1/N) sum_j log(1 + exp(-y_j a_j'x)) + (l2/2) |x|^2.

    Parameters
    ----------
    A : ndarray or CSR array, shape (n_samples, dim)
    y : ndarray, shape (n_samples,)
        Labels -1 and +1.
    l2 : float
        Weight of the regularizer, 0 or more; also the strong convexity that is known.
    split : None, int or index arrays
        Samples of each worker; None: one worker; a number: contiguous blocks.
    dtype : {"float64", "float32"}, optional
        Of the computation; that of `A` by default.
    threads : int, optional

    Returns
    -------
    Problem
        Starts at 0. L, L_i and L_sample_max are exact (the curvature bound 1/4 is reached at x = 0
        by all samples), L+ and L+- bounds; f_star is solved for when asked, if l2 > 0.

    Raises
    ------
    ValueError
        If labels are not -1 and +1, l2 is negative, shapes do not fit, or the split is no
        partition.
    """
    samples = prepare("logistic", A, y, split)
    require_signs("logistic", samples.y)
    require_weight("logistic", "l2", l2)
    oracle = samples.compile(loss, ridge(l2), dtype, threads)
    constants = linear_model_constants(
        samples.A64,
        samples.shards,
        curvature=CURVATURE,
        regularizer_curvature=l2,
        mu=l2,
        curvature_says="c = 1/4, R = l2",
        exact=True,
        convex=True,
        third=THIRD,
        minimum=partial(strongly_convex_minimum, oracle, l2) if l2 > 0 else None,
    )
    return Problem("logistic", oracle, oracle.x0, constants)
