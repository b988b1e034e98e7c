"""Logistic regression: the full gradient and gradients of minibatches, dense and CSR, float64.

Data are a9a, w8a and news20 (class 1 against the rest), or made-up ones of their size. A minibatch
is a list of sample numbers, random and the same in every call; picking its rows is part of the
time. Peers without sparse minibatches get rows that are padded to the longest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import expit

from experiments.bench import datasets, frameworks, peers
from experiments.bench.contest import Build, Case, Contestant, NotApplicableError

BATCHES = (None, 1, 32, 1024)  # None: all samples
MOST_PADDING = 16  # times the nonzeros


def cases(quick: bool) -> Iterator[Case]:
    """Dense and sparse; news20 is too wide to be dense."""
    for name in ("a9a", "w8a"):
        for batch in BATCHES:
            yield case(name, False, batch, quick)
    for name in datasets.SHAPES:
        for batch in BATCHES:
            yield case(name, True, batch, quick)


def case(name: str, sparse: bool, batch: int | None, quick: bool = False) -> Case:
    """One of them."""
    data = load(name, quick)
    n = data.A.shape[0]
    if batch is not None and quick:
        batch = min(batch, n)
    rows = batch or n
    # For the roofline, in which zeros need neither be read nor multiplied. With few samples the
    # call itself is what takes time.
    share = rows * data.A.nnz / n if rows >= 32 else 0.0
    by_peers = partial(sparse_by_peer if sparse else dense_by_peer, name, batch, quick)
    builds: dict[str, Build] = {
        "buropt": partial(buropt, name, sparse, batch, quick=quick),
        "scipy" if sparse else "numpy": partial(two_passes, name, sparse, batch, quick),
        **frameworks.each(by_peers, frameworks.OF_ARRAYS),
    }
    if batch is None:
        builds["scikit-learn"] = partial(scikit_learn, name, sparse, quick)
    return Case(
        *("glm", f"{'CSR' if sparse else 'dense'} {name}"),
        "full" if batch is None else f"batch={batch}",
        builds,
        reference="scipy" if sparse else "numpy",
        tolerances={"mlx": 1e-6},  # its exponential of float64 is no better
        flops=4.0 * share,
        bytes=12.0 * share,
        parameters={"data": name, "sparse": sparse, "batch": batch},
        note=data.note,
    )


@cache
def load(name: str, quick: bool) -> datasets.Classification:
    """Read once for all cases."""
    return datasets.classification(name, quick)


@cache
def dense(name: str, quick: bool) -> Any:
    """The matrix with its zeros."""
    return load(name, quick).A.toarray()


@cache
def padded(name: str, quick: bool) -> tuple[Any, Any]:
    """Values and columns of each row, (n, most nonzeros of a row), zeros at the end.

    Raises
    ------
    NotApplicableError
        If most of it would be padding.
    """
    A = load(name, quick).A
    lengths = np.diff(A.indptr)
    if lengths.max() * len(lengths) > MOST_PADDING * A.nnz:
        raise NotApplicableError(f"no sparse minibatches, and padded rows of {name} are too long")
    is_value = np.arange(lengths.max()) < lengths[:, None]
    values, columns = np.zeros(is_value.shape), np.zeros(is_value.shape, np.int32)
    values[is_value], columns[is_value] = A.data, A.indices
    return values, columns


def point(d: int) -> Any:
    return np.linspace(-0.5, 0.5, d)


def minibatch(n: int, batch: int) -> Any:
    return np.random.default_rng(2).integers(0, n, batch)


def buropt(
    name: str, sparse: bool, batch: int | None, threads: int | None = None, quick: bool = False
) -> Contestant:
    import buropt as bo

    def loss(x: Any, a: Any, b: Any) -> Any:
        return np.logaddexp(0, -b * (a @ x))

    A, b, _ = load(name, quick)
    n, d = A.shape
    data = (A if sparse else dense(name, quick), b)
    oracle = bo.compile(loss, np.zeros(d), data=data, threads=threads)
    x, out = point(d), np.empty(d)
    if batch is None:
        return peers.same(lambda: oracle.grad(x, out=out))
    idx = minibatch(n, batch)
    return peers.same(lambda: oracle.grad(x, idx, out=out))


def two_passes(name: str, sparse: bool, batch: int | None, quick: bool) -> Contestant:
    """NumPy's or SciPy's products."""
    A, b, _ = load(name, quick)
    if not sparse:
        A = dense(name, quick)
    n, d = A.shape
    x = point(d)

    def gradient(A: Any, b: Any) -> Any:
        return A.T @ (expit(-b * (A @ x)) * (b / -len(b)))

    if batch is None:
        return peers.same(lambda: gradient(A, b))
    idx = minibatch(n, batch)
    return peers.same(lambda: gradient(A[idx], b[idx]))


def scikit_learn(name: str, sparse: bool, quick: bool) -> Contestant:
    """What its LogisticRegression minimizes."""
    kind = peers.need("sklearn.linear_model._linear_loss").LinearModelLoss
    loss = kind(base_loss=peers.need("sklearn._loss.loss").HalfBinomialLoss(), fit_intercept=False)
    A, b, _ = load(name, quick)
    if not sparse:
        A = dense(name, quick)
    x, y = point(A.shape[1]), (b + 1) / 2
    return peers.same(lambda: loss.gradient(x, A, y))


# In any peer's operations


def _full(ops: Any, x: Any, A: Any, b: Any) -> Any:
    return ops.logistic_loss(b * ops.matvec(A, x))


def _dense_minibatch(ops: Any, x: Any, A: Any, b: Any, idx: Any) -> Any:
    return _full(ops, x, ops.take(A, idx), ops.take(b, idx))


def _padded_minibatch(ops: Any, x: Any, values: Any, columns: Any, b: Any, idx: Any) -> Any:
    products = ops.take(values, idx) * ops.take(x, ops.take(columns, idx))
    return ops.logistic_loss(ops.take(b, idx) * ops.row_sums(products))


def dense_by_peer(
    name: str, batch: int | None, quick: bool, peer: frameworks.Framework
) -> Contestant:
    A, b = dense(name, quick), load(name, quick).b
    data = [peer.array(A), peer.array(b)]
    if batch is None:
        return peer.gradient(_full, point(A.shape[1]), data)
    idx = peer.array(minibatch(len(b), batch))
    return peer.gradient(_dense_minibatch, point(A.shape[1]), [*data, idx])


def sparse_by_peer(
    name: str, batch: int | None, quick: bool, peer: frameworks.Framework
) -> Contestant:
    A, b, _ = load(name, quick)
    x = point(A.shape[1])
    if batch is None:
        return peer.gradient(_full, x, [peer.sparse(A), peer.array(b)])
    data = (*padded(name, quick), b, minibatch(len(b), batch))
    return peer.gradient(_padded_minibatch, x, [peer.array(part) for part in data])
