"""buropt.scipy.Pieces: one evaluation for each point, and arrays that SciPy may do as it likes."""

from __future__ import annotations

import functools
import pickle
from collections import Counter

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy_cases import DERIVATIVES, START, logistic, rosenbrock

import buropt as bo
import buropt.scipy


def handed_to(pieces, method):
    given = {"jac": pieces.jac}
    if method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
        given["hessp"] = pieces.hessp
    if method in ("dogleg", "trust-exact"):
        given["hess"] = pieces.hess
    return given


@pytest.mark.parametrize("method", DERIVATIVES)
def test_one_evaluation_for_each_distinct_point(method):
    pieces = buropt.scipy.Pieces(rosenbrock, START)
    asked = Counter()

    def counted(function):
        def call(x, *rest):
            asked[x.tobytes()] += 1
            return function(x, *rest)

        return call

    given = {name: counted(function) for name, function in handed_to(pieces, method).items()}
    points = set()

    def fun(x):
        points.add(x.tobytes())
        return pieces.fun(x)

    result = scipy.optimize.minimize(fun, pieces.x0, method=method, **given)
    assert result.success
    assert pieces.n_evaluations == len(points)
    assert sum(asked.values()) > 0


def test_any_order_of_questions_costs_one_evaluation():
    pieces = buropt.scipy.Pieces(rosenbrock, START)
    for x in (START, np.zeros(2), np.ones(2)):
        before = pieces.n_evaluations
        first, second = pieces.jac(x), pieces.fun(x)
        value, third = pieces.fun_and_jac(x)
        assert pieces.n_evaluations == before + 1
        assert value == second
        assert np.array_equal(first, third)
    pieces.fun(START)  # one of the last few points
    assert pieces.n_evaluations == 3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["oracle", "function"])
def test_arrays_are_fresh(kind, dtype):
    if kind == "oracle":
        pieces = buropt.scipy.Pieces(logistic(dtype))
    else:
        pieces = buropt.scipy.Pieces(rosenbrock, np.full(4, 0.5, dtype))
    x, p = np.linspace(-1, 1, 4), np.ones(4)
    kept = x.copy()
    for make in (
        lambda: pieces.jac(x),
        lambda: pieces.fun_and_jac(x)[1],
        lambda: pieces.hessp(x, p),
        lambda: pieces.hess(x),
    ):
        first = make()
        assert first.dtype == np.float64
        assert first.dtype.isnative
        assert first.flags.c_contiguous
        assert first.flags.writeable
        correct = first.copy()
        first[...] = np.nan  # what was given away does not come back
        assert np.array_equal(make(), correct)
    assert type(pieces.fun(x)) is float
    assert np.array_equal(x, kept)
    assert pieces.x0.dtype == np.float64


def test_a_point_that_is_changed_in_place_is_another_point():
    pieces = buropt.scipy.Pieces(rosenbrock, START)
    x = START.copy()
    before = pieces.fun(x)
    x[0] = 1.0
    assert pieces.fun(x) == 0.0 != before
    assert pieces.last_finite.x[0] == 1.0


def test_hessp_takes_x_then_p_then_args():
    hessp = buropt.scipy.Pieces(rosenbrock, START).hessp
    assert np.allclose(hessp(START, np.array([1.0, 0.0])), [1330, 480], rtol=1e-14)
    assert np.allclose(hessp(START, np.array([0.0, 1.0])), [480, 200], rtol=1e-14)
    pieces = buropt.scipy.Pieces(lambda x, a: a * np.sum(x**3), [1.0, 2.0])
    assert np.allclose(pieces.hessp([1.0, 2.0], [1.0, 1.0], 2.0), [12, 24], rtol=1e-14)
    assert np.allclose(pieces.hess([1.0, 2.0], 2.0), np.diag([12.0, 24.0]))


def test_args_are_part_of_the_point():
    pieces = buropt.scipy.Pieces(lambda x, a, c: c * np.sum((x - a) ** 2), np.zeros(2))
    a, x = np.array([1.0, 2.0]), np.zeros(2)
    assert pieces.fun(x, a, 2) == 10.0
    assert pieces.fun(x, a, 3) == 15.0
    a[0] = 3.0
    assert pieces.fun(x, a, 3) == 39.0
    assert np.array_equal(pieces.jac(x, a, 3), [-18.0, -12.0])
    assert pieces.n_evaluations == 3


def test_oracles_agree_with_their_own_answers():
    rng = np.random.default_rng(1)
    oracle = bo.compile(
        lambda p, a, b: (p["v"] @ np.tanh(p["W"] @ a) - b) ** 2,
        {"W": rng.standard_normal((64, 64)) / 9, "v": rng.standard_normal(64) / 5},
        data=(rng.standard_normal((777, 64)), rng.standard_normal(777)),
    )
    pieces = buropt.scipy.Pieces(oracle)
    x, p = rng.standard_normal((2, oracle.dim)) / 5
    value, gradient = oracle.value_and_grad(x)
    assert pieces.fun(x) == value
    assert np.array_equal(pieces.jac(x), gradient)
    assert np.array_equal(pieces.hessp(x, p), oracle.hvp(x, p))
    assert pieces.value(x) == oracle.value(x)
    sparse = buropt.scipy.Pieces(
        bo.compile(lambda x, a: (a @ x - 1) ** 2, np.zeros(5), data=sp.csr_array(np.eye(5)))
    )
    assert np.allclose(sparse.hess(np.zeros(5)), 0.4 * np.eye(5))


@pytest.mark.parametrize(
    ("start", "seen"),
    [
        ([1, 2], (2,)),
        ((1.0, 2), (2,)),
        ([[1, 2], [3, 4]], (2, 2)),
        (3, (1,)),
        (np.float32(2), (1,)),
        (np.array(2.0), (1,)),
    ],
    ids=str,
)
def test_starts_that_are_numbers(start, seen):
    shapes = []

    def total(x):
        shapes.append(x.shape)
        return np.sum(x**2)

    pieces = buropt.scipy.Pieces(total, start)
    assert pieces.fun(pieces.x0) == np.sum(np.square(start))
    assert shapes == [seen]
    assert pieces.x0.dtype == np.float64
    assert pieces.x0.shape == (np.size(start),)


def test_lists_that_hold_arrays_are_nests():
    pieces = buropt.scipy.Pieces(lambda x: x[0] @ x[0] + x[1], [np.ones(2), 2.0])
    assert np.array_equal(pieces.jac(pieces.x0), [2, 2, 1])
    mixed = buropt.scipy.Pieces(lambda x: x[0]["a"] * x[1], [{"a": 1.0}, 2.0])
    assert np.array_equal(mixed.jac(mixed.x0), [2, 1])


def test_a_copy_starts_anew():
    pieces = buropt.scipy.Pieces(logistic())
    pieces.fun(pieces.x0)
    copy = pickle.loads(pickle.dumps(pieces))
    assert copy.n_evaluations == 0
    assert copy.fun(copy.x0) == pieces.fun(pieces.x0)
    function = pickle.loads(pickle.dumps(buropt.scipy.Pieces(rosenbrock, START)))
    assert function.fun(START) == pytest.approx(24.2)
    assert "n_evaluations=1" in repr(function)
    assert repr(function).startswith("Pieces(rosenbrock, n=2")


def test_what_is_refused():
    oracle = logistic()
    pieces = buropt.scipy.Pieces(oracle)
    x, idx = np.zeros(4), np.arange(3)
    for call in (
        lambda: pieces.fun(x, idx),
        lambda: pieces.hessp(x, x, idx),
        lambda: buropt.scipy.Pieces(functools.partial(oracle.value, idx=idx), x),
        lambda: buropt.scipy.minimize(oracle, x, args=(idx,)),
    ):
        with pytest.raises(ValueError, match="minibatch oracle"):
            call()
    assert buropt.scipy.Pieces(oracle.value).fun(x) == oracle.value(x)
    with pytest.raises(TypeError, match=r"pass the oracle itself"):
        buropt.scipy.Pieces(oracle.grad, x)
    with pytest.raises(TypeError, match="x0 is missing"):
        buropt.scipy.Pieces(rosenbrock)
    with pytest.raises(TypeError, match="an oracle or a function, not a list"):
        buropt.scipy.Pieces([rosenbrock], x)
    with pytest.raises(ValueError, match=r"x0: expected shape \(4,\), got \(3,\)"):
        buropt.scipy.Pieces(oracle, np.zeros(3))


def test_the_objective_is_one_number():
    one = buropt.scipy.Pieces(lambda x: x[:1] ** 2 + x[1:] ** 2, np.ones(2))
    assert one.fun(np.ones(2)) == 2.0
    two = buropt.scipy.Pieces(lambda x: x**2, np.ones(2))
    with pytest.raises(ValueError, match=r"one number, got an array of shape \(2,\)"):
        two.fun(np.ones(2))
