"""np.linalg and its kin: values, shapes, and what they refuse. Derivatives: test_linalg.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing import assert_like_numpy, assert_slopes, evaluate

from buropt.trace import Trace, UnsupportedOpError

linalg = np.linalg
numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="new rules of np.linalg"
)


def gram(a):
    """A positive definite (3, 3) matrix."""
    return a.T @ a + np.eye(3)


VALUES = {
    "np.cross": lambda a, v, p: np.cross(a, v) + np.cross(p, a) + np.cross(v, p, axis=0),
    "np.kron": lambda a, v, p: np.kron(a, a.T) + np.kron(v[:2], np.kron(a, p[:, None])),
    "np.linalg.cholesky": lambda a, v, p: linalg.cholesky(gram(a)) + linalg.cholesky(gram(a)).T,
    "np.linalg.cond": lambda a, v, p: linalg.cond(gram(a), "fro") + linalg.cond(gram(a)),
    "np.linalg.cross": lambda a, v, p: linalg.cross(a, v) + linalg.cross(v, p),
    "np.linalg.det": lambda a, v, p: linalg.det(gram(a)) + linalg.det(a[:, 1:]),
    "np.linalg.diagonal": lambda a, v, p: linalg.diagonal(a) + linalg.diagonal(a, offset=1),
    "np.linalg.eigh": lambda a, v, p: (
        linalg.eigh(gram(a))[0] + linalg.eigh(gram(a)).eigenvectors ** 2
    ),
    "np.linalg.eigvalsh": lambda a, v, p: linalg.eigvalsh(gram(a)) + linalg.eigvalsh(gram(a), "U"),
    "np.linalg.inv": lambda a, v, p: linalg.inv(gram(a)) @ a.T,
    "np.linalg.matmul": lambda a, v, p: linalg.matmul(a, a.T),
    "np.linalg.matrix_norm": lambda a, v, p: linalg.matrix_norm(a) * linalg.matrix_norm(a.T),
    "np.linalg.matrix_power": lambda a, v, p: (
        linalg.matrix_power(gram(a), 5) + linalg.matrix_power(gram(a), -2)
    ),
    "np.linalg.matrix_transpose": lambda a, v, p: linalg.matrix_transpose(a[None]),
    "np.linalg.multi_dot": lambda a, v, p: linalg.multi_dot([v, a.T, a, gram(a), p]),
    "np.linalg.norm": lambda a, v, p: linalg.norm(a, axis=1) + linalg.norm(v, 3) * linalg.norm(a),
    "np.linalg.outer": lambda a, v, p: linalg.outer(v, p),
    "np.linalg.slogdet": lambda a, v, p: tuple(linalg.slogdet(-gram(a))),
    "np.linalg.solve": lambda a, v, p: linalg.solve(gram(a), a.T) @ a @ linalg.solve(gram(a), v),
    "np.linalg.tensorinv": lambda a, v, p: linalg.tensorinv(gram(a).reshape(3, 3, 1), ind=1),
    "np.linalg.tensorsolve": lambda a, v, p: linalg.tensorsolve(gram(a).reshape(3, 3, 1), v),
    "np.linalg.trace": lambda a, v, p: linalg.trace(a) + linalg.trace(a[None], offset=-1),
    "np.linalg.vecdot": lambda a, v, p: linalg.vecdot(a, v) + linalg.vecdot(a.T, a.T, axis=0)[:2],
    "np.linalg.vector_norm": lambda a, v, p: linalg.vector_norm(a) + linalg.vector_norm(v, ord=1),
    "np.matrix_transpose": lambda a, v, p: np.matrix_transpose(a) + a.mT,
    "np.trace": lambda a, v, p: np.trace(a) + a.T[:, None].trace(1, 0, 2),
}
VALUES = {  # NumPy 1.26 does not have them all
    name: function
    for name, function in VALUES.items()
    if hasattr(np.linalg if ".linalg." in name else np, name.split(".")[-1])
}
_NOT_ANALYTIC = ("norm", "cond", "cholesky", "slogdet", "eig", "vecdot")  # NumPy's take conjugates
ANALYTIC = [name for name in VALUES if not any(word in name for word in _NOT_ANALYTIC)]

MATRIX = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]])
VECTOR = np.array([1.5, 0.25, -2.0])
POSITIVE = np.array([0.5, 1.0, 7.25])


@pytest.mark.parametrize("name", ANALYTIC)
def test_slopes(name):
    assert_slopes(VALUES[name], MATRIX, VECTOR, POSITIVE)


# ---- values


def stacks_that_broadcast():
    extent = st.sampled_from([1, 2, 3])
    return st.sampled_from([((), ()), ((2,), ()), ((), (2,)), ((3, 1), (2,)), ((2,), (1,))]) | (
        extent.map(lambda m: ((m, 2), (1, 2)))
    )


@numpy_2
@given(stacks=stacks_that_broadcast(), n=st.integers(0, 5), k=st.integers(0, 3))
def test_solve_of_stacks(stacks, n, k):
    rng = np.random.default_rng(n + 7 * k)
    a = rng.normal(size=(*stacks[0], n, n))
    b = rng.normal(size=(*stacks[1], n, k))
    assert_like_numpy(linalg.solve, a, b, rtol=1e-9)


@given(stack=st.sampled_from([(), (3,), (2, 1), (0,)]), n=st.integers(0, 6))
def test_functions_of_stacks(stack, n):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(*stack, n, n))
    for function in (linalg.inv, linalg.det, lambda a: tuple(linalg.slogdet(a))):
        assert_like_numpy(function, a, rtol=1e-9)
    positive = a @ a.swapaxes(-1, -2) + np.eye(n)
    assert_like_numpy(linalg.cholesky, positive, rtol=1e-10, atol=1e-14)


def test_solve_takes_one_axis_for_a_vector():
    a = np.eye(2) + np.ones((3, 2, 2))
    assert evaluate(linalg.solve, a, np.ones(2)).shape == (3, 2)
    assert evaluate(linalg.solve, a, np.ones((2, 4))).shape == (3, 2, 4)
    # (3, 2) would be three vectors in NumPy 1, and is no matrix of two rows.
    with pytest.raises(linalg.LinAlgError, match=r"\(3, 2\) do not fit"):
        evaluate(linalg.solve, a, np.ones((3, 2)))


def test_cholesky_reads_one_triangle():
    a = np.array([[4.0, 99.0], [2.0, 5.0]])
    np.testing.assert_array_equal(evaluate(linalg.cholesky, a), linalg.cholesky(a))


@numpy_2  # which has upper=
def test_upper_cholesky_reads_the_other_triangle():
    a = np.array([[4.0, 99.0], [2.0, 5.0]])
    upper = evaluate(lambda a: linalg.cholesky(a, upper=True), a.T)
    np.testing.assert_array_equal(upper, linalg.cholesky(a).T)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("condition", [1e0, 1e3, 1e5])
@pytest.mark.parametrize("n", [3, 40, 100])
def test_errors_grow_with_the_condition_number_alone(dtype, condition, n):
    rng = np.random.default_rng(n)
    u, v = (linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    a = ((u * np.geomspace(1, 1 / condition, n)) @ v).astype(dtype)
    spd = ((u * np.geomspace(1, 1 / condition, n)) @ u.T).astype(dtype)
    b = rng.normal(size=(n, 2)).astype(dtype)
    eps, wide = np.finfo(dtype).eps, np.float64
    bound = 4 * n * eps * condition

    def error(function, *arrays):
        got = evaluate(function, *arrays, dtype=dtype)
        expected = np.asarray(function(*(array.astype(wide) for array in arrays)))
        return linalg.norm(got - expected) / linalg.norm(expected)

    assert error(linalg.solve, a, b) < bound
    assert error(linalg.inv, a) < bound
    log = evaluate(lambda a: linalg.slogdet(a)[1], a, dtype=dtype)
    assert abs(log - linalg.slogdet(a.astype(wide))[1]) < bound
    if condition <= 1e3 or dtype is np.float64:  # else rounding makes it indefinite
        factor = evaluate(linalg.cholesky, spd, dtype=dtype)
        assert linalg.norm(factor @ factor.T - spd) < 4 * n * eps * linalg.norm(spd)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_eigenvalues_and_vectors(n, dtype):
    """Of matrices with well separated, small and equal eigenvalues."""
    rng = np.random.default_rng(n)
    basis = linalg.qr(rng.normal(size=(n, n)))[0]
    for values in (np.arange(n) - 2.0, np.geomspace(1, 1e-6, n), np.ones(n), np.zeros(n)):
        a = ((basis * values) @ basis.T).astype(dtype)
        w, v = evaluate(lambda a: tuple(linalg.eigh(a)), a, dtype=dtype)
        tolerance = 4 * n * np.finfo(dtype).eps * np.abs(values).max()
        np.testing.assert_allclose(w, linalg.eigvalsh(a.astype(float)), rtol=0, atol=tolerance)
        symmetric = np.tril(a) + np.tril(a, -1).T
        np.testing.assert_allclose(symmetric @ v, v * w, rtol=0, atol=4 * tolerance)
        np.testing.assert_allclose(v.T @ v, np.eye(n), atol=4 * n * np.finfo(dtype).eps)
        assert (v[np.argmax(np.abs(v), axis=0), np.arange(n)] > 0).all()


def test_eigenvalues_of_what_is_not_finite():
    for number in (np.nan, np.inf):
        a = np.array([[1.0, 2.0], [number, 3.0]])
        assert np.isnan(evaluate(linalg.eigvalsh, a)).all()
        assert not np.isnan(evaluate(lambda a: linalg.eigvalsh(a, UPLO="U"), a)).any()


def test_determinant_of_permutations_and_signs():
    swap = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 2]])
    assert evaluate(linalg.det, swap) == -2.0
    sign, log = evaluate(lambda a: tuple(linalg.slogdet(a)), swap)
    assert (sign, log) == (-1.0, np.log(2.0))
    assert evaluate(lambda a: linalg.slogdet(a).sign, np.zeros((2, 2))) == 0.0


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, 2.5, -1, -2, 0.5, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_vectors(ord, axis, keepdims):
    x = np.array([[1.5, -2.0], [0.5, 4.0]])
    x = x.ravel() if axis is None else x
    assert_like_numpy(lambda x: linalg.norm(x, ord, axis, keepdims), x)


@pytest.mark.parametrize("ord", [None, "fro", 1, -1, 2, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, (0, 1), (1, 0), (2, 0), (-1, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_matrices(ord, axis, keepdims):
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    x = x[0] if axis in (None, (0, 1), (1, 0)) else x
    assert_like_numpy(lambda x: linalg.norm(x, ord, axis, keepdims), x)


def test_spectral_norm():
    x = np.random.default_rng(6).normal(size=(3, 4))
    for axis in (None, (0, 1), (1, 0)):
        assert_like_numpy(lambda x, a=axis: linalg.norm(x, 2, a, keepdims=True), x)
        assert_like_numpy(lambda x, a=axis: linalg.norm(x, 2, a), x.T)


def test_norms_of_everything():
    x = np.random.default_rng(2).normal(size=(2, 3, 2))
    assert_like_numpy(lambda x: linalg.norm(x, keepdims=True), x)
    assert_like_numpy(linalg.norm, np.array([3, 4]))  # integers give a float
    assert_like_numpy(linalg.norm, np.array([True, True, False]))
    assert np.isnan(evaluate(linalg.norm, np.array([1.0, np.nan])))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3), (1, 4)])
@pytest.mark.parametrize("offset", [-4, -2, -1, 0, 1, 2, 4])
def test_trace_beside_the_diagonal(shape, offset):
    assert_like_numpy(lambda a: np.trace(a, offset), np.random.default_rng(3).normal(size=shape))


def test_trace_of_integers_and_masks():
    assert_like_numpy(lambda a: np.trace(a) + np.trace(a > 2), np.arange(9).reshape(3, 3))


def test_kron_of_different_ranks():
    a, b = np.arange(6.0).reshape(1, 2, 3), np.arange(4.0).reshape(2, 2)
    for left, right in ((a, b), (b, a), (a, np.array(2.0)), (b[0], b)):
        assert_like_numpy(np.kron, left, right)
    assert_like_numpy(np.kron, np.arange(3), np.arange(4))


def test_cross_along_axes():
    a, b = np.random.default_rng(4).normal(size=(2, 3, 4))
    assert_like_numpy(lambda a, b: np.cross(a, b, axis=0), a, b)
    assert_like_numpy(lambda a, b: np.cross(a, b.T, 0, 1, 0), a, b)
    # Vectors of length 2 count as lying in a plane, as before NumPy 2.
    np.testing.assert_array_equal(evaluate(np.cross, np.array([1.0, 2]), np.array([3.0, 5])), -1.0)
    mixed = evaluate(np.cross, np.array([1.0, 2]), np.array([3.0, 5, 7]))
    np.testing.assert_array_equal(mixed, np.cross([1.0, 2, 0], [3, 5, 7]))


@pytest.mark.parametrize("n", range(-3, 6))
def test_matrix_power(n):
    a = np.array([[2.0, 1], [1, 3]])
    assert_like_numpy(lambda a: linalg.matrix_power(a, n), a)
    if n >= 0:
        assert_like_numpy(lambda a: linalg.matrix_power(a, n), a.astype(int))


def test_multi_dot_chooses_the_cheap_order():
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=shape) for shape in [(4, 1), (1, 4), (4, 1), (1, 3)]]
    assert_like_numpy(lambda *a: linalg.multi_dot(a), *arrays, rtol=1e-12)
    with Trace() as trace:
        inputs = [trace.input(f"x{i}", array.shape) for i, array in enumerate(arrays)]
        product = linalg.multi_dot(inputs)
    graph = str(trace.builder.build([product.node], ["y"]))
    assert "(4, 4)" not in graph


# ---- what is refused

ERRORS = [
    (lambda x: linalg.inv(x), linalg.LinAlgError, ["np.linalg.inv", "(2, 3)", "(..., n, n)"]),
    (lambda x: linalg.det(x[0]), linalg.LinAlgError, ["np.linalg.det", "(3,)"]),
    (lambda x: linalg.solve(gram(x), np.ones(2)), linalg.LinAlgError, ["(3, 3)", "(2,)"]),
    (lambda x: linalg.solve(gram(x), 1.0), linalg.LinAlgError, ["b of shape ()"]),
    (lambda x: linalg.norm(x, -2), UnsupportedOpError, ["ord=-2", "singular values", "'fro'"]),
    (lambda x: linalg.norm(x, "nuc"), UnsupportedOpError, ["ord='nuc'"]),
    (lambda x: linalg.norm(x, 3), ValueError, ["ord=3", "'fro'"]),
    (lambda x: linalg.norm(x[0], "fro"), ValueError, ["ord='fro'", "matrices"]),
    (lambda x: linalg.norm(x[None], 1), ValueError, ["ord=1", "axis="]),
    (lambda x: linalg.cond(gram(x), -2), UnsupportedOpError, ["np.linalg.cond", "ord=-2"]),
    (lambda x: linalg.eig(gram(x)), UnsupportedOpError, ["np.linalg.eig ", "np.linalg.eigvalsh"]),
    (lambda x: linalg.eigh(gram(x), "x"), ValueError, ["np.linalg.eigh", "UPLO is 'x'"]),
    (lambda x: linalg.svd(x), UnsupportedOpError, ["np.linalg.svd", "np.linalg.eigvalsh"]),
    (lambda x: linalg.qr(x), UnsupportedOpError, ["np.linalg.qr", "np.linalg.cholesky"]),
    (lambda x: linalg.lstsq(x, x), UnsupportedOpError, ["np.linalg.lstsq", "np.linalg.solve"]),
    (lambda x: linalg.pinv(x), UnsupportedOpError, ["np.linalg.pinv", "np.linalg.solve"]),
    (lambda x: linalg.matrix_rank(x), UnsupportedOpError, ["outside of the traced function"]),
    (lambda x: linalg.multi_dot([x, x[None]]), ValueError, ["np.linalg.multi_dot", "(1, 2, 3)"]),
    (lambda x: linalg.multi_dot([x]), ValueError, ["at least two"]),
    (lambda x: np.cross(x, x[:, :1]), ValueError, ["lengths 3 and 1"]),
    (lambda x: linalg.tensorinv(x, ind=0), ValueError, ["ind is 0"]),
    (lambda x: np.trace(x[0]), ValueError, ["axis 1 is out of bounds"]),
    (lambda x: np.trace(x, dtype="f4"), UnsupportedOpError, ["np.trace: the argument dtype="]),
]


@pytest.mark.parametrize(("function", "kind", "parts"), ERRORS)
def test_errors(function, kind, parts):
    with Trace() as trace, pytest.raises(kind) as caught:
        trace.call(function, trace.input("x", (2, 3)))
    for part in [*parts, f"{__file__}:{function.__code__.co_firstlineno}"]:
        assert part in str(caught.value)


def test_matrix_power_needs_an_integer():
    with Trace() as trace, pytest.raises(TypeError, match="integer"):
        linalg.matrix_power(trace.input("x", (2, 2)), 0.5)


@pytest.mark.parametrize("name", ["solve", "cho_solve", "det", "expm"])
def test_scipy_linalg_names_the_way_out(name):
    scipy_linalg = pytest.importorskip("scipy.linalg")
    calls = {
        "solve": lambda x: scipy_linalg.solve(x, np.ones(2)),
        "cho_solve": lambda x: scipy_linalg.cho_solve((x, True), np.ones(2)),
        "det": lambda x: scipy_linalg.det(x),
        "expm": lambda x: scipy_linalg.expm(x),
    }
    with Trace() as trace, pytest.raises(TypeError) as caught:
        trace.call(calls[name], trace.input("x", (2, 2)))
    assert str(caught.value).startswith(f"scipy.linalg.{name} cannot be traced")
    assert "np.linalg" in str(caught.value)
    assert f"{__file__}:{calls[name].__code__.co_firstlineno}" in str(caught.value)
