"""`load`: a saved oracle, as it was or on other data."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from buropt.oracle.data import describe_rows, read_data
from buropt.oracle.objective import Objective
from buropt.oracle.oracle import Oracle
from buropt.oracle.saving import read_oracle


def load(
    path: str | PathLike[str],
    data: Any = None,
    *,
    weights: ArrayLike | None = None,
    workers: int | Sequence[ArrayLike] | None = None,
    threads: int | None = None,
) -> Oracle:
    """Load an oracle that `Oracle.save` saved; the loss itself is not needed.

    Parameters
    ----------
    path : path
    data : array, CSR matrix, or tuple of them, optional
        Other data than those in the file, for the same loss: as many arrays, nested alike, with
        the same shapes for one sample. Needed if the oracle was saved without its data.
    weights, workers, threads : optional
        As for `compile`. Left out, they are those in the file; weights and workers, which go with
        the samples, only as long as the data are those in the file.

    Returns
    -------
    Oracle
        On the same data its results are the same, bit for bit.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, damaged, or written by a newer version, or other data
        are needed or do not fit.
    TypeError, IndexError
        If the data are no arrays of numbers, or hold indices that are out of range.
    OSError
        If the file cannot be read.
    """
    saved = read_oracle(path)
    samples, rows = saved.samples, saved.samples.rows
    if data is not None:
        samples = read_data(data, saved.spec.dtype).like(rows, str(path))
    elif rows and not samples.n:
        raise ValueError(
            f"{path} was saved without its data. Pass data=..., with {describe_rows(rows)}."
        )
    else:
        weights = saved.weights if weights is None else weights
        workers = (saved.shards or None) if workers is None else workers
    try:
        objective = Objective(saved.functions, saved.spec, rows)
        if data is None:  # its own data fit, or the file was changed
            objective.check_indices(samples)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{path} does not hold a valid oracle: {error}. Save it again.") from None
    if data is not None:
        objective.check_indices(samples)
    threads = saved.threads if threads is None else threads
    return Oracle(objective, saved.x0, samples, weights, threads, workers)
