"""Time until f - f* <= 1e-10 on logistic regression, beside scikit-learn and cyanure.

    python -m experiments.time_to_accuracy path/to/a9a path/to/w8a --regularization 1 0.1 0.01

f(x) = (1/N) sum_j log(1 + exp(-y_j a_j'x)) + (c / (2N)) |x|^2 without intercept, in double
precision, on one thread; c = 1 is scikit-learn's default. f* is that of Newton's method.

buropt's methods are timed from `init` on, the oracle compiled, with step sizes stated in the table;
values on the way are computed outside the clock, after every pass or epoch. A peer does not show
its way: the least number of iterations that reaches the accuracy is looked for first (with that the
peers have no cost of finding out when to stop), then the whole `fit` with this number is timed. Of
cyanure's solvers the quickest counts. Everybody takes turns, unless a run takes more than SLOW
seconds; the table has medians. Times are the processor's, so that what else runs on the machine
counts as little as it can.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from buropt.budget import Limits
from buropt.data import load_libsvm
from buropt.optim import LSVRG, SAGA, SVRG, LKatyusha, MiG
from buropt.problems import Problem, logistic
from buropt.problems.base import Counters
from buropt.random import Key

ACCURACY = 1e-10
PASSES = 300  # gradients of every sample that a method of ours gets
SLOW = 3.0
MOST = 600  # iterations that a peer gets
CYANURE = ("auto", "qning-miso", "catalyst-miso")
Timed = Callable[[], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("data", nargs="+", help="LIBSVM files with two classes")
    parser.add_argument("--regularization", nargs="+", type=float, default=[1.0, 0.1, 0.01])
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    for path in options.data:
        data = load_libsvm(path)
        for weight in options.regularization:
            n = data.A.shape[0]
            problem = logistic(data.A, data.y, l2=weight / n, threads=1)
            print(f"{path}: {n} x {data.A.shape[1]}, l2 = {weight:g}/N")
            runs: dict[str, Timed] = {}
            for name, run in competitors(problem, data.A, data.y):
                runs[name] = run
            times: dict[str, list[float]] = {name: [] for name in runs}
            for _ in range(options.turns):
                for name, run in runs.items():
                    times[name].append(run())
            for name, all_times in sorted(times.items(), key=lambda item: median(item[1])):
                print(f"  {name:56} {median(all_times) * 1e3:8.1f} ms", flush=True)


def competitors(problem: Problem, A: Any, y: Any) -> Iterator[tuple[str, Timed]]:
    """Everybody's name, and a function that gives the seconds of a run."""
    for name, method in methods(problem):
        first = seconds(problem, method)
        if first == np.inf:
            print(f"  {name}: not within {PASSES} passes", flush=True)
        elif first > SLOW:
            yield f"{name}, once", lambda first=first: first
        else:
            yield name, partial(seconds, problem, method)
    A = sp.csr_matrix(A)
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    l2 = problem.inner.l2 or 0.0
    peers = [("scikit-learn saga", partial(sklearn_fit, A, y, l2))]
    try:
        import cyanure.estimators  # noqa: F401
    except ImportError:
        print("  cyanure is not installed")
    else:
        for solver in CYANURE:
            peers.append((f"cyanure {solver}", partial(cyanure_fit, A, y, l2, solver)))
    for name, fit in peers:
        iterations = least(lambda count, fit=fit: gap(problem, fit(count)[1]) <= ACCURACY)
        if iterations is None:
            print(f"  {name}: not within {MOST} iterations")
        else:
            yield f"{name}, {iterations} iterations", lambda k=iterations, fit=fit: fit(k)[0]


def methods(problem: Problem) -> Iterator[tuple[str, Any]]:
    """buropt's: steps of the theorems, and those that are taken in practice."""
    n, mu = problem.n_samples, problem.constants.mu
    L_max, L_mean = problem.constants.L_sample_max, float(np.mean(problem.constants.L_samples))
    yield "SAGA, theorem's step 1/(3 Lmax)", SAGA()
    yield "SAGA, batches of 2, step 1/Lmax", SAGA(batch_size=2, step_size=1 / L_max)
    yield (
        "SVRG, batches of 2, m = N/2, step 1.5/Lmax",
        SVRG(step_size=1.5 / L_max, m=n // 2, batch_size=2),
    )
    yield "SAGA, step 1/(2 Lmax)", SAGA(step_size=0.5 / L_max)
    yield "SVRG, m = N, step 0.7/Lmax", SVRG(step_size=0.7 / L_max, m=n)
    importance = {"sampling": "importance"}
    yield (
        "SAGA, importance sampling, step 1/(2 Lmean)",
        SAGA(step_size=0.5 / L_mean, **importance),
    )
    for m, name in ((n, "N"), (n // 2, "N/2")):
        yield (
            f"SVRG, importance sampling, m = {name}, step 0.8/Lmean",
            SVRG(step_size=0.8 / L_mean, m=m, **importance),
        )
    yield (
        "L-SVRG, importance sampling, p = 1/N, step 0.8/Lmean",
        LSVRG(step_size=0.8 / L_mean, **importance),
    )
    yield "MiG, theorem's step", MiG()
    yield "MiG, importance sampling, theorem's step", MiG(**importance)
    yield "L-Katyusha, importance sampling, theorem's step", LKatyusha(**importance)
    for factor in (1.0, 0.5):
        V = factor * L_mean
        m = n // 4
        theta = min(math.sqrt(m * mu / V), 0.5)
        tuned = {"m": m, "theta": theta, "step_size": 1 / (theta * V)}
        yield f"MiG, m = N/4, V = {factor:g} Lmean", MiG(**tuned)
        yield (
            f"MiG, importance sampling, m = N/4, V = {factor:g} Lmean",
            MiG(**tuned, **importance),
        )


def seconds(problem: Problem, method: Any) -> float:
    """Of a run until the accuracy is reached, infinite if it is not."""
    original, problem = problem, replace(problem, counters=Counters())
    method = method.theory(problem)
    limits = Limits(sample_grads=problem.n_samples, seconds=1e9)
    started = time.process_time()
    state = method.init(problem, problem.x0, Key(0, 0))
    used = time.process_time() - started
    iteration = 0
    while gap(original, state.x) > ACCURACY:
        if problem.epochs > PASSES or not gap(original, state.x) < 1e3:
            return float("inf")
        started = time.process_time()
        state, done = method.run(problem, state, Key(0, iteration + 1), limits)
        used += time.process_time() - started
        iteration += done
    return used


def gap(problem: Problem, x: Any) -> float:
    return float(problem.oracle.value(x)) - lowest(problem)


@lru_cache
def lowest(problem: Problem) -> float:
    """f*, by Newton's method; the error is about the square of the last gradient's over 2 l2."""
    x = problem.x0.copy()
    for _ in range(30):
        x -= np.linalg.solve(problem.oracle.hessian(x), problem.oracle.grad(x))
    return float(problem.oracle.value(x))


def least(reaches: Callable[[int], bool]) -> int | None:
    """The least number of iterations that reaches the accuracy, within an eighth."""
    low, high = 0, 16
    while not reaches(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > max(1, high // 8):
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high


def sklearn_fit(A: Any, y: Any, l2: float, iterations: int) -> tuple[float, Any]:
    model = LogisticRegression(
        solver="saga",
        C=1 / (A.shape[0] * l2),
        max_iter=iterations,
        tol=0,
        fit_intercept=False,
        random_state=0,
    )
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(A, y)
    return time.process_time() - started, model.coef_[0]


def cyanure_fit(A: Any, y: Any, l2: float, solver: str, iterations: int) -> tuple[float, Any]:
    from cyanure.estimators import LogisticRegression as Cyanure

    model = Cyanure(
        penalty="l2",
        lambda_1=l2,
        fit_intercept=False,
        solver=solver,
        tol=1e-16,
        max_iter=iterations,
        duality_gap_interval=MOST,
        verbose=False,
        n_threads=1,
        random_state=0,
    )
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(A, y)
    return time.process_time() - started, np.ravel(model.coef_)


if __name__ == "__main__":
    main()
