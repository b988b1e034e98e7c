"""How a method draws samples, and the constants that its theory needs of the draw.

    nice          batch_size distinct samples, all subsets alike (without replacement)
    independent   batch_size independent samples, uniform (with replacement)
    importance    the same with probabilities p_j = L_j / sum_k L_k; the gradients of the losses get
                  weights w_j = 1/(N p_j), that of the regularizer stays
    reshuffled    every epoch goes through a new random order of all samples, batch by batch

Each is a function of the key. The first three give unbiased gradients, with expected smoothness

    E|g(x) - g(x*)|^2 <= 2 Ls (f(x) - f*)

for convex losses (Gower et al. 2019, arXiv:1901.09401), where for a batch of b out of N

    nice          Ls = N (b-1) / (b (N-1)) L + (N-b) / (b (N-1)) Lmax
    independent   Ls = (1 - 1/b) L + Lmax / b
    importance    Ls = (1 - 1/b) L + max_j (w_j (L_j - R) + R) / b

with the smoothness R of the regularizer; without one the last is (1 - 1/b) L + mean_j L_j / b. The
first is the paper's. All follow from the exact second moment of a batch mean of u_j = grad f_j(x) -
grad f_j(x*), and from |u_j|^2 <= 2 L_j D_j for convex smooth functions, whose D_j have the mean
f(x) - f*; the tests check the moments by enumeration.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from buropt.random import Places, Purpose

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

Index: TypeAlias = NDArray[np.integer[Any]]
Sampling: TypeAlias = Literal["nice", "independent", "importance", "reshuffled"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)
Corrected: TypeAlias = Literal["nice", "importance"]
CORRECTED: tuple[str, ...] = get_args(Corrected)
"""Of methods that correct the gradients of a batch by old ones."""


class Batch(NamedTuple):
    """Sample numbers, shape (b,), and weights (b,) unless all are 1."""

    idx: Index
    weights: NDArray[np.floating[Any]] | None


def draw(problem: Problem, sampling: Sampling, batch_size: int, key: Key) -> Batch:
    """The batch of the round of the key."""
    n = problem.n_samples
    if sampling == "nice":
        return Batch(subset(key.fold(Purpose.SAMPLE), n, batch_size), None)
    if sampling == "independent":
        return Batch(key.fold(Purpose.SAMPLE).integers(0, n, batch_size), None)
    if sampling == "reshuffled":
        return Batch(reshuffled(key, n, batch_size), None)
    one = draw_by_smoothness(problem, batch_size, key, 1)
    return Batch(one.idx[0], None if one.weights is None else one.weights[0])


def draw_rounds(
    problem: Problem, sampling: Sampling, batch_size: int, key: Key, rounds: int
) -> Batch:
    """What `draw` gives in this and the following rounds: idx (r, b), and weights likewise.

    As many rounds as were asked for, or fewer, where an epoch ends.
    """
    n, samples = problem.n_samples, key.fold(Purpose.SAMPLE)
    if sampling == "nice":
        return Batch(samples.subsets(rounds, n, batch_size), None)
    if sampling == "independent":
        return Batch(samples.integers_of_rounds(rounds, 0, n, batch_size), None)
    if sampling == "reshuffled":
        order, place = reshuffled_order(key, n, batch_size)
        full = (n - place) // batch_size
        if full == 0:
            return Batch(order[None, place:], None)
        end = place + min(full, rounds) * batch_size
        return Batch(order[place:end].reshape(-1, batch_size), None)
    return draw_by_smoothness(problem, batch_size, key, rounds)


def draw_by_smoothness(
    problem: Problem, batch_size: int, key: Key, rounds: int, uniform: float = 0.0
) -> Batch:
    """Independent draws with probabilities (1 - uniform) L_j / sum_k L_k + uniform / N."""
    places, weights = _by_smoothness(problem, uniform)
    idx = key.fold(Purpose.SAMPLE).proportional(rounds, places, batch_size)
    return Batch(idx, weights[idx])


class _BySmoothness(NamedTuple):
    """What draws in proportion to scores need, and the array of the L_j that it is made of."""

    L_j: NDArray[np.float64]
    places: Places
    weights: NDArray[np.floating[Any]]


_KNOWN: WeakKeyDictionary[Problem, dict[float, _BySmoothness]] = WeakKeyDictionary()


def _by_smoothness(problem: Problem, uniform: float) -> tuple[Places, NDArray[np.floating[Any]]]:
    """The places of draws, and the weights (n_samples,); kept as long as the problem."""
    L_j = sample_smoothness(problem)
    known = _KNOWN.setdefault(problem, {})
    if uniform not in known or known[uniform].L_j is not L_j:
        scores = smoothness_scores(problem, uniform)
        weights = draw_weights(scores).astype(problem.x0.dtype)
        known[uniform] = _BySmoothness(L_j, Places(np.cumsum(scores)), weights)
    return known[uniform].places, known[uniform].weights


def smoothness_scores(problem: Problem, uniform: float = 0.0) -> NDArray[np.float64]:
    """What the probabilities of `draw_by_smoothness` are proportional to, (n_samples,)."""
    L_j = sample_smoothness(problem)
    scores: NDArray[np.float64] = (1 - uniform) * L_j + uniform * np.mean(L_j)
    return scores


def draw_weights(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/(N p_j) of draws in proportion to the scores; 0 for samples that are not drawn."""
    weights: NDArray[np.float64] = np.divide(
        np.mean(scores), scores, out=np.zeros_like(scores), where=scores > 0
    )
    return weights


def expected_smoothness(problem: Problem, sampling: Sampling, batch_size: int) -> float:
    """Ls of the module's text, for a sampling that is unbiased."""
    c = problem.constants
    full, sample = moment_weights(problem.n_samples, batch_size, sampling != "nice")
    if sampling == "importance":
        return full * c.L + sample * largest_smoothness(problem, "importance")
    return full * c.L + sample * c.L_sample_max


def largest_smoothness(problem: Problem, sampling: Corrected, uniform: float = 0.0) -> float:
    """Lmax for uniform draws; otherwise that of w_j f_j and w_j loss_j + r, whose mean is f.

    For p_j = L_j / sum_k L_k the w_j f_j all have the mean of the L_j.
    """
    c = problem.constants
    if sampling == "nice":
        return c.L_sample_max
    w_j = draw_weights(smoothness_scores(problem, uniform))
    rest = np.where(w_j > 0, np.maximum(1 - w_j, 0), 0) * c.L_regularizer
    return float(np.max(w_j * sample_smoothness(problem) + rest))


def moment_weights(n_samples: int, batch_size: int, replacement: bool) -> tuple[float, float]:
    """The weights (A, B) in E|mean of a batch of u|^2 = A |mean u|^2 + B mean |u|^2."""
    if replacement:
        return 1 - 1 / batch_size, 1 / batch_size
    if n_samples == 1:
        return 1.0, 0.0
    scale = batch_size * (n_samples - 1)
    return n_samples * (batch_size - 1) / scale, (n_samples - batch_size) / scale


def solution_noise(problem: Problem, sampling: Sampling, batch_size: int) -> float | None:
    """E|g(x*) - grad f(x*)|^2 of a sampling that is unbiased; None if x* is not known."""
    if sampling == "importance":
        scores = smoothness_scores(problem)
        squares, p_j = problem.weighted_noise(draw_weights(scores)), scores / scores.sum()
    else:
        squares, p_j = problem.sample_noise, np.full(problem.n_samples, 1 / problem.n_samples)
    if squares is None or sampling == "reshuffled":
        return None
    _, sample = moment_weights(problem.n_samples, batch_size, sampling != "nice")
    return float(sample * (p_j @ squares))


def require_batch(method: str, batch_size: int | None, n_samples: int) -> None:
    """Refuse a batch without replacement of more samples than there are."""
    if batch_size is not None and batch_size > n_samples:
        raise ValueError(
            f"{method}.batch_size={batch_size} is more than the {n_samples} samples: lower it"
        )


def subset(key: Key, n: int, size: int) -> Index:
    """A uniform subset of 0, ..., n - 1, as (size,).

    It is made of the first `size` distinct values of a sequence of independent draws; beyond half
    of n the complement is drawn instead.
    """
    if size == 1:
        return key.integers(0, n, 1)
    drawn = min(size, n - size)
    chosen = np.empty(0, dtype=np.int64)
    draws = drawn + drawn // 2 + 8
    while chosen.size < drawn:
        values, first = np.unique(key.integers(0, n, draws), return_index=True)
        chosen = values[np.argsort(first)][:drawn]
        draws *= 2
    if drawn == size:
        return chosen
    rest = np.ones(n, dtype=bool)
    rest[chosen] = False
    return np.flatnonzero(rest)


def proportional(key: Key, weights: NDArray[np.float64], size: int) -> Index:
    """Independent draws, (size,), of j with probability weights[j] / sum(weights)."""
    ends: NDArray[np.float64] = np.cumsum(weights)
    points = key.integers(0, 2**53, size) * (ends[-1] / 2**53)
    drawn: Index = np.minimum(np.searchsorted(ends, points, side="right"), len(weights) - 1)
    return drawn


def reshuffled(key: Key, n_samples: int, batch_size: int) -> Index:
    """The batch of this round: epochs take ceil(N / b) rounds, the last batch may be shorter."""
    order, place = reshuffled_order(key, n_samples, batch_size)
    return order[place : place + batch_size]


def reshuffled_order(key: Key, n_samples: int, batch_size: int) -> tuple[Index, int]:
    """The order of this round's epoch, and where in it the round's batch begins."""
    per_epoch = -(-n_samples // batch_size)
    epoch, place = divmod(max(key.round - 1, 0), per_epoch)
    return permutation(key.at(epoch).fold(Purpose.SAMPLE), n_samples), place * batch_size


@lru_cache(maxsize=4)
def permutation(key: Key, n: int) -> Index:
    """A random order of 0, ..., n - 1; kept, since an epoch asks for it in every round."""
    order = np.argsort(key.integers(0, 2**63 - 1, n), kind="stable")
    order.setflags(write=False)
    return order


def worker_batches(problem: Problem, batch_size: int, key: Key) -> Index:
    """Independent uniform draws from each worker's own samples, (n_workers, batch_size)."""
    shards = problem.oracle.shards
    draws = key.fold(Purpose.SAMPLE).integers(0, 2**31, (len(shards), batch_size))
    return np.stack(
        [shard[row * len(shard) >> 31] for shard, row in zip(shards, draws, strict=True)]
    )


def local_batches(
    problem: Problem, workers: Index, steps: int, batch_size: int | None, key: Key
) -> Iterator[Index | None]:
    """For each of a round's local steps the workers' batches (s, batch_size); None: all samples."""
    if batch_size is None:
        yield from itertools.repeat(None, steps)
    else:
        draws = worker_batches(problem, steps * batch_size, key)[workers]
        for k in range(steps):
            yield draws[:, k * batch_size : (k + 1) * batch_size]


def participants(problem: Problem, clients: int | None, key: Key) -> Index:
    """A uniform subset of the workers, in order; all for None."""
    if clients is None or clients == problem.n_workers:
        return np.arange(problem.n_workers)
    return np.sort(subset(key.fold(Purpose.WORKER), problem.n_workers, clients))


def require_clients(method: str, clients: int | None, n_workers: int) -> None:
    """Refuse more participants than there are workers."""
    if clients is not None and clients > n_workers:
        raise ValueError(
            f"{method}.clients={clients} is more than the {n_workers} workers: lower it"
        )


def local_smoothness(problem: Problem) -> NDArray[np.float64]:
    """Smoothness of the functions f_ij of which f_i is the mean, (n_workers, largest shard).

    f_ij is |S_i| n/N times the loss of sample j plus the regularizer. Shorter rows end in zeros.
    """
    shards, n_samples = problem.oracle.shards, problem.n_samples
    L_j = problem.constants.L_samples
    L_j = np.full(n_samples, problem.constants.L_sample_max) if L_j is None else L_j
    table = np.zeros((len(shards), max(len(shard) for shard in shards)))
    for i, shard in enumerate(shards):
        table[i, : len(shard)] = max(1.0, len(shard) * len(shards) / n_samples) * L_j[shard]
    return table


def average_local_smoothness(problem: Problem) -> float:
    """Sqrt of the mean of L_ij^2 over each worker's samples, then over the workers."""
    sizes = [len(shard) for shard in problem.oracle.shards]
    squares = np.square(local_smoothness(problem)).sum(axis=1) / sizes
    return float(np.sqrt(np.mean(squares)))


def sample_smoothness(problem: Problem) -> NDArray[np.float64]:
    """L_j of all samples, shape (n_samples,)."""
    L_j = problem.constants.L_samples
    if L_j is None:
        raise ValueError(
            f"{problem.name} does not know the smoothness of single samples: take sampling=nice"
        )
    return L_j
