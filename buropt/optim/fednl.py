"""FedNL: Newton's method on compressed Hessians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from buropt.compressors import Compressor
from buropt.compressors.symmetric import for_triangles
from buropt.optim.armijo import MOST_TRIALS, rounding_of
from buropt.optim.base import IDENTITY, Array, Optimizer
from buropt.optim.contractive import contraction
from buropt.optim.estimates import Estimates, first_estimates
from buropt.optim.newton import solve
from buropt.triangle import matrix, solve_shifted, triangle_size

if TYPE_CHECKING:
    from buropt.problems.base import Problem
    from buropt.random import Key

Option: TypeAlias = Literal["A", "B"]


class State(NamedTuple):
    """Iterate x (d,), the estimates H_i of the workers' Hessians, and their mean H (d(d+1)/2,)."""

    x: Array
    H_i: Estimates
    H: Array


@dataclass(frozen=True)
class FedNL(Optimizer[State]):
    """FedNL, Safaryan, Islamov, Qian and Richtarik 2021, arXiv:2106.02969.

        worker i:  S_i = C(hess f_i(x) - H_i),  l_i = |hess f_i(x) - H_i|_F,  H_i+ = H_i + alpha S_i
        server:    x+  = x - [mean_i H_i]_mu^-1 grad f(x)                     (option A)
                   x+  = x - (mean_i H_i + mean_i l_i I)^-1 grad f(x)         (option B)

    [H]_mu has the eigenvalues of H below mu raised to mu. The server works with H_i and l_i from
    before the update. alpha = 1 for contractive compressors, 1/(1 + omega) for unbiased ones. Near
    the solution of a strongly convex problem |x - x*| converges linearly at a rate that does not
    depend on the condition, and superlinearly. With `line_search` the step is halved until f
    decreases by half of the linear prediction, and convergence is global.

    C compresses the upper triangle, with off-diagonal entries times sqrt(2), so that the Euclidean
    norm is the Frobenius norm and alpha, omega mean the same; k counts entries of the triangle.
    RankR and PowerSGD approximate the matrix itself.

    Parameters
    ----------
    option : {"A", "B"}
    alpha : float, optional
        In (0, 1].
    mu : float, optional
        Of option A; None: the problem's.
    line_search : bool
    hessian_start : bool
        Start from the Hessians at x0, dense messages; otherwise from 0.
    compressor : Compressor
        Contractive such as TopK, or unbiased.

    Notes
    -----
    Problems: strongly convex; option B convex.
    Step size: 1, or found by backtracking.
    Oracle: 1 full gradient, the Hessian of every worker; 1 value for each trial of a line search.
    Bits: d + 1 floats and 1 compressed triangle up, d down; d(d+1)/2 floats at the start.
    Memory: x; H_i of every worker.
    Source: arXiv:2106.02969, Algorithm 1; line search: Algorithm 3.
    """

    option: Option = "A"
    alpha: float | None = None
    mu: float | None = None
    line_search: bool = False
    hessian_start: bool = True
    compressor: Compressor = IDENTITY

    def __post_init__(self) -> None:
        self.require_choice("option", get_args(Option))
        self.require_positive("alpha", at_most=1)
        self.require_positive("mu")

    def theory(self, problem: Problem) -> FedNL:
        require_convex(self, problem)
        mu = self.mu
        if self.option == "A" and mu is None:
            mu = problem.constants.mu
            if mu == 0:
                raise self.no_theorem("mu = 0; give optimizer.mu, or write optimizer.option=B")
        alpha = shift_step(self.alpha, self.compressor, problem.dim)
        return self.settled_with(problem, mu=mu, alpha=alpha)

    def init(self, problem: Problem, x0: Array, key: Key) -> State:
        return State(x0, *first_estimates(problem, x0, self.hessian_start))

    def step(self, problem: Problem, state: State, key: Key) -> State:
        if self.alpha is None:
            raise self.unsettled("alpha")
        x, H = state.x, state.H
        problem.broadcast()
        f, g = problem.value_and_grad(x)
        problem.send_dense()
        problem.send_entries(1)
        learned = state.H_i.learned(problem, x, H, self.compressor, self.alpha, key)
        if self.option == "A":
            d = projected_step(H, self.mu or 0.0, g)
        else:
            d = newton_step(H, float(np.mean(learned.before)), g)
        s = self._search(problem, x, f, g, d) if self.line_search else 1.0
        return State(x + s * d, learned.H_i, learned.H)

    def _search(self, problem: Problem, x: Array, f: float, g: Array, d: Array) -> float:
        s, slope = 1.0, 0.5 * float(g @ d)
        for _ in range(MOST_TRIALS):
            problem.send_entries(1)
            if problem.value(x + s * d) <= f + s * slope + rounding_of(f, x):
                break
            s /= 2
        return s


def require_convex(method: Optimizer[Any], problem: Problem) -> None:
    """Refuse a problem that Newton steps may lead to a saddle point of."""
    if not problem.constants.convex:
        raise method.no_theorem("it is not known to be convex; take optimizer=cubic_newton")


def shift_step(alpha: float | None, compressor: Compressor, dim: int) -> float:
    """The step alpha of the estimates: as given, or 1 for contractive, 1/(1 + omega) otherwise."""
    if alpha is not None:
        return alpha
    contracts = contraction(for_triangles(compressor), triangle_size(dim))
    return contracts if compressor.unbiased else 1.0


def newton_step(H: Array, shift: float, g: Array) -> Array:
    """-(H + shift I)^-1 g for the triangle H; of a singular matrix the pseudo-inverse."""
    step = solve_shifted(H, shift, g)
    if np.isnan(step).any():
        dim = len(g)
        step = solve(matrix(H, dim) + shift * np.eye(dim, dtype=g.dtype), g)
    return -step


def projected_step(H: Array, mu: float, g: Array) -> Array:
    """-[H]_mu^-1 g for the triangle H, where no eigenvalue is below mu."""
    if not np.isnan(solve_shifted(H, -mu, g)).any():  # H - mu I is positive definite
        return newton_step(H, 0.0, g)
    return -solve_above(matrix(H, len(g)), mu, g)


def solve_above(H: Array, mu: float, g: Array) -> Array:
    """[H]_mu^-1 g, where no eigenvalue is below mu."""
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        return np.full_like(g, np.nan)
    eigenvalues, vectors = np.linalg.eigh(H)
    step: Array = vectors @ ((vectors.T @ g) / np.maximum(eigenvalues, mu))
    return step.astype(g.dtype, copy=False)
