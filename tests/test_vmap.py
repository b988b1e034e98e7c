"""vmap: the same as a loop of calls, sample by sample."""

import math
import pickle

import numpy as np
import pytest

import buropt as bo
from buropt import TraceError

RNG = np.random.default_rng(0)
N = 700
A, B = RNG.uniform(-2, 2, (2, N))
X = RNG.standard_normal((N, 3))


def scalar(a, b):
    e = (a + b) - (a * b + b**3)
    return e**2 / 2


def of_vector(x, scale=1.0):
    return scale * np.sum(np.tanh(x) * x[0]) + np.exp(-(x[1] ** 2))


def test_value_and_derivatives_of_numbers():
    value, gradients = bo.vmap(bo.value_and_grad(scalar, (0, 1)))(A, B)
    one = bo.value_and_grad(scalar, (0, 1))
    assert value.shape == gradients[0].shape == (N,)
    for i in range(0, N, 13):
        expected, slopes = one(A[i], B[i])
        assert value[i] == pytest.approx(expected, rel=1e-14)
        for k in range(2):
            assert gradients[k][i] == pytest.approx(slopes[k], rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 65, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_number_of_samples(n, dtype):
    x = np.resize(X, (n, 3)).astype(dtype)
    value, gradient = bo.vmap(bo.value_and_grad(of_vector))(x)
    assert value.dtype == gradient.dtype == dtype
    one = bo.value_and_grad(of_vector)
    rtol = 1e-13 if dtype == np.float64 else 1e-5
    for i in range(n):
        expected, slope = one(x[i])
        np.testing.assert_allclose(value[i], expected, rtol=rtol)
        np.testing.assert_allclose(gradient[i], slope, rtol=rtol, atol=rtol)


def test_derivatives_of_derivatives_and_shared_arguments():
    hvp = bo.vmap(bo.hvp(of_vector), in_axes=(0, None))(X, np.ones(3))
    hessian = bo.vmap(bo.hessian(of_vector))(X)
    np.testing.assert_allclose(hvp, hessian.sum(2), rtol=1e-12, atol=1e-13)
    scaled = bo.vmap(bo.grad(of_vector), in_axes=(0, None))(X, 3.0)
    np.testing.assert_allclose(scaled[3], bo.grad(of_vector)(X[3], 3.0), rtol=1e-13)
    by_shared = bo.vmap(bo.grad(lambda w, x: np.tanh(w @ x)), in_axes=(None, 0))(np.ones(3), X)
    expected = X * (1 - np.tanh(X.sum(1)) ** 2)[:, None]
    np.testing.assert_allclose(by_shared, expected, rtol=1e-13, atol=1e-15)


def test_axes_nests_names_and_results():
    def f(params, x, shift=0.0):
        return {"y": params["w"] @ x + params["b"], "n": np.sum(x) + shift}, params["b"]

    params = {"w": np.ones((2, 3)), "b": np.array([1.0, -1.0])}
    result, b = bo.vmap(f, in_axes=(None, 1))(params, X.T, shift=A)
    np.testing.assert_allclose(result["y"], X @ params["w"].T + params["b"])
    np.testing.assert_allclose(result["n"], X.sum(1) + A)
    np.testing.assert_array_equal(b, np.tile(params["b"], (N, 1)))
    columns = bo.vmap(lambda x: 2 * x, in_axes=-2, out_axes=1)(X)
    np.testing.assert_array_equal(columns, 2 * X.T)
    tokens = RNG.integers(0, 3, (N, 2))
    table = np.arange(6.0).reshape(3, 2)
    rows = bo.vmap(lambda table, i: table[i].sum(), in_axes=(None, 0))
    np.testing.assert_array_equal(rows(table, tokens), table[tokens].sum((1, 2)))
    tokens[5, 1] = 3
    with pytest.raises(IndexError, match=r"holds 3 at \[1\] in sample 5"):
        rows(table, tokens)
    masked = bo.vmap(lambda x, keep: np.sum(np.where(keep, x, 0.0)))(X, X > 0)
    np.testing.assert_allclose(masked, np.where(X > 0, X, 0).sum(1))


def test_out_cache_and_pickle():
    mapped = bo.vmap(bo.grad(of_vector))
    out = np.empty((N, 3))
    assert mapped(X, out=out) is out
    np.testing.assert_array_equal(out, mapped(X))
    pairs = bo.vmap(bo.value_and_grad(scalar, (0, 1)))
    nest = np.empty(N), (np.empty(N), np.zeros((N, 2))[:, 0])  # the last one is not contiguous
    assert pairs(A, B, out=nest) is nest
    value, (by_a, by_b) = pairs(A, B)
    np.testing.assert_array_equal([nest[0], *nest[1]], [value, by_a, by_b])
    both = A.copy()
    assert bo.vmap(lambda a: a**2)(both, out=both) is both  # in place of its argument
    np.testing.assert_array_equal(both, A**2)
    with pytest.raises(ValueError, match=r"shape \(700, 3\)"):
        mapped(X, out=np.empty((N, 2)))
    with pytest.raises(ValueError, match="nested like"):
        pairs(A, B, out=out)
    assert mapped.cache_info().n_traces == 1
    copy = pickle.loads(pickle.dumps(bo.vmap(of_vector)))
    np.testing.assert_array_equal(copy(X), bo.vmap(of_vector)(X))
    assert repr(copy).startswith("<The vmap of of_vector")


def test_inside_of_a_traced_function():
    def total(w):
        return np.mean(bo.vmap(lambda w, x: np.tanh(w @ x), in_axes=(None, 0))(w, X[:5]))

    w = np.array([0.3, -0.2, 0.5])
    expected = (X[:5] * (1 - np.tanh(X[:5] @ w) ** 2)[:, None]).mean(0)
    np.testing.assert_allclose(bo.grad(total)(w), expected, rtol=1e-13)
    twice = bo.vmap(bo.vmap(lambda x: x**2))(X)
    np.testing.assert_array_equal(twice, X**2)
    along = bo.vmap(lambda x: bo.vmap(lambda a: np.array([1.0, 2.0]) * a, out_axes=1)(x))(X)
    np.testing.assert_array_equal(along, np.stack([X, 2 * X], 1))


def test_threads_give_the_same_bits(monkeypatch):
    x = np.resize(X, (20_000, 3))
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("BUROPT_NUM_THREADS", threads)
        results.append(bo.vmap(bo.value_and_grad(of_vector))(x))
    for value, gradient in results[1:]:
        np.testing.assert_array_equal(value, results[0][0])
        np.testing.assert_array_equal(gradient, results[0][1])


def test_mistakes():
    with pytest.raises(TypeError, match="in_axes must be an int or None"):
        bo.vmap(scalar, in_axes=(0, 1.5))
    with pytest.raises(TypeError, match="out_axes must be an int"):
        bo.vmap(scalar, out_axes=None)
    with pytest.raises(TypeError, match="in_axes has 1 entries, and the call 2"):
        bo.vmap(scalar, in_axes=(0,))(A, B)
    with pytest.raises(TraceError, match=r"argument b has no axis 0. Instead: pass an array"):
        bo.vmap(scalar)(A, 2.0)
    with pytest.raises(TraceError, match="700 in a, 3 in b"):
        bo.vmap(scalar)(A, B[:3])
    with pytest.raises(TraceError, match="no argument to map over"):
        bo.vmap(scalar, in_axes=None)(1.0, 2.0)
    with pytest.raises(TraceError, match="there are no samples"):
        bo.vmap(scalar)(A[:0], B[:0])
    with pytest.raises(TraceError, match=r"out_axes=1, but scalar .* with 0 axes"):
        bo.vmap(scalar, out_axes=1)(A, B)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_points_of_a_few_numbers(d, dtype):
    x = RNG.uniform(0.5, 1.5, (130, d)).astype(dtype)
    value, gradient = bo.vmap(bo.value_and_grad(lambda x: math.prod(x[k] for k in range(d))))(x)
    rtol = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(value, x.prod(1), rtol=rtol)
    np.testing.assert_allclose(gradient, x.prod(1)[:, None] / x, rtol=rtol)
