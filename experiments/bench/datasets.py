"""Data of the benchmarks: the real files where a folder has them, else made-up ones of their size.

The folder is that of --data; child processes find it in the environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = "BUROPT_BENCH_DATA"


class Shape(NamedTuple):
    """Of a LIBSVM file."""

    n_samples: int
    n_features: int
    nonzeros: int
    """Of a row, on average."""
    file: str
    positive: float | None = None
    """This class against the rest, where there are many."""


SHAPES = {
    "a9a": Shape(32561, 123, 14, "a9a"),
    "w8a": Shape(49749, 300, 12, "w8a"),
    "news20": Shape(15935, 62061, 80, "news20.bz2", 1.0),
}


class Classification(NamedTuple):
    """Samples of two classes."""

    A: Any
    """(n, d), CSR, float64."""
    b: Any
    """(n,), -1 and +1."""
    note: str
    """Where they are from."""


def classification(name: str, quick: bool) -> Classification:
    """The data set, or in quick mode a small one of its sparsity."""
    shape = SHAPES[name]
    file = find(shape.file)
    if file is None or quick:
        return _made_up(name, shape._replace(n_samples=300) if quick else shape)
    # Imported late: processes that measure memory import this module.
    import scipy.sparse as sp

    from buropt.data import load_libsvm

    data = load_libsvm(file, positive=shape.positive)
    return Classification(sp.csr_array(data.A), data.y, f"{name}: the real data")


def _made_up(name: str, shape: Shape) -> Classification:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    n, d, k = shape[:3]
    # Columns of a row differ: one from each of k equal parts.
    edges = np.linspace(0, d, k + 1).astype(int)
    columns = rng.integers(edges[:-1], edges[1:], (n, k))
    starts = np.arange(n + 1, dtype=np.int32) * k
    values = np.ones(n * k) if d < 1000 else rng.uniform(0, 1, n * k)
    A = sp.csr_array((values, columns.astype(np.int32).ravel(), starts), shape=(n, d))
    return Classification(A, rng.choice([-1.0, 1.0], n), f"{name}: made-up data of its size")


def find(name: str) -> Path | None:
    """A file in the folder of data; None if there is no folder or no such file."""
    folder = os.environ.get(FOLDER)
    if not folder or not (path := Path(folder) / name).exists():
        return None
    return path
