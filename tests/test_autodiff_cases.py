"""Golden values: inputs from public reports against neighbouring projects."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import buropt as bo
from buropt.autodiff import grad, value_and_grad
from buropt.problems.logistic import loss as logistic_loss
from buropt.trace import DisconnectedInputWarning, TraceError

EXACT = {"rtol": 1e-12, "atol": 1e-15}
STATM = Path("/proc/self/statm")


@pytest.mark.parametrize("executor", ["numbers", "arrays"])
def test_a01_the_branch_not_taken(executor):
    """No NaN, and under `filterwarnings = error` no warning either."""

    def roots(x):
        return np.sum(np.where(x >= 0, np.sqrt(x), -3 * x))

    value, gradient = value_and_grad(roots)(np.array([-4.0, 0.25, 9.0]))
    assert value == 15.5
    np.testing.assert_allclose(gradient, [-3.0, 1.0, 1 / 6], **EXACT)

    def ratios(x, n):
        return np.sum(np.where(n == 0, 0, x / n))

    repeat = 1 if executor == "numbers" else 100
    x, n = np.tile([5.0, 1.0], repeat), np.tile([0, 2], repeat)
    for numbers in (n, n.astype(float)):
        value, (by_x, by_n) = value_and_grad(ratios, argnums=(0, 1))(x, numbers)
        assert value == 0.5 * repeat
        np.testing.assert_array_equal(by_x, np.tile([0.0, 0.5], repeat))
        np.testing.assert_array_equal(by_n, np.tile([0.0, -0.25], repeat))


@pytest.mark.parametrize(
    ("function", "x", "value", "gradient"),
    [
        (lambda x: np.sum(np.abs(x)), [-2.0, 0.0, 3.0], 5.0, [-1.0, 0.0, 1.0]),
        (np.max, [2.0, 5.0, 5.0, 1.0], 5.0, [0.0, 0.5, 0.5, 0.0]),
        (lambda x: x.max(), [2.0, 5.0, 5.0, 1.0], 5.0, [0.0, 0.5, 0.5, 0.0]),
        (lambda x: np.maximum(x, x), 3.0, 3.0, 1.0),
        (lambda x: np.maximum(x, 0) + np.minimum(x, 0), 0.0, 0.0, 1.0),
        (
            lambda z: np.maximum(z, 0) - z * 1.0 + np.log1p(np.exp(-np.abs(z))),
            0.0,
            0.6931471805599453,
            -0.5,
        ),
        (lambda x: np.clip(x, 0, 1), 0.0, 0.0, 1.0),
        (lambda x: np.clip(x, 0, 1), 1.0, 1.0, 1.0),
        (lambda x: np.sum(np.clip(x, 0, 1)), [-0.5, 0.0, 0.5, 1.0, 2.0], 2.5, [0, 1, 1, 1, 0]),
    ],
)
def test_a03_kinks(function, x, value, gradient):
    got = value_and_grad(function)(np.array(x) if isinstance(x, list) else x)
    np.testing.assert_allclose(got[0], value, **EXACT)
    np.testing.assert_allclose(got[1], gradient, **EXACT)


@pytest.mark.parametrize(
    ("power", "x", "expected"),
    [
        (lambda x: x**2, -3.0, -6.0),
        (lambda x: x**3, -2.0, 12.0),
        (lambda x: x**-2, -2.0, 0.25),
        (lambda x: x**1, 0.0, 1.0),
        (lambda x: x**1.5, 0.0, 0.0),
        (lambda x: x**2.0, -3.0, -6.0),
        (lambda x: np.power(x, np.array(3)), -2.0, 12.0),
        (lambda x: x**0.5, 4.0, 0.25),
        (lambda x: x**65, -1.0, 65.0),
        (lambda x: np.sum(x ** np.array([0.0, 1.0, 2.0])), 0.0, 1.0),
    ],
)
def test_a04_powers(power, x, expected):
    np.testing.assert_allclose(grad(power)(x), expected, **EXACT)


def test_a04_power_zero_is_constant():
    with pytest.warns(DisconnectedInputWarning):
        assert grad(lambda x: x**0)(0.0) == 0.0
    assert grad(lambda x: x**0 + x)(0.0) == 1.0


def test_a04_exponents_and_hessian_vector_product():
    by_exponent = grad(lambda a, b: a**b, argnums=1)
    assert by_exponent(0.0, 1.0) == 0.0
    np.testing.assert_allclose(by_exponent(2.0, 1.0), 1.3862943611198906, **EXACT)
    v = np.array([1.0, 2.0, 3.0])
    hvp = grad(lambda x: grad(lambda y: np.sum(y**2))(x) @ v)
    np.testing.assert_array_equal(hvp(np.zeros(3)), [2.0, 4.0, 6.0])


@pytest.mark.parametrize(
    "loss",
    [
        lambda m: np.logaddexp(0, -m),
        lambda m: np.logaddexp(-m, 0.0),
        lambda m: -scipy.special.log_expit(m),
        lambda m: logistic_loss(np.stack([m, m]), np.array([0.25, 0.75]), 1.0),
        lambda m: logistic_loss(np.stack([m]), np.array([-1.0]), -1.0),
    ],
)
def test_a06_logistic_tails(loss):
    slope, curvature = value_and_grad(loss), grad(grad(loss))
    for m, value, first, second in [
        (-800.0, 800.0, -1.0, 0.0),
        (0.0, 0.6931471805599453, -0.5, 0.25),
        (800.0, 0.0, 0.0, 0.0),
    ]:
        np.testing.assert_allclose(slope(m), (value, first), **EXACT)
        np.testing.assert_allclose(curvature(m), second, **EXACT)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (-1.0, -1.0)])
def test_a06_built_in_loss_is_exact(a, b):
    def loss(x):
        return logistic_loss(x, np.array([a]), b)

    slope, curvature = value_and_grad(loss), grad(lambda x: np.sum(grad(loss)(x)))
    oracle = bo.compile(logistic_loss, np.zeros(1), (np.array([[a]]), np.array([b])))
    for m, value, first, second in [
        (-800.0, 800.0, -1.0, 0.0),
        (0.0, 0.6931471805599453, -0.5, 0.25),
        (800.0, 0.0, 0.0, 0.0),
    ]:
        x = np.array([m])
        for both in (slope(x), oracle.value_and_grad(x)):
            assert both[0] == value
            assert both[1] == [first]
        assert curvature(x) == [second]


def test_a06_naive_logistic_is_what_numpy_gives():
    value, slope = value_and_grad(lambda m: np.log(1 + np.exp(-m)))(-800.0)
    assert value == np.inf
    assert np.isnan(slope)  # never a NaN derivative with a finite value
    np.testing.assert_allclose(grad(lambda m: np.log(1 + np.exp(-m)))(0.0), -0.5, **EXACT)


def test_a08_shared_intermediates_and_repeats():
    def f(x, y):
        c, d = x * y, x + y
        return (c - d) * c + d**2

    def g(a):
        b = a * a
        return b * b + b

    f_grad, g_grad = value_and_grad(f, argnums=(0, 1)), value_and_grad(g)
    for point in [(3.0, -2.0)] * 3 + [(1.0, 1.0), (3.0, -2.0)]:
        value, gradient = f_grad(*point)
        if point == (3.0, -2.0):
            assert (value, *gradient) == (43.0, 34.0, -31.0)
    for a in [2.0, 2.0, 2.0, 5.0, 2.0]:
        if a == 2.0:
            assert g_grad(a) == (20.0, 36.0)
        else:
            g_grad(a)
    assert f_grad.cache_info().n_traces == g_grad.cache_info().n_traces == 1


def test_a10_broadcasting():
    x, b, c = np.arange(12.0).reshape(3, 4), np.ones(4), np.array([[1.0], [2.0], [3.0]])
    value, (by_x, by_b, by_c) = value_and_grad(lambda x, b, c: np.sum((x + b) * c), (0, 1, 2))(
        x, b, c
    )
    assert value == 188.0
    np.testing.assert_array_equal(by_x, np.broadcast_to(c, (3, 4)))
    np.testing.assert_array_equal(by_b, [6.0] * 4)
    np.testing.assert_array_equal(by_c, [[10.0], [26.0], [42.0]])
    by_s = grad(lambda s: np.sum(s * x))(1.0)
    assert by_s == 66.0
    assert np.shape(by_s) == ()


W = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "linear",
    [
        lambda x: np.sum(W * x),
        lambda x: np.sum(x * W),
        lambda x: W @ x,
        lambda x: x @ W,
        lambda x: np.dot(W, x),
        lambda x: np.dot(x, W),
        lambda x: x.dot(W),
        lambda x: np.einsum("i,i", W, x),
        lambda x: np.inner(W, x),
        lambda x: np.vdot(W, x),
        lambda x: sum(w * one for w, one in zip(W, x, strict=True)),
    ],
)
def test_a10_linear_forms(linear):
    np.testing.assert_array_equal(grad(linear)(np.zeros(3)), W)


def test_a10_numpy_scalar_on_the_left():
    gradient = grad(lambda x: np.sum(np.float64(2) * x))(np.zeros(3))
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, [2.0, 2.0, 2.0])
    assert grad(lambda s: np.float64(2) * s)(1.0) == 2.0


def test_a10_method_of_an_array_does_not_lose_the_tracer():
    with pytest.raises(TypeError, match="a traced value cannot be converted to a NumPy array") as e:
        grad(lambda x: W.dot(x))(np.zeros(3))
    assert "`grad(lambda x: W.dot(x))(np.zeros(3))`" in str(e.value)
    assert "Instead: " in str(e.value)


def test_a12_item_assignment():
    def into_array(x):
        out = np.zeros(2)
        out[0] = x[0] ** 2
        return out.sum()

    def into_tracer(x):
        y = 2 * x
        y[0] = x[0] ** 2
        return y.sum()

    for function in (into_array, into_tracer):
        for compiled in (grad(function), lambda x, f=function: bo.compile(f, x)):
            with pytest.raises(TypeError, match=r"(?s)item assignment.*Instead: .*np\.stack"):
                compiled(np.ones(2))


def test_a12_in_place():
    def b(x):
        y = x * x
        y += x
        y *= 2
        return y

    assert value_and_grad(b)(3.0) == (24.0, 14.0)

    def c(x):
        v = x
        v += 1
        return np.sum(x * v)

    x = np.array([2.0])
    for point in (x, np.array(2.0)):  # NumPy would change a 0-d array as well
        with pytest.raises(TraceError, match="would change the input x in place"):
            grad(c)(point)
    assert x[0] == 2.0
    assert grad(c)(2.0) == 5.0  # a float is immutable: x * (x + 1)


def test_a12_captured_arrays_are_copied_when_traced():
    data = np.array([1.0, 2.0])
    derivative = grad(lambda x: x @ data)
    np.testing.assert_array_equal(derivative(np.zeros(2)), [1.0, 2.0])
    data[:] = 7.0
    np.testing.assert_array_equal(derivative(np.zeros(2)), [1.0, 2.0])
    derivative.cache_clear()
    np.testing.assert_array_equal(derivative(np.zeros(2)), [7.0, 7.0])


def test_z02_integers():
    gradient = grad(lambda x: np.sum(x**2))(np.array([1, 2]))
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, [2.0, 4.0])
    assert grad(lambda x: np.sum(x**2))(3) == 6.0
    for booleans in (True, np.array([True]), np.True_):
        with pytest.raises(TraceError, match="argument x"):
            grad(lambda x: np.sum(x**2))(booleans)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_z02_minimize_from_integers():
    result = scipy.optimize.minimize(rosenbrock, [5, 5], jac=grad(rosenbrock))
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=1e-4)


def resident_bytes():
    """Memory of this process that is really there."""
    pages = int(STATM.read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not STATM.exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize("compiled", ["grad", "oracle"])
@pytest.mark.parametrize(
    ("function", "x"), [(lambda x: x**3 - 2 * x, 1.5), (rosenbrock, np.linspace(-1, 1, 10))]
)
def test_z13_one_trace_and_no_growth(function, x, compiled):
    traces = 0

    def counted(x):
        nonlocal traces
        traces += 1
        return function(x)

    derivative = grad(counted) if compiled == "grad" else bo.compile(counted, x).grad
    out = np.zeros(np.shape(x))

    def calls(n):
        for _ in range(n):
            derivative(x)
            derivative(x, out=out)

    calls(5000)
    before = resident_bytes()
    calls(100_000)
    # The smallest object that could be left behind at each call would make 1.6 MB.
    assert resident_bytes() - before < 500_000
    assert traces == 1
    np.testing.assert_array_equal(out, derivative(x))
    slope = scipy.optimize.approx_fprime(np.atleast_1d(x), lambda z: function(z.reshape(out.shape)))
    np.testing.assert_allclose(np.atleast_1d(out), slope, rtol=1e-5, atol=1e-5)
