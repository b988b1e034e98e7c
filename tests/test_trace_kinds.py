"""Floats, integers and masks: traced values have the kind that NumPy's results have."""

import numpy as np
import pytest
import scipy.special

import buropt as bo
from buropt import _core
from buropt.trace import Trace, TraceError

FLOATS = np.array([1.5, -0.25, 2.0])
INTEGERS = np.array([2, -3, 0])
MASK = np.array([True, False, True])


def evaluate(function, dtype=np.float64):
    """Trace a function of floats, integers and a mask; the result has the tracer's dtype."""
    with Trace(dtype) as trace:
        x = trace.input("x", (3,))
        t = trace.input("t", (3,), kind="i")
        m = trace.input("m", (3,), kind="b")
        result = trace.lift(function(x, t, m))
    graph = trace.builder.build([result.node], ["result"])
    inputs = [np.asarray(value, dtype) for value in (FLOATS, INTEGERS, MASK)]
    return np.asarray(_core.Program(graph)(*inputs)[0]).astype(result.dtype)


LIKE_NUMPY = [
    lambda x, t, m: t + t,
    lambda x, t, m: t + 1,
    lambda x, t, m: t + m,
    lambda x, t, m: m + 1,
    lambda x, t, m: m + m,
    lambda x, t, m: t + x,
    lambda x, t, m: t + 1.0,
    lambda x, t, m: t - 3 * t,
    lambda x, t, m: m * t,
    lambda x, t, m: m * m,
    lambda x, t, m: m * 2,
    lambda x, t, m: t / 2,
    lambda x, t, m: t / t[:1],
    lambda x, t, m: -t,
    lambda x, t, m: +t,
    lambda x, t, m: abs(t),
    lambda x, t, m: abs(m),
    lambda x, t, m: np.fabs(t),
    lambda x, t, m: np.sign(t),
    lambda x, t, m: np.copysign(2.0, x.astype(int)) + np.copysign(1.0, -t),
    lambda x, t, m: np.signbit(t * -1),
    lambda x, t, m: np.arctan2(x.astype(int), -1),
    lambda x, t, m: np.square(t),
    lambda x, t, m: np.square(m),
    lambda x, t, m: t**2,
    lambda x, t, m: t**0,
    lambda x, t, m: t**1,
    lambda x, t, m: t**2.0,
    lambda x, t, m: m**1,
    lambda x, t, m: t ** np.array([0, 3, 1]),
    lambda x, t, m: np.float_power(t, 2),
    lambda x, t, m: np.conj(m),
    lambda x, t, m: np.maximum(t, 1),
    lambda x, t, m: np.maximum(t, 1.0),
    lambda x, t, m: np.minimum(m, True),
    lambda x, t, m: np.minimum(m, t),
    lambda x, t, m: np.exp(t),
    lambda x, t, m: np.sqrt(t * t),
    lambda x, t, m: t == 2,
    lambda x, t, m: t > x,
    lambda x, t, m: np.logical_not(t),
    lambda x, t, m: np.sum(t),
    lambda x, t, m: np.sum(m),
    lambda x, t, m: np.sum(m, dtype=float),
    lambda x, t, m: np.sum(t, dtype=float),
    lambda x, t, m: np.sum(t, dtype=int),
    lambda x, t, m: np.mean(t),
    lambda x, t, m: np.mean(m),
    lambda x, t, m: t @ t,
    lambda x, t, m: t @ m,
    lambda x, t, m: t @ x,
    lambda x, t, m: m @ (m & (t > 2)),
    lambda x, t, m: m[:, None] @ m[None],
    lambda x, t, m: np.dot(m, m),
    lambda x, t, m: np.vecdot(m, m) if hasattr(np, "vecdot") else m,
    lambda x, t, m: np.round(m),
    lambda x, t, m: np.outer(t, t),
    lambda x, t, m: np.einsum("i,j", t, t),
    lambda x, t, m: np.where(m, t, 0),
    lambda x, t, m: np.where(m, t, x),
    lambda x, t, m: np.where(t, m, t),
    lambda x, t, m: np.where(t, m, m),
    lambda x, t, m: np.clip(t, -1, 1),
    lambda x, t, m: np.clip(t, -1.5, None),
    lambda x, t, m: t[::-1],
    lambda x, t, m: t[1],
    lambda x, t, m: t.reshape(3, 1).T,
    lambda x, t, m: np.broadcast_to(t, (2, 3)),
    lambda x, t, m: t.copy(),
    lambda x, t, m: np.concatenate([t, t]),
    lambda x, t, m: np.concatenate([t, m]),
    lambda x, t, m: np.concatenate([t, x, m]),
    lambda x, t, m: np.stack([m, m], dtype=int),
    lambda x, t, m: np.stack([t, t], dtype=float),
    lambda x, t, m: np.zeros_like(t),
    lambda x, t, m: np.ones_like(x, dtype=int),
    lambda x, t, m: np.full_like(t, 2.75),
    lambda x, t, m: np.full_like(t, -2.75),
    lambda x, t, m: np.full_like(t, m[0]),
    lambda x, t, m: np.full_like(x, t),
    lambda x, t, m: t.astype(float),
    lambda x, t, m: t.astype(bool),
    lambda x, t, m: m.astype(int),
    lambda x, t, m: m.astype(np.int64) + m.astype(np.int64),
    lambda x, t, m: t.astype(int),
    lambda x, t, m: x.astype(int),
    lambda x, t, m: (100 * x).astype(np.int32) // 7,
    lambda x, t, m: np.full_like(t, x),
    lambda x, t, m: x[(x > 0).astype(int)],
    lambda x, t, m: x[x.astype(int)],
]


@pytest.mark.parametrize("k", range(len(LIKE_NUMPY)))
def test_kinds_and_values_are_numpys(k):
    got, expected = evaluate(LIKE_NUMPY[k]), np.asarray(LIKE_NUMPY[k](FLOATS, INTEGERS, MASK))
    # NumPy's small integers, such as the square of a mask, are integers here as well.
    assert (got.dtype.kind, got.shape) == (expected.dtype.kind, expected.shape)
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-15)


def test_integers_have_one_zero():
    assert evaluate(lambda x, t, m: 1 / -t)[2] == np.inf
    assert evaluate(lambda x, t, m: 1 / (x[1].astype(int) * t[2]))[()] == np.inf


def test_what_is_rounded_to_zero_from_below():
    """scipy.special.round and integers have no -0 there, np.rint has."""
    assert not evaluate(lambda x, t, m: np.signbit(scipy.special.round(x))).any()
    assert not evaluate(lambda x, t, m: np.signbit(1.0 * x.astype(int))).any()
    assert evaluate(lambda x, t, m: np.signbit(np.rint(x)))[1]


def test_dtypes_of_tracers():
    with Trace(np.float32) as trace:
        assert trace.input("x", ()).dtype == np.float32
        assert trace.input("t", (), kind="i").dtype == np.int64
        assert trace.input("m", (), kind="b").dtype == np.bool_
        assert (trace.lift(3).kind, trace.lift(3.0).kind, trace.lift(True).kind) == tuple("ifb")
        assert trace.lift(np.array([1, 2], np.uint8)).dtype == np.int64


REFUSED = [
    (lambda x, t, m: t**-1, "integers to the power of integers"),
    (lambda x, t, m: t**t, "integers to the power of integers"),
    (lambda x, t, m: np.reciprocal(t), "np.reciprocal of integers"),
    (lambda x, t, m: np.sum(x, dtype=int), "np.sum: the argument dtype="),
    (lambda x, t, m: np.stack([x, t], dtype=int), "np.concatenate: the argument dtype="),
    (lambda x, t, m: t.astype(np.float32), "converted to dtype float32"),
    (lambda x, t, m: t.astype(np.uint8), "converted to dtype uint8"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED)
def test_what_integers_cannot_do(function, message):
    with pytest.raises(TraceError, match=f"(?s){message}.*Raised while tracing.*Instead: "):
        evaluate(function)


def test_augmented_assignment_keeps_integers():
    def fits(x, t, m):
        t = t * 2
        t += m
        t *= 3
        return t

    def does_not(x, t, m):
        t = t * 2
        t += x
        return t

    np.testing.assert_array_equal(evaluate(fits), fits(FLOATS, INTEGERS, MASK))
    with pytest.raises(TraceError, match=r"\+= would put float64 numbers into an integer array"):
        evaluate(does_not)


LARGE = 2**24 + 1


def test_constants_that_float32_cannot_hold_exactly():
    for large in (LARGE, np.int64(LARGE), np.array([1, -LARGE, 0])):
        with pytest.raises(TraceError, match=rf"{LARGE}, but float32 tells .* up to 16777216\. Ra"):
            evaluate(lambda x, t, m, large=large: t + large, np.float32)
        assert evaluate(lambda x, t, m, large=large: t + large).dtype == np.int64
    with pytest.raises(TraceError, match=r"operand holds -9007199254740993, but float64"):
        evaluate(lambda x, t, m: t + (-(2**53) - 1))
    assert evaluate(lambda x, t, m: x * 10**9, np.float32)[0] == 1.5e9


def test_arguments_that_float32_cannot_hold_exactly():
    derivative = bo.grad(lambda x, t: np.sum(x * t))
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(derivative(x, np.array([3, 2**24])), [3.0, 2.0**24])
    with pytest.raises(ValueError, match=r"^t holds 16777217, but .* Instead: "):
        derivative(x, np.array([3, LARGE]))
    np.testing.assert_array_equal(derivative(np.ones(2), np.array([3, LARGE])), [3.0, LARGE])


def test_data_that_float32_cannot_hold_exactly():
    def loss(x, t):
        return x * t

    with pytest.raises(ValueError, match=r"data\[0\] holds 16777217, but float32"):
        bo.compile(loss, np.float32(1.0), np.array([1, LARGE]))
    assert bo.compile(loss, 1.0, np.array([1, LARGE])).value(1.0) == (1 + LARGE) / 2


def test_integer_data_and_arguments_are_integers():
    seen = []

    def loss(x, t):
        seen.append(t.dtype)
        return np.sum(x * t)

    bo.compile(loss, np.ones(2), np.array([[1, 2], [3, 4]]))
    bo.grad(loss)(np.ones(2), np.array([1, 2]))
    bo.grad(loss, argnums=(0, 1))(np.ones(2), np.array([1, 2]))
    assert seen == [np.int64, np.int64, np.float64]


def test_integer_arguments_leave_the_dtype_of_the_floats():
    gradient = bo.grad(lambda x, t: np.sum(np.exp(x) * t))(np.ones(2, np.float32), INTEGERS[:2])
    assert gradient.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_python_integers_beyond_64_bits_are_numbers(dtype):
    x = np.array([0.5, -3.0], dtype)
    value, gradient = bo.value_and_grad(lambda x: np.sum(x * 2**70 - 10**20))(x)
    np.testing.assert_allclose(value, -2.5 * 2.0**70 - 2e20, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(gradient, np.full(2, 2.0**70, dtype))
    assert gradient.dtype == dtype
