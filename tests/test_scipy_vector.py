"""Least squares, curves, roots and constraints: functions with several results."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from more_garbow_hillstrom_sized import PROBLEMS
from scipy_cases import START, logistic, rosenbrock

import buropt as bo
import buropt.scipy
from buropt.scipy.sparse_jacobian import SparseJacobian, grouped
from buropt.scipy.vector import in_a_row


def residuals(x):
    return [10 * (x[1] - x[0] ** 2), 1 - x[0]]


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    result = buropt.scipy.least_squares(residuals, START, method=method)
    assert result.success
    assert np.allclose(result.x, 1)
    assert np.array_equal(result.jac, [[-20 * result.x[0], 10], [-1, 0]])
    by_hand = scipy.optimize.least_squares(
        lambda x: np.array(residuals(x)),
        START,
        jac=lambda x: np.array([[-20 * x[0], 10], [-1, 0]]),
        method=method,
    )
    assert result.nfev <= by_hand.nfev


def test_least_squares_of_nested_parameters():
    t = np.linspace(0, 1, 20)

    def fit(params, y, power=1):
        return {"all": (params["a"] * np.exp(-params["k"][0] * t) - y) ** power}

    y = 2 * np.exp(-3 * t)
    start = {"a": np.array(1), "k": [np.ones(1)]}
    for options in ({}, {"sparse": True}, {"bounds": {"a": (0, 5), "k": [(None, 10.0)]}}):
        result = buropt.scipy.least_squares(fit, start, args=(y,), kwargs={"power": 1}, **options)
        assert result.x["a"] == pytest.approx(2)
        assert result.x["k"][0] == pytest.approx(3)
        if options.get("sparse"):
            assert sp.issparse(result.jac)
        else:
            assert result.jac["k"][0].shape == (20, 1)
            assert result.jac["a"].shape == (20,)
        assert result.grad["k"][0].shape == (1,)


@pytest.mark.parametrize(
    "bounds",
    [
        (0, 1.2),
        ([0, -9], [1.2, 9]),
        [(0, 1.2), (None, None)],
        scipy.optimize.Bounds([0, -9], [1.2, 9]),
    ],
    ids=str,
)
def test_bounds_of_least_squares(bounds):
    def residuals_of_pair(p):
        return [p[0] ** 2 - 2, p[1] - 3]

    result = buropt.scipy.least_squares(lambda x: [x[0] ** 2 - 2, x[1] - 1], [1, 1], bounds=bounds)
    assert np.allclose(result.x, [1.2, 1])
    pair = (1, np.array(1.0))
    if isinstance(bounds, list):
        nested = buropt.scipy.least_squares(residuals_of_pair, pair, bounds=bounds)
        assert np.allclose(nested.x, [1.2, 3])


@pytest.mark.parametrize("method", ["trf", "dogbox"])
def test_sparse_least_squares(method):
    def broyden(x):
        left, right = np.concatenate([[0], x[:-1]]), np.concatenate([x[1:], [0]])
        return (3 - 2 * x) * x - left - 2 * right + 1

    start = -np.ones(500)
    result = buropt.scipy.least_squares(broyden, start, sparse=True, method=method)
    assert result.success
    assert result.cost < 1e-12
    assert sp.issparse(result.jac)
    assert result.jac.nnz == 3 * 500 - 2
    assert np.array_equal(result.jac.toarray(), bo.jacobian(broyden)(result.x))


def test_residuals_that_are_not_finite():
    def root_of(x):
        return np.sqrt(x) - 2

    assert buropt.scipy.least_squares(root_of, [1.0]).x == pytest.approx(4)
    with pytest.raises(ValueError, match="not finite in the initial point"):
        buropt.scipy.least_squares(root_of, [-1.0])
    with np.errstate(invalid="ignore"):
        edge = buropt.scipy.least_squares(np.sqrt, [0.0], max_nfev=3, method="lm")
    assert not edge.success
    assert edge.status == -1


def test_oracles_have_no_residuals():
    for call in (buropt.scipy.least_squares, buropt.scipy.root):
        with pytest.raises(TypeError, match="an oracle has one value"):
            call(logistic(), np.zeros(4))


# Structure

MAPS = {
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1] ** 2,
    "picked": lambda x: x[np.array([2, 0, 1])],
    "rolled": lambda x: np.roll(x, 1),
    "differences": np.diff,
    "sums of rows": lambda x: x.reshape(2, 3).T.sum(axis=0),
    "repeated": lambda x: np.repeat(x, 2),
    "padded": lambda x: np.pad(x, 1),
    "columns": lambda x: x.reshape(2, 3)[:, [0, 2]].ravel(),
    "convolution": lambda x: np.convolve(x, [1.0, 2.0], "same"),
    "products of neighbours": lambda x: np.maximum(x, 0)[1:] * x[:-1],
    "a branch": lambda x: np.where(x > 0, np.exp(x), x**2),
    "a constant matrix": lambda x: (np.tril(np.ones((6, 6))) - np.eye(6)).T @ np.sin(x),
    "from the right": lambda x: x.reshape(2, 3) @ np.array([[1.0, 0], [0, 0], [2, 2]]),
    "of two products": lambda x: x.reshape(2, 3) @ x.reshape(3, 2),
    "running sums": np.cumsum,
    "sorted": np.sort,
    "an arrow": lambda x: np.concatenate([x**2, np.sum(x**2)[None], x[0] * x]),
    "independent": lambda x: np.floor(x),
}


@pytest.mark.parametrize("name", MAPS)
def test_structure_has_every_entry(name):
    row = in_a_row(MAPS[name])
    jacobian = SparseJacobian(row, 6)
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = rng.standard_normal(6)
        dense = bo.jacobian(row)(x)
        assert np.array_equal(jacobian(x).toarray(), dense)
        assert not dense[jacobian.structure.toarray() == 0].any()


@pytest.mark.parametrize(
    ("name", "entries", "products"),
    [
        ("differences", 10, 2),
        ("backwards", 6, 1),
        ("rolled", 6, 1),
        ("columns", 4, 1),
        ("padded", 6, 1),
        ("a branch", 6, 1),
        ("a constant matrix", 15, 5),
        ("convolution", 11, 2),
    ],
)
def test_structure_is_as_small_as_it_can_be(name, entries, products):
    jacobian = SparseJacobian(in_a_row(MAPS[name]), 6)
    assert (jacobian.structure.nnz, jacobian.n_products) == (entries, products)


def test_a_full_line_or_column_is_no_obstacle():
    line = SparseJacobian(lambda x: np.concatenate([x[1:] ** 2, np.sum(x**2)[None]]), 50)
    column = SparseJacobian(lambda x: x[0] * x**2, 50)
    assert line.n_products == column.n_products == 2
    x = np.linspace(1, 2, 50)
    assert np.allclose(column(x).toarray(), bo.jacobian(lambda x: x[0] * x**2)(x))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_jacobians_of_published_problems(problem):
    x = problem.start + 0.01 * np.arange(1, 1 + problem.start.size)
    exact = problem.jacobian(x)
    found = SparseJacobian(in_a_row(problem.residuals), x.size)(x).toarray()
    assert np.abs(found - exact).max() <= 1e-12 * np.abs(exact).max()


def test_groups_share_no_row():
    structure = sp.csr_array(1.0 * (np.random.default_rng(0).random((40, 30)) < 0.1))
    groups = grouped(structure)
    marks = structure.toarray() != 0
    for group in range(groups.max() + 1):
        assert marks[:, groups == group].sum(axis=1).max() <= 1


# Curves


def test_curve_fit():
    x = np.linspace(0, 4, 50)

    def model(x, a, k, c):
        return a * np.exp(-k * x) + c

    y = model(x, 2.5, 1.3, 0.5) + 0.01 * np.sin(37 * x)
    mine, cov = buropt.scipy.curve_fit(model, x, y)
    theirs, their_cov = scipy.optimize.curve_fit(
        model,
        x,
        y,
        jac=lambda x, a, k, c: np.stack(
            [np.exp(-k * x), -a * x * np.exp(-k * x), np.ones(50)], axis=1
        ),
    )
    assert np.allclose(mine, theirs, rtol=1e-10)
    assert np.allclose(cov, their_cov, rtol=1e-6)
    bounded, _ = buropt.scipy.curve_fit(model, x, y, bounds=(0, [3.0, 2, 0.4]))
    assert bounded[2] == pytest.approx(0.4, abs=1e-6)
    *_, info, _, flag = buropt.scipy.curve_fit(
        model, x, y, p0=[1, 1, 1], sigma=np.full(50, 0.1), full_output=True
    )
    assert flag in (1, 2, 3, 4)
    assert info["nfev"] > 1
    two, _ = buropt.scipy.curve_fit(lambda x, a, b: a * x[0] + b * x[1], np.stack([x, x**2]), 3 * x)
    assert np.allclose(two, [3, 0], atol=1e-12)


# Roots


def circles(x):
    return np.stack([x[0] ** 2 + x[1] ** 2 - 4, x[0] - x[1]])


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov"])
def test_root(method):
    result = buropt.scipy.root(circles, [1, 0], method=method)
    assert result.success
    assert np.allclose(result.x, np.sqrt(2), atol=1e-5)
    if method in ("hybr", "lm"):
        assert result.njev >= 1
        assert np.array_equal(result.fun, bo.jvp(circles, (result.x,), (result.x,))[0])


def test_roots_of_nested_parameters_and_args():
    def system(params, radius):
        return {"sum": params["p"] ** 2 + params["q"] ** 2 - radius**2, "gap": params["p"]}

    start = {"p": np.array([1.0]), "q": np.array([1.0])}
    result = buropt.scipy.root(system, start, args=2.0)
    assert result.x["q"][0] == pytest.approx(2)
    found = buropt.scipy.fsolve(system, start, args=(3.0,))
    assert found["q"][0] == pytest.approx(3)
    x, info, flag, _ = buropt.scipy.fsolve(circles, [1.0, 0], full_output=True, xtol=1e-10)
    assert flag == 1
    assert info["njev"] >= 1
    assert np.allclose(x, np.sqrt(2))
    seen = []
    buropt.scipy.root(
        lambda p: p["p"] ** 3 - 8,
        {"p": np.ones(2)},
        method="broyden1",
        callback=lambda x, f: seen.append(x["p"]),
    )
    assert seen
    assert seen[-1].shape == (2,)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_root_that_is_not_finite():
    result = buropt.scipy.root(lambda x: np.log(x), [-1.0])
    assert not result.success
    assert result.status == -1


# Constraints


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", None])
def test_constraints_get_exact_derivatives(method):
    calls = []

    def disc(x):
        calls.append(x)
        return 1.5 - x[0] ** 2 - x[1] ** 2

    for constraint in (
        {"type": "ineq", "fun": disc},
        scipy.optimize.NonlinearConstraint(disc, 0, np.inf),
        buropt.scipy.NonlinearConstraint(disc, 0, np.inf, START),
        [{"type": "ineq", "fun": disc}],
    ):
        calls.clear()
        result = buropt.scipy.minimize(rosenbrock, [0, 0], method=method, constraints=constraint)
        assert np.allclose(result.x, [0.90723, 0.82276], atol=1e-3)
        assert len(calls) <= 4  # traced, and no differences


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_that_are_not_finite(method):
    constraint = scipy.optimize.NonlinearConstraint(lambda x: np.log(x[0]), -np.inf, 0)
    result = buropt.scipy.minimize(
        lambda x: np.sum((x + 1) ** 2),
        [0.5, 0.5],
        method=method,
        constraints=constraint,
        options={"maxiter": 50},
    )
    assert not result.success
    assert np.isfinite(result.x).all()


def test_a_constraint_of_scipys_own():
    exact = buropt.scipy.NonlinearConstraint(circles, 0, [0, np.inf], START)
    x, v = np.array([0.3, 0.7]), np.array([2.0, 5.0])
    assert np.array_equal(exact.jac(x), [[0.6, 1.4], [1, -1]])
    assert np.allclose(exact.hess(x, v) @ np.array([1.0, 2.0]), [4, 8])
    pieces = buropt.scipy.Pieces(rosenbrock, START)
    result = scipy.optimize.minimize(
        pieces.fun,
        pieces.x0,
        jac=pieces.jac,
        hessp=pieces.hessp,
        method="trust-constr",
        constraints=[buropt.scipy.NonlinearConstraint(lambda x: x[0] * x[1], 2, 2, START)],
    )
    assert result.x[0] * result.x[1] == pytest.approx(2)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_of_nested_parameters(method):
    start = {"a": np.array([1.0]), "b": np.array([2.0])}

    def distance(p):
        return np.sum((p["a"] - 3) ** 2) + np.sum((p["b"] - 3) ** 2)

    for constraint in (
        scipy.optimize.NonlinearConstraint(lambda p: p["a"] + p["b"], 4, 4),
        scipy.optimize.NonlinearConstraint(
            lambda p: p["a"] + p["b"],
            4,
            4,
            jac=lambda x: np.ones((1, 2)),
            hess=lambda x, v: 0 * np.eye(2),
        ),
        scipy.optimize.LinearConstraint(np.ones((1, 2)), 4, 4),
        buropt.scipy.NonlinearConstraint(lambda p: p["a"] + p["b"], 4, 4, start),
    ):
        result = buropt.scipy.minimize(distance, start, method=method, constraints=constraint)
        assert result.x["a"] == pytest.approx(2, abs=1e-4)
    by_dict = {
        "type": "eq",
        "fun": lambda p, c: p["a"] + p["b"] - c,
        "jac": lambda x, c: np.ones((1, 2)),
        "args": (4.0,),
    }
    if method == "SLSQP":
        assert buropt.scipy.minimize(distance, start, constraints=by_dict).x["a"][0] == (
            pytest.approx(2, abs=1e-4)
        )


# Global searches


def rastrigin(x):
    return 10 * x.size + np.sum(x**2 - 10 * np.cos(2 * np.pi * x))


SEED = "rng" if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 15) else "seed"


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "trust-ncg", "SLSQP"])
def test_basinhopping(method):
    result = buropt.scipy.basinhopping(
        rastrigin,
        [1.2, 0.8],
        minimizer_kwargs={"method": method},
        niter=60,
        stepsize=1.0,
        **{SEED: 1},
    )
    assert result.fun == pytest.approx(0, abs=1e-8)
    assert result.fun == buropt.scipy.Pieces(rastrigin, np.zeros(2)).fun(result.x)
    assert result.lowest_optimization_result.njev > 0


def test_dual_annealing():
    box = [(-5.12, 5.12)] * 2
    result = buropt.scipy.dual_annealing(rastrigin, box, maxiter=400, **{SEED: 3})
    assert result.fun == pytest.approx(0, abs=1e-8)
    products = buropt.scipy.dual_annealing(
        lambda x, a: rastrigin(x) + a,
        scipy.optimize.Bounds([-5, -5], [5, 5]),
        args=(2.0,),
        maxiter=150,
        minimizer_kwargs={"method": "trust-constr", "options": {"maxiter": 30}},
        **{SEED: 3},
    )
    assert products.fun == pytest.approx(2, abs=1e-5)


def test_global_searches_of_nested_parameters():
    start = {"u": np.array([1.0]), "v": np.array([0.6])}

    def nested(p):
        return rastrigin(np.concatenate([p["u"], p["v"]]))

    seen = []
    found = buropt.scipy.basinhopping(
        nested, start, niter=20, callback=lambda x, f, accept: seen.append(x["u"]), **{SEED: 1}
    )
    assert found.x["u"].shape == found.lowest_optimization_result.x["v"].shape == (1,)
    assert len(seen) == 20 + 1
    bounds = {"u": (-2, 2), "v": (-2, 2)}
    box = buropt.scipy.dual_annealing(nested, bounds, x0=start, maxiter=200, **{SEED: 1})
    assert box.x["u"] == pytest.approx(0, abs=1e-6)
