"""How large the gradients of single samples are: the noise of stochastic methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from buropt.data.dataset import Array
    from buropt.oracle import Oracle

BLOCK = 1024  # samples whose gradients are in memory at once


def squared_gradients(oracle: Oracle, x: Array, weights: Array) -> Array:
    """|w_j grad loss_j(x) + grad r(x)|^2 of all samples, r the regularizer, (n_samples,).

    Parameters
    ----------
    oracle : Oracle
    x : ndarray, shape (dim,)
    weights : ndarray, shape (n_samples,)
        The w_j.
    """
    squares = []
    nothing = np.zeros(1, np.int64), np.zeros(1, oracle.dtype)
    regularizer = oracle.grad(x, *nothing).astype(np.float64)
    for first in range(0, oracle.n_samples, BLOCK):
        idx = np.arange(first, min(first + BLOCK, oracle.n_samples))
        losses = oracle.per_sample_grads(x, idx).astype(np.float64) - regularizer
        grads = weights[idx, None] * losses + regularizer
        squares.append(np.einsum("ij,ij->i", grads, grads))
    return np.concatenate(squares)
