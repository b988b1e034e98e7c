"""SciPy's methods with buropt's derivatives beside the same with derivatives in NumPy.

    python -m experiments.scipy_minimize --data a9a

Prints the time of trust-ncg on logistic regression, data in LIBSVM format, and of L-BFGS-B on the
10-dimensional Rosenbrock function with SciPy's own `rosen` and `rosen_der`: medians of runs that
take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from scipy.special import expit

import buropt as bo
import buropt.scipy
from buropt.data import load_libsvm

L2 = 1e-3
ROSENBROCK_START = np.tile([-1.2, 1.0], 5)
Array = Any


def loss(x: Array, a: Array, b: Array) -> Array:
    return np.logaddexp(0, -b * (a @ x))


def penalty(x: Array) -> Array:
    return L2 / 2 * (x @ x)


def rosenbrock(x: Array) -> Array:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


class ByHand:
    """Value, gradient and Hessian product of the same objective in NumPy and SciPy.

    `keeps` the margins and curvatures at the last point, which the product then does not recompute.
    """

    def __init__(self, A: sp.csr_array, y: Array, keeps: bool) -> None:
        self.A, self.At, self.y, self.keeps = A, A.T.tocsr(), y, keeps
        self.x: Array = None

    def margins(self, x: Array) -> Array:
        if self.keeps and self.x is not None and np.array_equal(x, self.x):
            return self.m
        self.x, self.m = x.copy(), self.y * (self.A @ x)
        return self.m

    def value(self, x: Array) -> float:
        return float(np.logaddexp(0, -self.margins(x)).mean() + L2 / 2 * (x @ x))

    def gradient(self, x: Array) -> Array:
        slopes = -self.y * expit(-self.margins(x))
        return self.At @ slopes / len(self.y) + L2 * x

    def product(self, x: Array, p: Array) -> Array:
        s = expit(self.margins(x))
        return self.At @ (s * (1 - s) * (self.A @ p)) / len(self.y) + L2 * p


def compared(runs: dict[str, Callable[[], Any]], repeats: int) -> None:
    """Print the median time of each run, and how it compares with the first."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            started = time.perf_counter()
            result = run()
            times[name].append(time.perf_counter() - started)
            assert result.success, result.message
    first = median(next(iter(times.values())))
    for name, each in times.items():
        result = runs[name]()
        took = median(each)
        print(
            f"  {name:34}{1e3 * took:9.3f} ms  {took / first:5.2f}   f {result.fun:.9g}, "
            f"{result.nfev} evaluations, {result.get('nhev', 0)} products"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a file in LIBSVM format, e.g. a9a")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()

    data = load_libsvm(options.data)
    A, y = data.A, data.y
    x0 = np.zeros(A.shape[1])
    oracle = bo.compile(loss, x0, data=(A, y), regularizer=penalty)
    again, keeping = ByHand(A, y, keeps=False), ByHand(A, y, keeps=True)
    trust = {"method": "trust-ncg", "options": {"gtol": 1e-8}}

    def by_hand(hand: ByHand) -> Callable[[], Any]:
        return lambda: scipy.optimize.minimize(
            hand.value, x0, jac=hand.gradient, hessp=hand.product, **trust
        )

    print(f"trust-ncg, logistic regression on {data.name}, {A.shape[0]} x {A.shape[1]}")
    compared(
        {
            "NumPy": by_hand(again),
            "NumPy that keeps the margins": by_hand(keeping),
            "SciPy with the oracle's methods": lambda: scipy.optimize.minimize(
                oracle.value, x0, jac=oracle.grad, hessp=oracle.hvp, **trust
            ),
            "buropt.scipy.minimize": lambda: buropt.scipy.minimize(oracle, x0, **trust),
        },
        options.repeats,
    )

    pieces = buropt.scipy.Pieces(rosenbrock, ROSENBROCK_START)
    quasi = {"method": "L-BFGS-B"}
    print("L-BFGS-B, Rosenbrock function of 10 variables")
    compared(
        {
            "rosen, rosen_der": lambda: scipy.optimize.minimize(
                scipy.optimize.rosen, ROSENBROCK_START, jac=scipy.optimize.rosen_der, **quasi
            ),
            "SciPy with buropt.scipy.Pieces": lambda: scipy.optimize.minimize(
                pieces.fun, pieces.x0, jac=pieces.jac, **quasi
            ),
            "buropt.scipy.minimize": lambda: buropt.scipy.minimize(
                rosenbrock, ROSENBROCK_START, **quasi
            ),
        },
        5 * options.repeats,
    )


if __name__ == "__main__":
    main()
