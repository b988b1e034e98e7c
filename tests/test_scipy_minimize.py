"""buropt.scipy.minimize: SciPy's methods, and what their results promise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from scipy_cases import DERIVATIVES, START, logistic, rosenbrock

import buropt as bo
import buropt.scipy

SMOOTH = [method for method in DERIVATIVES if method != "dogleg"]
BOUNDED = ["L-BFGS-B", "TNC", "SLSQP", "trust-constr"]


@pytest.mark.parametrize("method", [*DERIVATIVES, "Nelder-Mead", "Powell", None])
def test_every_method_finds_the_minimum(method):
    result = buropt.scipy.minimize(rosenbrock, [-1.2, 1], method=method)
    assert result.success
    assert np.allclose(result.x, 1, atol=2e-3)
    assert result.fun < 1e-6
    assert type(result.fun) is float
    assert result.fun == buropt.scipy.Pieces(rosenbrock, START).fun(result.x)
    assert result.n_evaluations <= result.nfev + 1


@pytest.mark.parametrize("method", ["trust-ncg", "trust-krylov", "Newton-CG"])
def test_products_with_the_hessian_are_asked_for(method):
    result = buropt.scipy.minimize(rosenbrock, START, method=method)
    assert result.success
    assert result.fun < 1e-8
    assert result.nhev > 0


@pytest.mark.parametrize("method", SMOOTH)
def test_the_value_is_that_at_the_result_to_the_last_bit(method):
    rng = np.random.default_rng(3)
    oracle = bo.compile(
        lambda p, a, b: (p["v"] @ np.tanh(p["W"] @ a) - b) ** 2,
        {"W": rng.standard_normal((3, 64)) / 9, "v": rng.standard_normal(3) / 5},
        data=(rng.standard_normal((555, 64)), rng.standard_normal(555)),
    )
    options = {"maxfun": 5} if method == "TNC" else {"maxiter": 3}
    result = buropt.scipy.minimize(oracle, method=method, options=options)
    x = oracle.flatten(result.x)
    assert result.fun == oracle.value(x)
    gradient = result.grad if method == "trust-constr" else result.jac
    assert np.array_equal(oracle.flatten(gradient), oracle.grad(x))
    assert not result.success


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "SLSQP", "TNC", "trust-constr"])
def test_single_precision(method):
    def distance(x):
        return np.sum((x - np.array([1, 2, 3], np.float32)) ** 2)

    result = buropt.scipy.minimize(distance, np.zeros(3, np.float32), method=method)
    assert result.success
    assert np.allclose(result.x, [1, 2, 3], atol=1e-5)
    assert result.x.dtype == np.float64
    assert type(result.fun) is float


def test_single_precision_oracles():
    oracle = logistic(np.float32)
    result = buropt.scipy.minimize(oracle, method="trust-ncg", options={"gtol": 1e-4})
    assert result.success
    assert result.x.dtype == np.float64
    assert np.allclose(result.x, buropt.scipy.minimize(logistic()).x, atol=1e-3)
    assert result.fun == oracle.value(result.x.astype(np.float32))


@pytest.mark.parametrize("method", SMOOTH)
def test_nested_parameters(method):
    def loss(params):
        return np.sum((params["w"] - 2) ** 2) + (params["b"][0] + 1) ** 2

    start = {"w": np.zeros((2, 2)), "b": [np.array(0)]}
    seen = []
    result = buropt.scipy.minimize(loss, start, method=method, callback=seen.append)
    assert result.success
    assert np.allclose(result.x["w"], np.full((2, 2), 2.0), atol=1e-4)
    assert result.x["b"][0] == pytest.approx(-1, abs=1e-4)
    gradient = result.grad if method == "trust-constr" else result.jac
    assert gradient["w"].shape == (2, 2)
    assert seen
    assert all(point["w"].shape == (2, 2) for point in seen)
    vector = np.zeros(5)
    flat = buropt.scipy.minimize(bo.compile(loss, start), vector, method=method)
    assert flat.x.shape == (5,)


def test_an_oracle_starts_at_its_own_x0():
    oracle = bo.compile(lambda p: np.sum((p["a"] - 1) ** 2), {"a": np.full(2, 3.0)})
    assert buropt.scipy.minimize(oracle, options={"maxiter": 0}).x["a"].tolist() == [3, 3]
    other = {"a": np.array([5, 5])}
    assert buropt.scipy.minimize(oracle, other, options={"maxiter": 0}).x["a"].tolist() == [5, 5]
    with pytest.raises(ValueError, match="another structure"):
        buropt.scipy.minimize(oracle, {"b": np.zeros(2)})


@pytest.mark.parametrize("args", [(2.0,), 2.0, (np.array(2.0),), np.array(2.0)], ids=repr)
@pytest.mark.parametrize("method", ["BFGS", "trust-ncg", "trust-constr", "SLSQP"])
def test_args(method, args):
    def scaled(x, a):
        return a * np.sum((x - a) ** 2)

    assert np.allclose(buropt.scipy.minimize(scaled, [0, 0], args, method).x, 2, atol=1e-5)


# Callbacks


def quartic(x):
    return np.sum((x - np.array([3.0, 5.0])) ** 4) + x[0] ** 2


@pytest.mark.parametrize("method", SMOOTH)
def test_a_callback_sees_distinct_points_and_may_stop(method):
    seen = []

    def callback(xk):
        seen.append(xk)
        if len(seen) == 4:
            raise StopIteration

    # Every step of a Newton method is a good one here.
    result = buropt.scipy.minimize(quartic, START, method=method, callback=callback)
    assert len(seen) == 4
    assert len({id(point) for point in seen}) == 4
    assert len({point.tobytes() for point in seen}) == 4
    assert not result.success
    assert result.status == (3 if method == "trust-constr" else 99)
    assert "callback" in result.message
    assert np.array_equal(result.x, seen[-1])


@pytest.mark.parametrize("method", SMOOTH)
def test_a_callback_of_intermediate_results(method):
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)

    buropt.scipy.minimize(rosenbrock, START, method=method, callback=callback)
    assert len(seen) > 3
    assert [each.fun for each in seen] == [rosenbrock_at(each.x) for each in seen]


def rosenbrock_at(x):
    return buropt.scipy.Pieces(rosenbrock, START).fun(x)


def test_the_state_of_trust_constr():
    seen = []

    def callback(xk, state):
        seen.append((xk, state.tr_radius))
        return len(seen) == 2

    result = buropt.scipy.minimize(rosenbrock, START, method="trust-constr", callback=callback)
    assert len(seen) == 2
    assert result.status == 3


def test_a_mistake_in_a_callback_is_raised():
    def callback(xk):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        buropt.scipy.minimize(rosenbrock, START, callback=callback)


# Bounds and options


@pytest.mark.parametrize("method", BOUNDED)
def test_bounds(method):
    for bounds in ([(None, 0.5), (0, None)], scipy.optimize.Bounds([-2, 0], [0.5, np.inf])):
        result = buropt.scipy.minimize(rosenbrock, START, method=method, bounds=bounds)
        assert np.allclose(result.x, [0.5, 0.25], atol=1e-3)


@pytest.mark.parametrize("method", BOUNDED)
def test_variables_that_bounds_fix(method):
    seen = []
    bounds = [(-2, 2), (0.5, 0.5)]
    result = buropt.scipy.minimize(
        rosenbrock, START, method=method, bounds=bounds, callback=seen.append
    )
    assert result.x[1] == pytest.approx(0.5)
    assert abs(result.x[0]) == pytest.approx(np.sqrt(0.5), abs=0.02)
    gradient = result.grad if method == "trust-constr" else result.jac
    assert np.isfinite(gradient).all()
    assert seen[-1].shape == (2,)
    fixed = buropt.scipy.minimize(rosenbrock, [0.5, 0.5], method=method, bounds=[(0.5, 0.5)] * 2)
    assert np.allclose(fixed.x, 0.5)


def test_nested_bounds():
    start = {"w": np.zeros((2, 2)), "b": [np.zeros(2), 1.0]}
    bounds = {"w": (np.array([-1.0, -np.inf]), 0.5 + np.eye(2)), "b": [None, (-1.5, None)]}

    def loss(params):
        return np.sum((params["w"] - 2) ** 2) + np.sum(params["b"][0] ** 2) + params["b"][1]

    result = buropt.scipy.minimize(loss, start, bounds=bounds)
    assert result.success
    assert result.x["w"].tolist() == [[1.5, 0.5], [0.5, 1.5]]
    assert result.x["b"][1] == -1.5
    whole = scipy.optimize.Bounds(np.zeros((2, 2)), np.ones((2, 2)))
    square = buropt.scipy.minimize(lambda x: np.sum((x - 3) ** 2), np.zeros((2, 2)), bounds=whole)
    assert square.x.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match=r"bounds must be nested like x0.*\['w', 'b'\]"):
        buropt.scipy.minimize(loss, start, bounds={"w": None})
    with pytest.raises(ValueError, match=r"bounds\['w'\] must be a pair"):
        buropt.scipy.minimize(loss, start, bounds={"w": 1.0, "b": None})
    with pytest.raises(ValueError, match=r"bounds\['w'\] has a side of shape \(3,\)"):
        buropt.scipy.minimize(loss, start, bounds={"w": (np.zeros(3), None), "b": None})


def test_options_are_scipys():
    options = {"maxiter": 3, "return_all": True}
    mine = buropt.scipy.minimize(rosenbrock, START, method="BFGS", options=options)
    theirs = scipy.optimize.minimize(
        scipy.optimize.rosen, START, method="BFGS", jac=scipy.optimize.rosen_der, options=options
    )
    assert np.allclose(mine.allvecs, theirs.allvecs)
    assert mine.nit == theirs.nit == 3
    assert options == {"maxiter": 3, "return_all": True}
    nested = buropt.scipy.minimize(
        lambda p: rosenbrock(p["x"]), {"x": START}, method="BFGS", options=options
    )
    assert np.array_equal(nested.allvecs[-1]["x"], mine.allvecs[-1])
    loose = buropt.scipy.minimize(rosenbrock, START, method="BFGS", tol=1e-1)
    assert loose.nit < buropt.scipy.minimize(rosenbrock, START, method="BFGS", tol=1e-8).nit


def test_what_minimize_refuses():
    with pytest.raises(ValueError, match="'newton' is none of SciPy's methods, CG, BFGS"):
        buropt.scipy.minimize(rosenbrock, START, method="newton")
    with pytest.raises(TypeError, match="HessianUpdateStrategy"):
        buropt.scipy.minimize(rosenbrock, START, method="trust-ncg", hess=scipy.optimize.BFGS())
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        buropt.scipy.minimize(lambda x: x**2, START)


def test_other_ways_to_the_hessian():
    approximated = buropt.scipy.minimize(
        rosenbrock, START, method="trust-constr", hess=scipy.optimize.BFGS()
    )
    assert np.allclose(approximated.x, 1, atol=1e-3)

    def newton(fun, x0, jac, hess, hessp, **unused):
        x = x0
        for _ in range(10):
            step = np.linalg.solve(hess(x), jac(x))
            assert np.allclose(hessp(x, step), jac(x))
            x = x - step
        return scipy.optimize.OptimizeResult(x=x, fun=fun(x), success=True)

    assert np.allclose(buropt.scipy.minimize(rosenbrock, START, method=newton).x, 1)


# What is not finite

RUNS_AWAY = {
    "logarithm": lambda x: np.sum(np.log(x)),
    "exponential": lambda x: -np.sum(np.exp(x)),
    "square root": lambda x: np.sum(np.sqrt(x)),
}


@pytest.mark.parametrize("method", DERIVATIVES)
@pytest.mark.parametrize("name", RUNS_AWAY)
@pytest.mark.filterwarnings("ignore")
def test_no_success_without_a_minimum(name, method):
    if (name, method) == ("logarithm", "trust-exact"):
        return  # SciPy 1.11 does not return from its subproblem with such a Hessian
    result = buropt.scipy.minimize(RUNS_AWAY[name], [2.0, 1.5], method=method)
    assert not result.success
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.fun)
    if result.status == -1:
        assert result.message.startswith("Not finite: ")
        assert "last finite" in result.message or "value and gradient were" in result.message


@pytest.mark.parametrize("method", DERIVATIVES)
def test_a_start_that_is_not_finite(method):
    result = buropt.scipy.minimize(lambda x: np.sum(np.log(x)), [-1.0, 1.0], method=method)
    assert not result.success
    assert result.status == -1
    assert "x is the start" in result.message
    assert result.x.tolist() == [-1, 1]


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP"])
def test_a_start_outside_of_the_bounds_is_moved_into_them(method):
    def barrier(x):
        return np.sum(x - np.log(x))

    result = buropt.scipy.minimize(barrier, [-1, 4], method=method, bounds=[(0.1, None)] * 2)
    assert result.success
    assert np.allclose(result.x, 1, atol=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_a_mistake_in_a_callback_is_no_failure_of_the_function():
    def callback(xk):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        buropt.scipy.minimize(
            lambda x: np.sum(5 * x - np.log(x)), [2, 1.5], method="trust-ncg", callback=callback
        )


@pytest.mark.parametrize("method", ["BFGS", "SLSQP", "Newton-CG", "trust-ncg", "trust-exact"])
@pytest.mark.filterwarnings("ignore")
def test_methods_step_back_from_where_the_function_ends(method):
    result = buropt.scipy.minimize(lambda x: np.sum(5 * x - np.log(x)), [2, 1.5], method=method)
    assert result.success
    assert np.allclose(result.x, 0.2, atol=1e-3)
