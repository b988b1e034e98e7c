"""scipy.special's logsumexp, softmax and log_softmax, which are Python functions, not ufuncs."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from scipy.special import log_softmax, logsumexp, softmax
from tracing import assert_like_numpy, evaluate

import buropt as bo
from buropt.trace import Trace, TraceError, UnsupportedOpError, scipy_shims

MATRIX = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]])
CUBE = np.random.default_rng(0).normal(size=(2, 3, 4))
INF = np.inf

VALUES = {
    "scipy.special.logsumexp": lambda a, v, p: logsumexp(a, axis=1) + logsumexp(v, b=p),
    "scipy.special.softmax": lambda a, v, p: softmax(a, axis=0) * softmax(v),
    "scipy.special.log_softmax": lambda a, v, p: log_softmax(a, axis=-1) + log_softmax(v),
}

AXES = [None, 0, -1, (0, 2), (2, 0), (1,), (0, 1, 2)]


@pytest.mark.parametrize("axis", AXES)
def test_axes(axis):
    for keepdims in (False, True):
        assert_like_numpy(lambda a, k=keepdims: logsumexp(a, axis, keepdims=k), CUBE, rtol=1e-12)
    assert_like_numpy(lambda a: softmax(a, axis), CUBE, rtol=1e-12)
    assert_like_numpy(lambda a: log_softmax(a, axis), CUBE, rtol=1e-12)


def test_numbers_and_integers():
    assert_like_numpy(lambda a: logsumexp(a) + log_softmax(a), 2.5, rtol=1e-12)
    assert_like_numpy(lambda a: logsumexp(a) + softmax(a), np.array([1, 2, 3]), rtol=1e-12)


@pytest.mark.parametrize("axis", AXES)
@np.errstate(invalid="ignore")  # SciPy before 1.15 warns of a negative sum
def test_weights(axis):
    for b in (2.0, np.array([1.0, 0.0, 3.0, 0.5]), np.abs(CUBE), np.array([[2.0], [-0.1], [1.0]])):
        assert_like_numpy(lambda a, b=b: logsumexp(a, axis, b), CUBE, rtol=1e-12, atol=1e-14)
        assert_like_numpy(
            lambda a, b: logsumexp(a, axis, b=b, keepdims=True), CUBE, b, rtol=1e-12, atol=1e-14
        )


# Value, gradient by a and by b at special points.
SPECIAL = [
    ([1000.0, 1000.0], None, 1000.0 + np.log(2), [0.5, 0.5]),
    ([-1000.0, -1001.0], None, -1000.0 + np.log1p(np.exp(-1.0)), softmax([0.0, -1.0])),
    ([0.0, -INF], None, 0.0, [1.0, 0.0]),
    ([-INF, -INF], None, -INF, [0.0, 0.0]),
    ([1.0, INF], None, INF, [0.0, 1.0]),
    ([1000.0, 1000.0], [1.0, 3.0], 1000.0 + np.log(4), [0.25, 0.75]),
    ([-INF, -INF], [1.0, 3.0], -INF, [0.0, 0.0]),
    ([1000.0, 0.0], [0.0, 1.0], 0.0, [0.0, 1.0]),
    ([INF, 0.0], [0.0, 1.0], 0.0, [0.0, 1.0]),
    ([np.nan, 0.0], [0.0, 1.0], 0.0, [0.0, 1.0]),
    ([1.0, 2.0], [0.0, 0.0], -INF, [0.0, 0.0]),
]


@pytest.mark.parametrize(("a", "b", "value", "gradient"), SPECIAL)
def test_special_points(a, b, value, gradient):
    a = np.array(a)
    assert evaluate(lambda a: logsumexp(a, b=b), a) == pytest.approx(value, rel=1e-14)
    both = bo.value_and_grad(lambda a: logsumexp(a, b=b))(a)
    np.testing.assert_allclose(both[0], value, rtol=1e-14)
    np.testing.assert_allclose(both[1], gradient, rtol=1e-13)
    if b is not None:  # the weights may be traced
        both = bo.value_and_grad(lambda a, b: logsumexp(a, b=b))(a, np.array(b))
        np.testing.assert_allclose(both[0], value, rtol=1e-14)
        np.testing.assert_allclose(both[1], gradient, rtol=1e-13)


def test_a_sum_of_negative_terms_is_nan():
    assert np.isnan(evaluate(lambda a: logsumexp(a, b=[-1.0, 0.5]), np.array([1.0, 1.0])))
    with pytest.raises(UnsupportedOpError, match="argument return_sign= cannot be traced"):
        evaluate(lambda a: logsumexp(a, return_sign=True), MATRIX)


def test_derivatives_by_weights():
    a, b = np.array([0.3, -1.0, 2.0]), np.array([0.5, 0.0, 2.0])
    e = np.exp(a)
    by_b = bo.grad(lambda b: logsumexp(a, b=b))(b)
    np.testing.assert_allclose(by_b, e / (b @ e), rtol=1e-13)  # also where the weight is 0
    second = bo.hvp(lambda b: logsumexp(a, b=b))(b, np.ones(3))
    np.testing.assert_allclose(second, -e * e.sum() / (b @ e) ** 2, rtol=1e-13)


def cumulants(p, h):
    """First to third directional derivatives of logsumexp: cumulants of h under p."""
    mean = p @ h
    return mean, p @ (h - mean) ** 2, p @ (h - mean) ** 3


@pytest.mark.parametrize("b", [None, [1.0, 1.0, 1.0, 1.0]])
@pytest.mark.parametrize("a", [[0.1, 0.7, -0.3, 2.0], [2.0, 2.0, 2.0, 1.0], [900.0, 899.0, 0, 0]])
def test_derivatives_of_any_order(a, b):
    a, h = np.array(a), np.array([0.4, -1.0, 2.0, 0.3])
    derivatives = [lambda t: logsumexp(a + t * h, b=b)]
    for _ in range(3):
        derivatives.append(bo.grad(derivatives[-1]))
    got = [derivative(0.0) for derivative in derivatives[1:]]
    np.testing.assert_allclose(got, cumulants(softmax(a), h), rtol=1e-10, atol=1e-13)


def test_softmax_derivatives():
    a = np.array([0.3, -1.0, 2.0])
    p = softmax(a)
    jacobian = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(bo.jacobian(softmax)(a), jacobian, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(bo.jacobian(log_softmax)(a), np.eye(3) - p, rtol=1e-13, atol=1e-15)
    hessian = bo.hessian(lambda a: log_softmax(a)[1])(a)
    np.testing.assert_allclose(hessian, -jacobian, rtol=1e-12, atol=1e-15)
    far = bo.value_and_grad(lambda a: log_softmax(a)[1])(np.array([1000.0, 0.0]))
    np.testing.assert_array_equal(far[1], [-1.0, 1.0])
    assert far[0] == -1000.0


def test_in_the_loss_of_a_sample():
    rng = np.random.default_rng(0)
    A, y, W = rng.normal(size=(5, 3)), np.array([0, 3, 2, 1, 1]), rng.normal(size=(3, 4))
    oracle = bo.compile(lambda W, a, k: -log_softmax(a @ W)[k], W, (A, y))
    expected = -np.mean(log_softmax(A @ W, axis=1)[np.arange(5), y])
    assert oracle.value(W) == pytest.approx(expected, rel=1e-13)
    gradient = A.T @ (softmax(A @ W, axis=1) - np.eye(4)[y]) / 5
    np.testing.assert_allclose(oracle.grad(W), gradient, rtol=1e-12, atol=1e-15)


# ---- the exchange of SciPy's code


FUNCTIONS = [logsumexp, softmax, log_softmax]


def test_the_original_code_is_back_afterwards():
    before = [function.__code__ for function in FUNCTIONS]
    with Trace():
        inside = [function.__code__ for function in FUNCTIONS]
        with Trace():
            assert [function.__code__ for function in FUNCTIONS] == inside
        assert [function.__code__ for function in FUNCTIONS] == inside
        assert not set(inside) & set(before)
    assert [function.__code__ for function in FUNCTIONS] == before
    with pytest.raises(ValueError, match="out"), Trace():
        raise ValueError("out")
    assert [function.__code__ for function in FUNCTIONS] == before
    assert Path(scipy.special.logsumexp.__code__.co_filename) != Path(scipy_shims.__file__)


def test_calls_without_traced_values_are_scipys():
    expected = logsumexp(MATRIX, 1, keepdims=True), softmax(MATRIX, axis=0), log_softmax(x=MATRIX)
    with Trace() as trace:
        got = logsumexp(MATRIX, 1, keepdims=True), softmax(MATRIX, axis=0), log_softmax(x=MATRIX)
        sign = logsumexp([1.0, 2.0], b=[1, -2], return_sign=True)[1]
        assert trace.lift(softmax(trace.input("x", (3,)))).shape == (3,)
    for one, other in zip(got, expected, strict=True):
        assert isinstance(one, np.ndarray)
        np.testing.assert_array_equal(one, other)
    assert sign == -1
    with Trace(), pytest.raises(TypeError, match="logsumexp"):
        logsumexp()


def test_threads_that_trace_and_threads_that_do_not():
    expected, failures = logsumexp(MATRIX), []
    stop = threading.Event()

    def plain():
        while not stop.is_set():
            if logsumexp(MATRIX) != expected:
                failures.append("plain")

    def tracing():
        for _ in range(20):
            gradient = bo.grad(lambda x: logsumexp(x))(MATRIX)
            if not np.allclose(gradient, softmax(MATRIX), rtol=1e-13, atol=0.0):
                failures.append("traced")

    busy = threading.Thread(target=plain)
    tracers = [threading.Thread(target=tracing) for _ in range(3)]
    for thread in (busy, *tracers):
        thread.start()
    for thread in tracers:
        thread.join()
    stop.set()
    busy.join()
    assert failures == []
    assert logsumexp.__code__.co_name == "logsumexp"


def test_scipy_special_is_not_imported_for_it(monkeypatch):
    special = sys.modules["scipy.special"]
    monkeypatch.delitem(sys.modules, "scipy.special")
    with Trace() as trace:
        assert "scipy.special" not in sys.modules
        assert logsumexp.__code__.co_name == "logsumexp"
        x = trace.input("x", (3,))
        monkeypatch.setitem(sys.modules, "scipy.special", special)
        with pytest.raises(TraceError, match=r"Instead: import scipy\.special at the top"):
            logsumexp(x)
