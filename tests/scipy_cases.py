"""What the tests of buropt.scipy share."""

from __future__ import annotations

import numpy as np

import buropt as bo

DERIVATIVES = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "trust-ncg"]
DERIVATIVES += ["trust-krylov", "trust-constr", "dogleg", "trust-exact"]
START = np.array([-1.2, 1.0])


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def logistic(dtype=np.float64, n=200, d=4, **options):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)).astype(dtype)
    b = rng.choice([-1.0, 1.0], n).astype(dtype)
    return bo.compile(
        lambda x, a, b: np.logaddexp(0, -b * (a @ x)),
        np.zeros(d, dtype),
        data=(A, b),
        regularizer=lambda x: 0.05 * (x @ x),
        **options,
    )
