"""Constants of any compiled objective, estimated from its Hessians at chosen points.

They are the constants of the Hessians *there*, the largest or smallest over the points; elsewhere f
may be rougher, so none is a bound, and `Constants.source` calls each an estimate. Points are the
start, where a quasi-Newton method ends, half of the way, and random ones around that end, as far
from it as the start is.

Small Hessians are formed. Of large ones the extreme eigenvalues come from Lanczos's method, which
asks for products with vectors alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buropt.problems.constants import Constants, root_mean_square
from buropt.problems.minimum import descent, strongly_convex_minimum
from buropt.problems.spectra import squared_norms

if TYPE_CHECKING:
    from buropt.oracle import Oracle

Vector: TypeAlias = NDArray[np.float64]
Product: TypeAlias = Callable[[Vector], Vector]

log = logging.getLogger("buropt.problems")

FORMED = 2e9  # n_workers * dim^3 up to which all Hessians are formed and decomposed
STEPS = 32  # of Lanczos's method: more than the largest eigenvalue needs
EXHAUSTED = 1e-12  # what is left of a vector that lies in the space already, relative to it
TOLERANCE = 1e-6  # by which an eigenvalue of a convex function may be below 0, relative to L
ITERATIONS = 200  # of the quasi-Newton method
SAMPLES = 32  # of which single Hessians are looked at, where they are not known by one number


def estimated_constants(
    oracle: Oracle, *, points: int = 6, convex: bool | None = None
) -> Constants:
    """L, L_i, L_sample_max, L+, L+-, mu and the minimum, as estimates; logged.

    Parameters
    ----------
    oracle : Oracle
    points : int
        How many points, at least 1.
    convex : bool, optional
        Whether the losses of all samples are known to be convex; None: if no Hessian of f or of
        a worker has a negative eigenvalue at the points.

    Returns
    -------
    Constants
        mu > 0, and a minimum, only of convex f.

    Raises
    ------
    ValueError
        If the oracle has no data, points is below 1, or the Hessians are 0 or not finite.
    """
    if oracle.n_samples == 0:
        raise ValueError("a problem needs data, and this oracle was compiled without")
    if points < 1:
        raise ValueError(f"points must be at least 1, got {points}")
    found = _Extremes()
    end = descent(oracle, maxiter=ITERATIONS)
    for x in _points(oracle, end, points):
        found.add(_at(oracle, x))
    if not max(found.L) > 0:
        raise ValueError(
            f"the Hessian of this loss is 0 at all of {points} points: a loss that is linear piece "
            "by piece has no smoothness to estimate; take one with curvature"
        )
    low, L_i = min(found.low), np.max(found.L_i, axis=0)
    L, lowest = max(found.L), min(found.low_worker)
    if convex is None:
        convex = lowest >= -TOLERANCE * float(np.max(L_i))
    mu = max(low, 0.0) if convex else 0.0
    where = f"estimate: at {points} points"
    n = oracle.n_workers
    source = {
        "L": f"{where}, |lambda|_max(hess f)",
        "L_i": f"{where}, |lambda|_max(hess f_i)",
        "L_sample_max": f"{where}, {_samples_say(oracle)}",
        "L_plus": f"{where}, sqrt(lambda_max(mean (hess f_i)^2))",
        "L_pm": f"{where}, sqrt(lambda_max(mean (hess f_i - hess f)^2))",
        "mu": f"{where}, lambda_min(hess f)" if mu > 0 else "not strongly convex, or not known",
        "f_star": "estimate: solved to rounding, if mu is right" if mu > 0 else "not known",
    }
    log.info(
        "the constants are estimates, from Hessians at %d points: L = %.4g, L_max = %.4g, "
        "mu = %.4g, %s",
        *(points, L, float(np.max(L_i)), mu, "convex" if convex else "not convex"),
    )
    return Constants(
        L=L,
        L_i=L_i,
        L_sample_max=max(*found.L_sample, L),
        L_plus=min(max(found.L_plus), root_mean_square(L_i)) if n > 1 else L,
        L_pm=max(found.L_pm) if n > 1 else 0.0,
        mu=mu,
        mu_worker=max(lowest, 0.0) if convex else 0.0,
        convex=convex,
        minimum=partial(strongly_convex_minimum, oracle, mu) if mu > 0 else None,
        source=source,
    )


@dataclass
class _Extremes:
    """Each constant at each point."""

    L: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    L_i: list[Vector] = field(default_factory=list)
    low_worker: list[float] = field(default_factory=list)
    L_plus: list[float] = field(default_factory=list)
    L_pm: list[float] = field(default_factory=list)
    L_sample: list[float] = field(default_factory=list)

    def add(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            getattr(self, name).append(value)


def _points(oracle: Oracle, end: Vector, count: int) -> Iterator[Vector]:
    start = np.asarray(oracle.x0, np.float64)
    yield from [start, end, (start + end) / 2][:count]
    rng = np.random.Generator(np.random.Philox(0))
    radius = float(np.linalg.norm(start - end)) or 1.0
    for _ in range(count - 3):
        direction = rng.standard_normal(oracle.dim)
        yield end + radius * direction / np.linalg.norm(direction)


def _at(oracle: Oracle, x: Vector) -> dict[str, Any]:
    """The constants of the Hessians at x."""
    n, dim = oracle.n_workers, oracle.dim
    at = x.astype(oracle.dtype)
    if not np.isfinite(oracle.hvp(at, np.ones(dim, oracle.dtype))).all():
        raise ValueError(
            f"the Hessian of this loss is not finite at a point of length {np.linalg.norm(x):.3g}, "
            "so its smoothness cannot be estimated; scale the data, or start elsewhere"
        )
    if n * dim**3 <= FORMED:
        H_i = np.asarray(oracle.worker_hessians(at), np.float64)
        H = H_i.mean(axis=0)
        values, values_i = np.linalg.eigvalsh(H), np.linalg.eigvalsh(H_i)
        low, high, lows, highs = values[0], values[-1], values_i[:, 0], values_i[:, -1]
        D_i = H_i - H
        second, variance = np.mean(H_i @ H_i, axis=0), np.mean(D_i @ D_i, axis=0)
        top_second, top_variance = (np.linalg.eigvalsh(M)[-1] for M in (second, variance))
    else:
        of_f = _wide(oracle.hvp_at(at), oracle)
        of_workers = [_worker_product(oracle, at, i) for i in range(n)]

        def second_moment(v: Vector) -> Vector:
            total: Vector = np.add.reduce([product(product(v)) for product in of_workers])
            return total / n

        low, high = _ends(of_f, dim)
        lows, highs = np.array([_ends(product, dim) for product in of_workers]).T
        _, top_second = _ends(second_moment, dim)
        _, top_variance = _ends(lambda v: second_moment(v) - of_f(of_f(v)), dim)
    return {
        "L": max(abs(float(low)), abs(float(high))),
        "low": float(low),
        "L_i": np.maximum(np.abs(lows), np.abs(highs)),
        "low_worker": float(lows.min()),
        "L_plus": math.sqrt(max(float(top_second), 0.0)),
        "L_pm": math.sqrt(max(float(top_variance), 0.0)),
        "L_sample": _sample_smoothness(oracle, at),
    }


def _worker_product(oracle: Oracle, x: Any, i: int) -> Product:
    """Products with the Hessian of worker i."""
    samples, weights = list(oracle._worker_shares())[i]
    return _wide(lambda v: oracle.hvp(x, v, samples, weights), oracle)


def _wide(product: Callable[[Any], Any], oracle: Oracle) -> Product:
    """The product with vectors of float64, whatever the oracle computes in."""
    return lambda v: np.asarray(product(v.astype(oracle.dtype)), np.float64)


def _sample_smoothness(oracle: Oracle, x: Any) -> float:
    """The largest |lambda| of the Hessians of samples, regularizer included."""
    model = oracle._linear_model
    if model is not None:
        first, nothing = np.zeros(1, np.int64), np.zeros(1, oracle.dtype)
        penalty = _ends(_wide(lambda v: oracle.hvp(x, v, first, nothing), oracle), oracle.dim)
        weights = oracle._weights_for(None, None)
        scale = 1.0 if weights is None else np.abs(np.asarray(weights))
        curvatures = np.abs(model.curvatures(x)) * scale * squared_norms(model.rows, axis=1)
        return float(np.max(curvatures)) + float(np.max(np.abs(penalty)))
    chosen = np.unique(np.linspace(0, oracle.n_samples - 1, SAMPLES).astype(np.int64))
    ends = [_ends(_of_sample(oracle, x, j), oracle.dim) for j in chosen]
    return max(max(abs(low), abs(high)) for low, high in ends)


def _of_sample(oracle: Oracle, x: Any, j: np.int64) -> Product:
    return _wide(lambda v: oracle.hvp(x, v, np.array([j])), oracle)


def _samples_say(oracle: Oracle) -> str:
    if oracle._linear_model is not None:
        return "max_j |phi''_j| |a_j|^2 + |hess r|"
    return f"|lambda|_max of the Hessians of {min(SAMPLES, oracle.n_samples)} samples"


def _ends(product: Product, dim: int) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of a symmetric operator, from inside.

    They are eigenvalues of the operator on a Krylov space, made by Lanczos's method with full
    orthogonalization; exact if the space is whole.
    """
    start = np.random.Generator(np.random.Philox(0)).standard_normal(dim)
    Q = np.empty((min(STEPS, dim), dim))  # an orthonormal row for each step
    images: list[Vector] = []
    v, norm = start, float(np.linalg.norm(start))
    for k in range(len(Q)):
        Q[k] = v / norm
        images.append(product(Q[k]))
        v = images[-1]
        for _ in range(2):  # once leaves rounding errors that grow
            v = v - Q[: k + 1].T @ (Q[: k + 1] @ v)
        norm = float(np.linalg.norm(v))
        if not norm > EXHAUSTED * float(np.linalg.norm(images[-1])):
            break
    n = len(images)
    values = np.linalg.eigvalsh(Q[:n] @ np.stack(images).T)
    return float(values[0]), float(values[-1])
