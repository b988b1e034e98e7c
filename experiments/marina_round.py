"""One compressed round of MARINA beside the same in vectorized NumPy: a9a, ten workers, RandK.

    python -m experiments.marina_round --data path/to/a9a

The round is the whole step of the method: x moves, every worker's gradient difference at the new
and the old point over its samples, RandK of it, the mean. The peers keep the slopes of the old
point too:

    NumPy           margins of all workers in one SciPy product, their gradients in another one,
                    fancy indexing by random keys
    NumPy, chosen   coordinates first, and the second product for their rows alone

The least and the median of alternating turns of five rounds, compared by the least.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from buropt.compressors import RandK
from buropt.data import load_libsvm
from buropt.data.dataset import Dataset
from buropt.optim import Marina
from buropt.problems import logistic
from buropt.random import Key

TARGET = 0.15
STEP_SIZE = 0.1


def buropt(data: Dataset, workers: int, k: int, threads: int) -> Callable[[], Any]:
    problem = logistic(data.A, data.y, split=workers, threads=threads)
    method = Marina(step_size=STEP_SIZE, p=1e-12, compressor=RandK(k)).theory(problem)
    state = method.init(problem, problem.x0, Key(0, 0))
    number = 0

    def step() -> Any:
        nonlocal state, number
        number += 1
        state = method.step(problem, state, Key(0, number))
        return state.x

    return step


def numpy(data: Dataset, workers: int, k: int, choose_first: bool) -> Callable[[], Any]:
    A, y = sparse.csr_matrix(data.A), data.y
    (n, d), rng = A.shape, np.random.default_rng(0)
    edges = np.linspace(0, n, workers + 1).astype(int)
    # Row i d + c: column c of worker i.
    blocks = [
        sparse.csr_matrix((part.data, part.indices + first, part.indptr), shape=(d, n))
        for part, first in ((A[a:b].T.tocsr(), a) for a, b in pairwise(edges))
    ]
    columns = sparse.vstack(blocks, format="csr")
    for matrix in (A, columns):
        matrix.indices, matrix.indptr = (
            part.astype(np.int32) for part in (matrix.indices, matrix.indptr)
        )
    first_row, share = d * np.arange(workers)[:, None], workers / n
    x = np.zeros(d)

    def slopes_at(x: Any) -> Any:
        return (-share * y) * expit(-y * (A @ x))

    slopes = slopes_at(x)
    kept = (columns @ slopes).reshape(workers, d)
    g = kept.mean(axis=0)

    def step() -> Any:
        nonlocal x, g, slopes, kept
        x = x - STEP_SIZE * g
        new = slopes_at(x)
        chosen = np.argpartition(rng.random((workers, d)), k, axis=1)[:, :k]
        if choose_first:
            rows = (first_row + chosen).ravel()
            entries = (columns[rows] @ (new - slopes)).reshape(workers, k)
            slopes = new
        else:
            grads = (columns @ new).reshape(workers, d)
            entries = np.take_along_axis(grads - kept, chosen, 1)
            kept = grads
        message = np.zeros((workers, d))
        np.put_along_axis(message, chosen, entries * (d / k), 1)
        g = g + message.mean(axis=0)
        return x

    return step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True, help="LIBSVM file with two classes")
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("-k", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--threads", type=int, default=1, help="of buropt; SciPy has one")
    parser.add_argument("--turns", type=int, default=60)
    arguments = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        print("for one thread set OPENBLAS_NUM_THREADS=1")
    data = load_libsvm(arguments.data)
    for k in arguments.k:
        steps = {
            "buropt": buropt(data, arguments.workers, k, arguments.threads),
            "NumPy": numpy(data, arguments.workers, k, False),
            "NumPy, chosen": numpy(data, arguments.workers, k, True),
        }
        times: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(arguments.turns):
            for name, step in steps.items():
                step()
                start = time.perf_counter()
                for _ in range(5):
                    step()
                times[name].append((time.perf_counter() - start) / 5)
        own = min(times["buropt"])
        print(f"RandK({k}), {arguments.workers} workers, d = {data.n_features}:")
        for name, seconds in times.items():
            ratio = own / min(seconds)
            verdict = "" if name == "buropt" or ratio <= TARGET else f", target {TARGET} missed"
            spread = f"{1e6 * min(seconds):6.0f} us, median {1e6 * median(seconds):6.0f}"
            print(f"  {name:14} {spread}, buropt {ratio:.3f}x{verdict}")


if __name__ == "__main__":
    main()
