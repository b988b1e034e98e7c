"""SAGA and SVRG on sparse l2-regularized logistic regression, beside scikit-learn's `saga`.

    python -m experiments.linear_loops path/to/a9a

Everybody passes over the data as often, with the same step size 1/(3 Lmax), uniform samples with
replacement and no intercept, on one thread; what is compared is the time of a step and the squared
norm of the gradient at the end. Times are medians of alternating turns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from statistics import median
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import buropt as bo
from buropt.data import load_libsvm
from buropt.inner import LinearLoops
from buropt.problems.logistic import loss


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("data", nargs="+", help="LIBSVM files with two classes")
    parser.add_argument("--passes", type=int, default=50)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    for path in options.data:
        data = load_libsvm(path)
        print(f"{path}: {data.A.shape[0]} x {data.A.shape[1]}, {options.passes} passes")
        times: dict[str, list[float]] = {}
        errors: dict[str, float] = {}
        for _ in range(options.turns):
            for name, run in (("saga", saga), ("svrg", svrg), ("scikit-learn saga", sklearn_saga)):
                seconds, x = run(data.A, data.y, options.passes)
                times.setdefault(name, []).append(seconds)
                errors[name] = grad_norm_sq(data.A, data.y, x)
        steps = options.passes * data.A.shape[0]
        reference = median(times["scikit-learn saga"])
        for name, all_times in times.items():
            seconds = median(all_times)
            print(
                f"  {name:18} {seconds / steps * 1e9:6.0f} ns a step, "
                f"{seconds / reference:.2f}x, |grad f|^2 = {errors[name]:.1e}"
            )


def step_size(A: Any, l2: float) -> float:
    return float(1 / (3 * (A.multiply(A).sum(axis=1).max() / 4 + l2)))


def start(A: Any, y: Any) -> tuple[LinearLoops, Any]:
    return LinearLoops(bo.compile(loss, np.zeros(A.shape[1]), (A, y))), np.zeros(A.shape[1])


def saga(A: Any, y: Any, passes: int) -> tuple[float, Any]:
    loops, x = start(A, y)
    n = A.shape[0]
    gamma, rng = step_size(A, 1 / n), np.random.default_rng(0)
    begin = time.perf_counter()
    table, mean = loops.slopes(x)
    for _ in range(passes):
        loops.saga(x, table, mean, rng.integers(0, n, n), gamma, l2=1 / n)
    return time.perf_counter() - begin, x


def svrg(A: Any, y: Any, passes: int) -> tuple[float, Any]:
    """Two passes of inner steps after every full gradient, which is not counted as a pass."""
    loops, x = start(A, y)
    n = A.shape[0]
    gamma, rng = step_size(A, 1 / n), np.random.default_rng(0)
    begin = time.perf_counter()
    for epoch in range(0, passes, 2):
        anchor, mean = loops.slopes(x)
        steps = n * min(2, passes - epoch)
        loops.svrg(x, anchor, mean, rng.integers(0, n, steps), gamma, l2=1 / n)
    return time.perf_counter() - begin, x


def sklearn_saga(A: Any, y: Any, passes: int) -> tuple[float, Any]:
    A = A.copy()
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    model = LogisticRegression(
        solver="saga", C=1.0, max_iter=passes, tol=0, fit_intercept=False, random_state=0
    )
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(A, y)
    return time.perf_counter() - begin, model.coef_[0]


def grad_norm_sq(A: Any, y: Any, x: Any) -> float:
    n = A.shape[0]
    g = A.T @ (-y / (1 + np.exp(y * (A @ x)))) / n + x / n
    return float(g @ g)


if __name__ == "__main__":
    main()
