"""Chains over long arrays run chunk by chunk: the numbers are those of whole arrays."""

import numpy as np
import pytest

import buropt as bo

autograd = pytest.importorskip("autograd")
anp = pytest.importorskip("autograd.numpy")

N = 5003  # not a multiple of a chunk
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.5, 1.5, N), RNG.uniform(0.5, 1.5, N)


def rosenbrock(x, y, np):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (y[1:] - x[:-1]) ** 2)


def softmax_like(x, y, np):
    e = np.exp(x - np.mean(x))
    return np.sum(e / np.sum(e) * y**2)


def slice_of_a_value_of_the_chain(x, y, np):
    z = x * y
    return np.sum(z[1:] * z[:-1]) + np.sum(z[2:-2][1:] * y[:-5])


def two_sums_and_a_scalar(x, y, np):
    scale = np.sum(x * y)
    return scale * np.sum(np.sin(x)) + np.sum(np.cos(y * scale / 5000))


def matrices(x, y, np):
    a = np.reshape(x[:5000], (50, 100))
    b = np.reshape(y[3:], (100, 50))
    return np.sum(np.exp(-(a**2)) * (b.T + a)) + np.sum((a @ b) * 1e-3)


def rows_of_a_matrix(x, y, np):
    a = np.reshape(x[:5000], (50, 100))
    return np.sum(a[1:] * np.tanh(a[:-1]) * y[:4900].reshape(49, 100)) + np.sum(
        a[:, 1:] * a[:, :-1]
    )


def longer_than_a_step(x, y, np):
    for _ in range(40):
        x = x * 0.99 + y * 0.01
        y = y - 0.001 * x
    return np.sum(x * y)


def one_value_many_readers(x, y, np):
    z = np.log(x)
    return np.sum(z * y) + np.sum(z**2) + np.max(z) + z[17] * np.sum(y)


def many_slices_and_numbers(x, y, np):
    z = x * y
    return np.sum(
        (z[4:-1] - 3.0 * x[:-5]) * z[2:-3] + 2.0 * z[1:-4] - z[3:-2] / y[:-5] + np.sum(x[7:])
    )


FUNCTIONS = [
    many_slices_and_numbers,
    rosenbrock,
    softmax_like,
    slice_of_a_value_of_the_chain,
    two_sums_and_a_scalar,
    matrices,
    rows_of_a_matrix,
    longer_than_a_step,
    one_value_many_readers,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_value_and_gradients(function):
    value, gradients = bo.value_and_grad(lambda x, y: function(x, y, np), argnums=(0, 1))(X, Y)
    assert value == pytest.approx(function(X, Y, np), rel=1e-12)
    for k in range(2):
        expected = autograd.grad(lambda x, y: function(x, y, anp), k)(X, Y)
        np.testing.assert_allclose(gradients[k], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_hessian_products(function):
    v = RNG.standard_normal(N)
    hvp = bo.hvp(lambda x: function(x, Y, np))(X, v)
    gradient = bo.grad(lambda x: function(x, Y, np))
    h = 1e-6
    expected = (gradient(X + h * v) - gradient(X - h * v)) / (2 * h)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(hvp, expected, rtol=1e-5, atol=1e-6 * max(scale, 1e-3))


def test_single_precision():
    value, gradient = bo.value_and_grad(lambda x: rosenbrock(x, np.ones(x.size, x.dtype), np))(
        X.astype(np.float32)
    )
    exact = bo.value_and_grad(lambda x: rosenbrock(x, np.ones(x.size, x.dtype), np))(X)
    assert gradient.dtype == np.float32
    assert value == pytest.approx(exact[0], rel=1e-5)
    np.testing.assert_allclose(gradient, exact[1], rtol=1e-3, atol=1e-2)


def test_every_length_around_a_chunk():
    def f(x):
        return np.sum(x[1:] * x[:-1] + np.exp(x[1:]))

    for n in (4096, 4097, 4098, 4607, 4608, 4609, 4610, 5120, 5121, 5122):
        x = np.resize(X, n)
        value, gradient = bo.value_and_grad(f)(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        expected = np.zeros(n)
        expected[1:] += x[:-1] + np.exp(x[1:])
        expected[:-1] += x[1:]
        np.testing.assert_allclose(gradient, expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_chunks_and_what_is_left_of_them(dtype):
    """Arithmetic runs in blocks, the exponential on chunks; the last block overlaps with others."""

    def f(x, np):
        y = x * x - 0.5 * x
        z = np.exp(-y) * x + y
        u = (z - x) * (z + y) / (1.0 + z * z)
        return np.sum(u * np.exp(u) - u * y) + np.sum(z[1:] * u[:-1])

    for n in (64, 65, 127, 128, 129, 300, 511, 512, 513, 575, 576, 577, 639, 640, 641, 1100, 5000):
        x = np.resize(X, n).astype(dtype)
        value, gradient = bo.value_and_grad(lambda x: f(x, np))(x)
        double = x.astype(np.float64)
        tolerance = 1e-12 if dtype == np.float64 else 1e-3
        assert value == pytest.approx(f(double, np), rel=tolerance)
        expected = autograd.grad(lambda x: f(x, anp))(double)
        np.testing.assert_allclose(gradient, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("distances", [(1,), (7, 8), (63, 1, 64), (512, 500), (513, 2), (3, 900)])
def test_sums_of_arrays_that_lie_apart(distances):
    """What comes to an element early waits for the rest, within a chunk, or is added to later."""

    def f(x, np):
        return sum(np.sum((x[d:] - x[: x.size - d] ** 2) ** 2 * x[d:]) for d in distances)

    def shifted(x, np):
        m = x.size - max(distances) - 5
        y = x[5 : m + 5] * 2.0
        for d in distances:
            y = y * x[5 + d : 5 + d + m] - x[d : d + m]
        return np.sum(y * y)

    for function in (f, shifted):
        for n in (970, 1024, 1500, 2600, 5003):
            x = np.resize(X, n)
            gradient = bo.grad(lambda x: function(x, np))(x)  # noqa: B023
            expected = autograd.grad(lambda x: function(x, anp))(x)  # noqa: B023
            np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-12)
            hvp = bo.hvp(lambda x: function(x, np))(x, Y[0] * x)  # noqa: B023
            expected = autograd.hessian_vector_product(lambda x: function(x, anp))(x, Y[0] * x)  # noqa: B023
            np.testing.assert_allclose(hvp, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2048, 2049, 4607])
def test_the_bits_do_not_depend_on_where_arrays_lie(n, dtype):
    """Long arrays are cut into chunks by their addresses, unless there is a sum over them."""

    def f(x):
        return rosenbrock(x, x * x, np) + np.sum(np.exp(x))

    memory = [np.empty(n + 16, dtype) for _ in range(3)]
    results = []
    for k in range(16):
        x, v, out = (m[(j + 1) * k % 16 :][:n] for j, m in enumerate(memory))
        x[:], v[:] = np.resize(X, n), np.resize(Y, n)
        bo.hvp(f)(x, v, out=out)
        results.append([out.copy(), bo.grad(f)(x, out=out).copy(), bo.value_and_grad(f)(x)[0]])
    for result in results[1:]:
        for ours, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(ours, first)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [60_000, 60_418])
def test_threads_share_a_long_chain(n, dtype):
    """Each runs the chunk before its own once more, for what waits of it, and changes no bit."""

    def f(x):
        y = np.exp(x) * x
        return np.sum((y[3:] - x[:-3] ** 2) ** 2 + y[2:-1] * y[:-3] - x[300:].mean() * x[3:])

    x, v = np.resize(X, n).astype(dtype), np.resize(Y, n).astype(dtype)
    results = []
    for threads in (1, 2, 7):
        oracle = bo.compile(f, x, threads=threads)
        results.append([oracle.hvp(x, v), oracle.grad(x), oracle.jvp(x, v)])
    for result in results[1:]:
        for ours, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(ours, first)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_larger_than_the_caches(dtype):
    """They are stored past the caches, where they lie on whole registers, with the same bits."""
    n = (4 << 20) // np.dtype(dtype).itemsize + 1001
    x, v = np.resize(X, n).astype(dtype), np.resize(Y, n).astype(dtype)
    small = 3 * N
    hvp = bo.hvp(lambda x: rosenbrock(x, x * x, np))
    expected = hvp(x[:small], v[:small])
    memory = np.empty(n + 32, dtype)
    for k in (0, 1, 2, 7):
        memory[:] = np.nan
        out = memory[8 + k :][:n]
        hvp(x, v, out=out)
        np.testing.assert_array_equal(out[: small - 1], expected[:-1])
        np.testing.assert_array_equal(out[N : n - N - 1], out[2 * N : n - 1])
        assert np.isnan(memory[: 8 + k]).all()
        assert np.isnan(memory[8 + k + n :]).all()
    last = hvp(x[-small:], v[-small:])
    np.testing.assert_array_equal(out[-small + 1 :], last[1:])
    _, tangent = bo.jvp(lambda x: x * x * x, (x,), (v,))
    np.testing.assert_allclose(tangent, 3 * x * x * v, rtol=1e-6)


def test_a_value_that_is_also_a_result():
    """The result of jvp is read again by the value."""
    value, tangent = bo.jvp(lambda x: np.exp(x) * np.sum(x), (X,), (Y,))
    np.testing.assert_allclose(value, np.exp(X) * X.sum(), rtol=1e-12)
    np.testing.assert_allclose(tangent, np.exp(X) * Y * X.sum() + np.exp(X) * Y.sum(), rtol=1e-12)


@pytest.mark.parametrize("n", [5000, 100_000])
def test_slopes_that_are_the_same_number_everywhere(n):
    """Numbers repeated over an array are not read as an array, in short and in long ones."""
    x = np.resize(X, n)
    gradient = bo.grad(lambda x: np.sum(3.0 * x[1:]) - np.sum(x[:-1]) + 2.0 * np.sum(x[2:]))(x)
    np.testing.assert_array_equal(gradient[:3], [-1.0, 2.0, 4.0])
    np.testing.assert_array_equal(gradient[3:-1], 4.0)
    assert gradient[-1] == 5.0
    hvp = bo.hvp(lambda x: np.sum(50.0 * (1.0 - x[1:]) ** 2))(x, x)
    np.testing.assert_array_equal(hvp[1:], 100.0 * x[1:])
    assert hvp[0] == 0.0


def test_a_chain_over_the_samples_of_a_tile():
    """Elementwise work of each sample is done in blocks of samples, with the numbers of one."""

    def loss(x, a, b):
        m = b * a + x[0]
        e = (m - 2.0) * (m + b) - x[1] / (1.0 + m**2)
        return np.sqrt(e**2 + 1.0) - m**3 * x[0]

    a, b = RNG.standard_normal((2, 1700))
    x = np.array([0.3, -1.2])
    oracle = bo.compile(loss, x, data=(a, b))
    values = [loss(x, *row) for row in zip(a, b, strict=True)]
    assert oracle.value(x) == pytest.approx(np.mean(values), rel=1e-13)
    gradients = oracle.per_sample_grads(x)
    one = bo.grad(loss)
    for n in (0, 1, 63, 64, 511, 512, 1699):
        np.testing.assert_allclose(gradients[n], one(x, a[n], b[n]), rtol=1e-12)
        found = oracle.grad(x, np.arange(n + 1))
        np.testing.assert_allclose(found, gradients[: n + 1].mean(0), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_sample_has_the_bits_of_many(dtype):
    """A chain over one sample runs on numbers, not on arrays: every sample's bits stay."""

    def loss(x, a, b):
        z = np.logaddexp(0.0, -b * a * x[0]) + np.tanh(a - x[1]) ** 3
        return np.maximum(z, 0.1) * np.exp(-np.abs(z) * b) + np.where(a > 0, np.sqrt(a * a), x[1])

    a, b = RNG.standard_normal((2, 70)).astype(dtype)
    a[:4] = [0.0, np.inf, np.nan, -0.0]
    x = np.array([0.3, -1.2], dtype)
    oracle = bo.compile(loss, x, data=(a, b))
    gradients = oracle.per_sample_grads(x)
    for n in range(70):
        np.testing.assert_array_equal(oracle.grad(x, [n]), gradients[n])
