"""Published test problems: solved in no more evaluations than with derivatives written by hand."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hock_schittkowski import CONSTRAINED, hessian_of
from more_garbow_hillstrom_sized import PROBLEMS
from scipy_cases import DERIVATIVES

import buropt.scipy

# SciPy's own tolerances, but where they stop short of the published minima.
OPTIONS = {
    "CG": {"maxiter": 800},
    "L-BFGS-B": {"ftol": 1e-12, "maxiter": 5000, "maxfun": 20000},
    "Newton-CG": {"maxiter": 1000},
    "SLSQP": {"ftol": 1e-12, "maxiter": 2000},
    "TNC": {"maxfun": 5000},
    "trust-constr": {"maxiter": 100},
    "trust-ncg": {"gtol": 1e-5, "maxiter": 5000},
    "trust-krylov": {"gtol": 1e-5, "maxiter": 2000},
}
# On some problems the last bit of a gradient, also of one written by hand, decides how many
# evaluations a method takes. There both sides are run from points moved by that bit, this often.
ROUNDINGS = 15


def compiled(problem):
    """The function with buropt's derivatives."""
    pieces = buropt.scipy.Pieces(problem.f, problem.start)
    return pieces.fun, pieces.jac, pieces.hessp, pieces.hess


def by_hand(problem):
    """The function with the derivatives written by hand."""
    return problem.f, problem.gradient, problem.product, problem.hessian


def evaluations(problem, method, derivatives, rounding=None):
    """What SciPy's run takes to solve the problem; `rounding` moves every point by its last bit."""
    rng = np.random.default_rng(rounding)

    def rounded(function):
        if rounding is None:
            return function
        return lambda x: function(x * (1 + rng.integers(-1, 2, x.shape) * np.finfo(float).eps))

    fun, jac, hessp, hess = derivatives
    given = {"jac": rounded(jac)}
    if method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
        given["hessp"] = hessp
    if method in ("dogleg", "trust-exact"):
        given["hess"] = hess
    result = scipy.optimize.minimize(
        rounded(fun), problem.start, method=method, options=OPTIONS.get(method), **given
    )
    return result.nfev if problem.is_minimum(result.fun) else np.inf


def takes_more(problem, method, derivatives):
    """Whether more evaluations are taken than by hand, and not by the accident of a last bit."""
    if evaluations(problem, method, derivatives) <= evaluations(problem, method, by_hand(problem)):
        return False
    mine, theirs = (
        [evaluations(problem, method, given, rounding) for rounding in range(ROUNDINGS)]
        for given in (derivatives, by_hand(problem))
    )
    larger = scipy.stats.mannwhitneyu(mine, theirs, alternative="greater")
    return bool(np.median(mine) > np.median(theirs)) and larger.pvalue < 0.01


@lru_cache
def solved_by(method):
    """The problems that `buropt.scipy.minimize` solves."""
    options = OPTIONS.get(method)
    return frozenset(
        problem.name
        for problem in PROBLEMS
        if problem.is_minimum(
            buropt.scipy.minimize(problem.f, problem.start, method=method, options=options).fun
        )
    )


@pytest.mark.parametrize("method", DERIVATIVES)
@pytest.mark.filterwarnings("ignore")
def test_no_more_evaluations_than_by_hand(method):
    more = [problem.name for problem in PROBLEMS if takes_more(problem, method, compiled(problem))]
    assert not more


@pytest.mark.parametrize("method", ["BFGS", "CG", "L-BFGS-B"])
def test_finite_differences_take_more(method):
    rosenbrock = PROBLEMS[0]
    fun, _, *second = compiled(rosenbrock)
    differences = partial(scipy.optimize.approx_fprime, f=fun, epsilon=1e-6)
    assert takes_more(rosenbrock, method, (fun, differences, *second))


@pytest.mark.parametrize("method", DERIVATIVES)
@pytest.mark.filterwarnings("ignore")
def test_unconstrained_problems(method):
    # Dogleg is for positive definite Hessians, which many problems do not have all the way.
    assert len(solved_by(method)) >= (15 if method == "dogleg" else 30)


@pytest.mark.filterwarnings("ignore")
def test_25_problems_are_solved_by_every_method():
    assert len(PROBLEMS) == 35
    methods = [method for method in DERIVATIVES if method != "dogleg"]
    assert len(frozenset.intersection(*map(solved_by, methods))) >= 25


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_derivatives_of_the_problems(problem):
    x = problem.start + 0.01 * np.arange(1, 1 + problem.start.size)
    p = np.cos(np.arange(x.size))
    pieces = buropt.scipy.Pieces(problem.f, problem.start)
    for mine, reference in (
        (pieces.fun(x), problem.f(x)),
        (pieces.jac(x), problem.gradient(x)),
        (pieces.hessp(x, p), problem.product(x, p)),
    ):
        assert np.abs(mine - reference).max() <= 1e-12 * np.abs(reference).max()


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize("problem", CONSTRAINED, ids=lambda problem: f"HS{problem.number}")
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
@pytest.mark.filterwarnings("ignore:Singular Jacobian matrix")
def test_constrained_problems(problem, method):
    second = method == "trust-constr"
    options = {"gtol": 1e-12, "xtol": 1e-10} if second else {"ftol": 1e-9}
    given = {"method": method, "bounds": problem.bounds, "options": options}
    result = buropt.scipy.minimize(
        problem.f,
        problem.start,
        constraints=[scipy.optimize.NonlinearConstraint(c, *i) for c, _, i in problem.constraints],
        **given,
    )
    by_hand = [
        scipy.optimize.NonlinearConstraint(
            c, *limits, jac=jacobian, **({"hess": hessian_of(jacobian)} if second else {})
        )
        for c, jacobian, limits in problem.constraints
    ]
    if second:
        given["hessp"] = problem.product
    reference = scipy.optimize.minimize(
        problem.f, problem.start, jac=problem.gradient, constraints=by_hand, **given
    )
    assert result.success
    assert result.fun == pytest.approx(problem.minimum, rel=1e-4, abs=1e-6)
    assert result.nfev <= reference.nfev
