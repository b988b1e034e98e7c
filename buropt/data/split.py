"""Ways of splitting samples among workers.

Every function returns a list of `n_workers` int64 index arrays. Together they hold each sample
exactly once, and no worker is left empty. Within a worker indices increase, whatever the way of
choosing them, so that a pass over a shard walks through memory in one direction.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from buropt.data.dataset import Array
from buropt.names import require_choice

Shards: TypeAlias = list[NDArray[np.int64]]
SplitKind: TypeAlias = Literal["contiguous", "shuffled", "sorted", "dirichlet"]


def split_workers(
    y: Array,
    n_workers: int,
    kind: SplitKind = "contiguous",
    *,
    alpha: float = 0.5,
    seed: int = 0,
) -> Shards:
    """Split the samples with labels `y`, shape (n_samples,), in the way named by `kind`.

    `alpha` matters to "dirichlet" only, `seed` to "shuffled" and "dirichlet".

    Raises
    ------
    ValueError
        If `kind` is unknown, or as the function of that name says.
    """
    require_choice("split", kind, get_args(SplitKind))
    if kind == "contiguous":
        return contiguous(len(y), n_workers)
    if kind == "shuffled":
        return shuffled(len(y), n_workers, seed=seed)
    if kind == "sorted":
        return sorted_by_label(y, n_workers)
    return dirichlet(y, n_workers, alpha=alpha, seed=seed)


def contiguous(n_samples: int, n_workers: int) -> Shards:
    """Blocks of consecutive samples; sizes differ by at most one, the larger ones first.

    Raises
    ------
    ValueError
        If there are fewer samples than workers, or `n_workers` < 1.
    """
    return _in_order(np.arange(n_samples, dtype=np.int64), n_workers)


def shuffled(n_samples: int, n_workers: int, *, seed: int = 0) -> Shards:
    """Samples dealt at random, so that workers look alike; sizes as in `contiguous`."""
    return _in_order(_generator(seed).permutation(np.arange(n_samples, dtype=np.int64)), n_workers)


def sorted_by_label(y: Array, n_workers: int) -> Shards:
    """Blocks of the samples sorted by label: workers differ as much as they can.

    Sizes as in `contiguous`; samples of one label keep their order.
    """
    return _in_order(np.argsort(_labels(y), kind="stable").astype(np.int64), n_workers)


def dirichlet(y: Array, n_workers: int, *, alpha: float, seed: int = 0) -> Shards:
    """Each label shared out in proportions drawn from Dirichlet(alpha, ..., alpha).

    A small `alpha` gives each worker few labels and sizes that differ much; a large one makes
    workers alike (Hsu, Qi, Brown, 2019, arXiv:1909.06335).

    Parameters
    ----------
    y : ndarray, shape (n_samples,)
        Class labels.
    n_workers : int
    alpha : float
        Concentration, positive.
    seed : int

    Raises
    ------
    ValueError
        If a worker is left empty (the message names it), `alpha` is not positive and finite, or
        there are fewer samples than workers.
    """
    y = _labels(y)
    _check_workers(len(y), n_workers)
    if not 0 < alpha < np.inf:
        raise ValueError(f"alpha={alpha} must be positive and finite; write for example alpha=0.5")
    generator = _generator(seed)
    shards: list[list[NDArray[np.int64]]] = [[] for _ in range(n_workers)]
    for label in np.unique(y):
        members = generator.permutation(np.flatnonzero(y == label).astype(np.int64))
        shares = generator.dirichlet(np.full(n_workers, alpha))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
        for shard, block in zip(shards, np.split(members, cuts), strict=True):
            shard.append(block)
    result = [np.sort(np.concatenate(shard)) for shard in shards]
    empty = [worker for worker, shard in enumerate(result) if len(shard) == 0]
    if empty:
        raise ValueError(
            f"the Dirichlet split leaves worker {empty[0]} without samples ({len(empty)} of "
            f"{n_workers} empty); raise alpha={alpha:g}, lower n_workers or change seed={seed}"
        )
    return result


def _in_order(order: NDArray[np.int64], n_workers: int) -> Shards:
    _check_workers(len(order), n_workers)
    return [np.sort(shard) for shard in np.array_split(order, n_workers)]


def _check_workers(n_samples: int, n_workers: int) -> None:
    if n_workers < 1:
        raise ValueError(f"n_workers={n_workers} is out of range; write 1 or more")
    if n_samples < n_workers:
        raise ValueError(
            f"{n_samples} samples cannot be split among n_workers={n_workers}: worker {n_samples} "
            f"would be empty; write n_workers={max(n_samples, 1)} or fewer"
        )


def _labels(y: Array) -> Array:
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(
            f"labels have shape {y.shape}; pass one label a sample, shape (n_samples,)"
        )
    return y


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))
