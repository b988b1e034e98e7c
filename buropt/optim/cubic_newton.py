"""Newton's method with cubic regularization."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buropt.optim.base import Array, Optimizer
from buropt.optim.newton import solve

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

FLAT = 1e-10  # eigenvalues of this part of the largest are lost in rounding


class State(NamedTuple):
    """Iterate x (d,) and its gradient g (d,)."""

    x: Array
    g: Array


@dataclass(frozen=True)
class CubicNewton(Optimizer[State]):
    """Cubic regularization of Newton's method, Nesterov and Polyak 2006.

        x+ = x + argmin_s  <grad f(x), s> + <H s, s>/2 + (M/6) |s|^3,   H = Hessian of f at x

    With M at least the Lipschitz constant of the Hessian, f decreases by M |s|^3 / 12 at least from
    any start; in T steps one x has a gradient of O(T^(-2/3)) and a Hessian without eigenvalues
    below -O(T^(-1/3)) (Theorem 1); on convex functions f - f* = O(1/T^2), and near a strongly
    convex minimum convergence is quadratic. M = 0, right for quadratics, is Newton's method.

    The minimum is -(H + (M r / 2) I)^-1 grad f(x) with r = |s|, found by bisection in the basis of
    eigenvectors of H.

    Parameters
    ----------
    M : float, optional
        None: the problem's bound.

    Notes
    -----
    Problems: smooth, with Lipschitz Hessian.
    Step size: none; M = Lipschitz constant of the Hessian.
    Oracle: 1 full gradient, 1 Hessian.
    Bits: d + d(d+1)/2 floats up, d down.
    Memory: x, g; H while a step is taken.
    Source: Nesterov and Polyak 2006, Theorems 1, 3 and 4.
    """

    M: float | None = None

    def __post_init__(self) -> None:
        if self.M != 0:
            self.require_positive("M")

    def theory(self, problem: Problem) -> CubicNewton:
        M = problem.constants.L_hessian if self.M is None else self.M
        if M is None:
            raise self.no_theorem("no bound of its third derivatives is known; give optimizer.M")
        return self.settled_with(problem, M=M)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        problem.send_dense()
        return State(x0, problem.grad(x0))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.M is None:
            raise self.unsettled("M")
        problem.send_entries(problem.dim * (problem.dim + 1) // 2)
        hessian = problem.hessian(state.x)
        s = -solve(hessian, state.g) if self.M == 0 else cubic_step(hessian, state.g, self.M)
        x = state.x + s
        problem.broadcast()
        problem.send_dense()
        return State(x, problem.grad(x))


def cubic_step(hessian: Array, g: Array, M: float) -> Array:
    """argmin_s <g, s> + <H s, s>/2 + (M/6) |s|^3, (d,), also where H is not positive definite."""
    if not (np.isfinite(hessian).all() and np.isfinite(g).all()):
        return np.full_like(g, np.nan)
    eigenvalues, vectors = np.linalg.eigh(hessian.astype(np.float64))
    along = vectors.T @ g.astype(np.float64)
    smallest = float(eigenvalues[0])
    # H + (M r/2) I has to be positive semidefinite; |s(r)| falls with r: |s(r)| = r has one root.
    low = max(0.0, -2 * smallest / M)

    def length(r: float) -> float:
        shifted = eigenvalues + 0.5 * M * r
        with np.errstate(divide="ignore"):
            terms = np.where(along == 0, 0.0, along / np.where(along == 0, 1.0, shifted))
        return float(np.sqrt(np.sum(terms * terms)))

    high = max(2 * low, math.sqrt(2 * math.sqrt(float(along @ along)) / M) + low)
    if length(low) <= low:  # the hard case: g has no part along the smallest eigenvalue
        high = low
    while length(high) > high:
        high *= 2
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if length(middle) > middle else (low, middle)
    return np.asarray(vectors @ _coordinates(eigenvalues + 0.5 * M * high, along, high), g.dtype)


def _coordinates(shifted: Array, along: Array, r: float) -> Array:
    """The step in the basis of eigenvectors; where `shifted` vanishes, by its length r."""
    flat = shifted <= FLAT * np.abs(shifted).max()
    step = np.where(flat, 0.0, -along / np.where(flat, 1.0, shifted))
    missing = r * r - float(step @ step)
    if flat.any() and missing > 0:
        direction = np.where(flat, -along, 0.0)
        if not direction.any():
            direction[0] = 1.0
        step += direction * math.sqrt(missing / float(direction @ direction))
    return step
