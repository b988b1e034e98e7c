"""`compile`: from the loss of one sample to an `Oracle` of values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from buropt.oracle.data import read_data
from buropt.oracle.objective import Loss, Objective
from buropt.oracle.oracle import Oracle
from buropt.tree import flatten


def compile(
    loss: Loss,
    x0: Any,
    data: Any = None,
    *,
    regularizer: Callable[[Any], Any] | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    workers: int | Sequence[ArrayLike] | None = None,
) -> Oracle:
    """Compile f(x) = (1/N) sum_j w_j loss(x, sample_j) + regularizer(x) into an oracle.

    Parameters
    ----------
    loss : callable
        ``loss(x, *sample)`` in NumPy for one sample; returns one number. Without data ``loss(x)``
        is the whole objective.
    x0 : array or nested dict, list, tuple of arrays
        Start point; gives the parameters' shapes. Optimizers see one flat vector of shape (dim,).
    data : array, CSR matrix, or nested tuple, list, dict of them, optional
        One row per sample (axis 0). The loss gets the rows: of an array (N, ...) a row (...), of a
        SciPy CSR matrix (N, d) a sparse row that supports products with x. ``data=(A, y)`` calls
        ``loss(x, a, y)``, and ``data={"tokens": T, "label": y}`` calls ``loss(x, sample)`` with a
        dict of rows. Arrays of integers are integers in the loss, and may be indices. Data that are
        contiguous and of the oracle's dtype are not copied (apart from the other entries of dense
        arrays that are mostly zeros, and from large sparse matrices, which the first full batch
        copies by rows and by columns), so do not change them afterwards.
    regularizer : callable, optional
        ``regularizer(x)``; added once to every value.
    weights : array, shape (N,), optional
        Weights w_j of the samples, for every call that gives none. They are not normalized:
        minibatches with w_j = 1 / (N p_j) are unbiased under sampling with probabilities p_j.
    dtype : float64 or float32, optional
        Of the computation. Left out: float32 if x0 is, otherwise float64; data are converted.
    threads : int, optional
        At most this many threads; by default what the process may use (``BUROPT_NUM_THREADS``, CPU
        affinity and quota). The number of threads never changes a bit of any result.
    workers : int or list of integer arrays, optional
        The split of the samples among workers: a number of contiguous blocks, or each worker's
        samples. Worker i has f_i(x) = (n_workers / N) sum over its samples of the losses +
        regularizer, so that the mean of the f_i is f for any split.

    Returns
    -------
    Oracle

    Raises
    ------
    TypeError, ValueError
        If the loss cannot be traced, does not return one number, or shapes and lengths do not fit.
    IndexError
        If integers in the data are used as indices and one is out of range; the text names it.
    """
    vector, spec = flatten(x0, "x0", dtype)
    samples = read_data(data, spec.dtype)
    objective = Objective.trace(loss, regularizer, spec, samples)
    return Oracle(objective, vector, samples, weights, threads, workers)
