"""What one iteration of each method costs, all told: step, metrics, history line.

    python -m experiments.rounds a9a w8a mushrooms phishing

The setting of MARINA's paper (arXiv:2102.07845): its nonconvex loss, five workers, RandK (TopK for
EF21). Every run is timed by the wall clock around the whole loop. The reference is the same round
written with SciPy's sparse products and NumPy, without metrics or history.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from buropt import loop
from buropt.budget import Budget
from buropt.compressors import RandK, TopK
from buropt.data import load_libsvm
from buropt.data.dataset import Dataset
from buropt.history import History
from buropt.optim import EF21, GD, Diana, Marina, Optimizer
from buropt.problems import nonconvex_logistic

N_WORKERS = 5
TARGET = 1000.0  # microseconds an iteration


def methods(k: int) -> dict[str, Optimizer[Any]]:
    return {
        "gd": GD(),
        "marina": Marina(compressor=RandK(k)),
        "diana": Diana(compressor=RandK(k)),
        "ef21": EF21(compressor=TopK(k)),
    }


def run(data: Dataset, method: Optimizer[Any], iterations: int, threads: int | None) -> float:
    """Microseconds an iteration of a whole run."""
    problem = nonconvex_logistic(data.A, data.y, split=N_WORKERS, threads=threads)
    settled = method.theory(problem)
    with (
        tempfile.TemporaryDirectory() as folder,
        History.create(Path(folder) / "history.jsonl") as history,
    ):
        start = time.perf_counter()
        loop.minimize(problem, settled, Budget(iterations=iterations), history=history)
        return (time.perf_counter() - start) / iterations * 1e6


def numpy_round(data: Dataset, k: int) -> Callable[[], None]:
    """One compressed MARINA round of five workers: two-pass gradients, RandK, a step."""
    edges = np.linspace(0, data.n_samples, N_WORKERS + 1).astype(int)
    shards = [(data.A[a:b], data.A[a:b].T.tocsr(), data.y[a:b]) for a, b in pairwise(edges)]
    rng = np.random.default_rng(0)
    d = data.n_features
    x, g = np.zeros(d), np.zeros(d)
    kept = np.zeros((N_WORKERS, d))

    def step() -> None:
        nonlocal x, g, kept
        x = x - 1e-3 * g
        grads = np.empty((N_WORKERS, d))
        for i, (A, At, y) in enumerate(shards):
            s = expit(-y * (A @ x))
            grads[i] = At @ (-2 * y * s * s * (1 - s)) / len(y)
        message = np.zeros((N_WORKERS, d))
        for i in range(N_WORKERS):
            chosen = rng.choice(d, k, replace=False)
            message[i, chosen] = (grads - kept)[i, chosen] * (d / k)
        g = g + message.mean(axis=0)
        kept = grads

    return step


def reference(data: Dataset, k: int, iterations: int) -> float:
    step = numpy_round(data, k)
    step()
    start = time.perf_counter()
    for _ in range(iterations):
        step()
    return (time.perf_counter() - start) / iterations * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path, help="LIBSVM files with two classes")
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("-k", type=int, default=10, help="numbers in a message")
    arguments = parser.parse_args()

    names = list(methods(arguments.k))
    table = Table("us/iteration", "NumPy", *names, box=SIMPLE_HEAD)
    for path in arguments.data:
        data = load_libsvm(path)
        times: dict[str, list[float]] = {name: [] for name in ["NumPy", *names]}
        for _ in range(arguments.turns):  # contestants take turns
            times["NumPy"].append(reference(data, arguments.k, arguments.iterations // 10))
            for name, method in methods(arguments.k).items():
                times[name].append(run(data, method, arguments.iterations, arguments.threads))
        medians = {name: median(values) for name, values in times.items()}
        cells = [
            f"{medians[name]:.0f} ({medians[name] / medians['NumPy']:.2f}x)"
            + (" missed" if medians[name] > TARGET else "")
            for name in names
        ]
        table.add_row(path.name, f"{medians['NumPy']:.0f}", *cells)
    Console().print(table, f"target: {TARGET:.0f} us; medians of {arguments.turns} turns")


if __name__ == "__main__":
    main()
