"""Published test problems: solved with as few evaluations as with derivatives written by hand."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import scipy.optimize
from hock_schittkowski import CONSTRAINED, hessian_of
from more_garbow_hillstrom_sized import PROBLEMS
from scipy_cases import DERIVATIVES

import buropt.scipy

OPTIONS = {
    "CG": {"maxiter": 800},
    "L-BFGS-B": {"ftol": 1e-15, "gtol": 1e-8, "maxiter": 5000, "maxfun": 20000},
    "Newton-CG": {"xtol": 1e-8, "maxiter": 400},
    "SLSQP": {"ftol": 1e-12, "maxiter": 1000},
    "TNC": {"ftol": 1e-14, "gtol": 1e-8, "maxfun": 1500},
    "trust-constr": {"gtol": 1e-7, "xtol": 1e-10, "maxiter": 100},
    "trust-ncg": {"gtol": 1e-7, "maxiter": 5000},
    "trust-krylov": {"gtol": 1e-7, "maxiter": 2000},
    "trust-exact": {"gtol": 1e-7},
}
# A last bit can send a method another way, also that of a derivative written by hand. So a run that
# takes longer is compared with runs by hand that are rounded in other ways.
ROUNDINGS = 60


def by_hand(problem, method, rounding=0):
    """SciPy's run with the derivatives written by hand."""
    rng = np.random.default_rng(rounding)

    def rounded(function):
        if rounding == 0:
            return function

        def call(x):
            exact = function(x)
            return exact * (1 + rng.integers(-1, 2, np.shape(exact)) * np.finfo(float).eps)

        return call

    given = {"jac": rounded(problem.gradient)}
    if method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
        given["hessp"] = problem.product
    if method in ("dogleg", "trust-exact"):
        given["hess"] = problem.hessian
    return scipy.optimize.minimize(
        rounded(problem.f), problem.start, method=method, options=OPTIONS.get(method), **given
    )


@lru_cache
def solved_by(method):
    """The problems that buropt's derivatives solve; compares each with the derivatives by hand."""
    solved = set()
    for problem in PROBLEMS:
        result = buropt.scipy.minimize(
            problem.f, problem.start, method=method, options=OPTIONS.get(method)
        )
        reference = by_hand(problem, method)
        is_solved = problem.is_minimum(result.fun)
        if is_solved:
            solved.add(problem.name)
        # What a line search takes that gives up for want of precision is an accident.
        if not (problem.is_minimum(reference.fun) and reference.success):
            continue
        if is_solved and result.nfev <= reference.nfev:
            continue
        others = (by_hand(problem, method, k) for k in range(1, ROUNDINGS))
        assert any(
            not (other.success and problem.is_minimum(other.fun))
            or (is_solved and result.nfev <= other.nfev)
            for other in others
        ), problem.name
    return frozenset(solved)


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
