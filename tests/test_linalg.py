"""Derivatives of linear algebra. Values and errors: test_functions_linalg.py."""

import itertools
import math

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buropt as bo
from buropt.trace import Trace

linalg = np.linalg
numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="new rules of np.linalg"
)
RNG = np.random.default_rng(8)
A, B, C = RNG.normal(size=(3, 4, 4))
V = RNG.normal(size=4)


def positive(a):
    """A positive definite matrix made of any other."""
    return a @ np.swapaxes(a, -1, -2) + np.eye(4)


# ---- against differences, in reverse and forward mode

FUNCTIONS = {
    "solve(a, vector)": lambda a: linalg.solve(a, V),
    "solve(a, matrix)": lambda a: linalg.solve(a, B[:, :2]),
    "solve(matrix, a)": lambda a: linalg.solve(B, a),
    "solve(a, a)": lambda a: linalg.solve(a, np.sin(a)),
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a)[0] * linalg.slogdet(a)[1],
    "cholesky": lambda a: linalg.cholesky(positive(a)),
    "cholesky, any perturbation": lambda a: linalg.cholesky(a + 10 * np.eye(4)),
    "cholesky, upper": lambda a: linalg.cholesky(a.T + 10 * np.eye(4)).T,
    "eigvalsh": lambda a: linalg.eigvalsh(a + a.T),
    "eigvalsh, any perturbation": lambda a: linalg.eigvalsh(a) ** 2,
    "eigh": lambda a: linalg.eigh(a)[0] * linalg.eigh(a)[1] ** 2,
    "norm": linalg.norm,
    "norm, ord=2": lambda a: linalg.norm(a, 2),
    "norm, ord=2, flat": lambda a: linalg.norm(a[:2], 2),
    "norm, ord=3": lambda a: linalg.norm(a, 3, axis=1),
    "norm, ord=1": lambda a: linalg.norm(a, 1),
    "norm, ord=inf": lambda a: linalg.norm(a, np.inf),
    "cond": lambda a: linalg.cond(a, 1),
    "matrix_power": lambda a: linalg.matrix_power(a, 3) + linalg.matrix_power(a, -2),
    "multi_dot": lambda a: linalg.multi_dot([V, a, B, a.T, C[:, :2]]),
    "tensorsolve": lambda a: linalg.tensorsolve(a.reshape(2, 2, 4), B[:2, :2]),
    "kron": lambda a: np.kron(a, a[:2]),
    "trace": lambda a: np.trace(a @ a, 1),
    "cross": lambda a: np.cross(a[:, :3], a[:, 1:]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_against_differences(name):
    bo.check_grads(FUNCTIONS[name], A, order=2)


THIRD = ("solve(a, matrix)", "inv", "slogdet", "cholesky", "det", "eigvalsh")


@pytest.mark.parametrize("name", THIRD)
def test_third_derivatives_against_differences(name):
    bo.check_grads(FUNCTIONS[name], A, order=3)


STACK = RNG.normal(size=(3, 1, 2, 2)) + 2 * np.eye(2)
STACKS = {
    "solve(stack, vector)": lambda a: linalg.solve(a, V[:2]),
    "solve(stack, stack)": lambda a: linalg.solve(a, B.reshape(4, 2, 2)),
    "solve(matrix, stack)": lambda a: linalg.solve(B[:2, :2], a),
    "solve(a part, the stack)": lambda a: linalg.solve(a[0], a),
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a)[1],
    "cholesky": lambda a: linalg.cholesky(a @ np.swapaxes(a, -1, -2)),
    "eigh": lambda a: linalg.eigh(a)[0] * linalg.eigh(a)[1][..., 0] ** 2,
    "matrix_power": lambda a: linalg.matrix_power(a, 3),
    "norm": lambda a: linalg.norm(a, axis=(-1, -2)) + linalg.norm(a, 2, axis=(-1, -2)),
}


@numpy_2
@pytest.mark.parametrize("name", STACKS)
def test_derivatives_of_stacks_against_differences(name):
    bo.check_grads(STACKS[name], STACK, order=2)


# ---- against another library


PAIRS = {
    "solve": (
        lambda a: np.sum(linalg.solve(a, B) ** 2),
        lambda a: anp.sum(anp.linalg.solve(a, B) ** 2),
    ),
    "inv": (lambda a: np.sum(linalg.inv(a) ** 3), lambda a: anp.sum(anp.linalg.inv(a) ** 3)),
    "det": (lambda a: linalg.det(a) ** 2, lambda a: anp.linalg.det(a) ** 2),
    "slogdet": (lambda a: linalg.slogdet(a)[1], lambda a: anp.linalg.slogdet(a)[1]),
    "cholesky": (
        lambda a: np.sum(linalg.cholesky(positive(a)) ** 3),
        lambda a: anp.sum(anp.linalg.cholesky(anp.dot(a, a.T) + np.eye(4)) ** 3),
    ),
    "norm": (linalg.norm, anp.linalg.norm),
}


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_and_hessian_products_of_autograd(name):
    ours, theirs = PAIRS[name]
    np.testing.assert_allclose(bo.grad(ours)(A), autograd.grad(theirs)(A), rtol=1e-10, atol=1e-12)
    along = autograd.grad(lambda a: anp.sum(autograd.grad(theirs)(a) * C))(A)
    np.testing.assert_allclose(bo.hvp(ours)(A, C), along, rtol=1e-9, atol=1e-10)


# ---- any shapes


@numpy_2
@settings(max_examples=25)
@given(
    stacks=st.sampled_from([((), ()), ((2,), ()), ((), (2,)), ((3, 1), (2,)), ((1,), (2, 2))]),
    n=st.integers(1, 5),
    k=st.integers(1, 3),
    is_vector=st.booleans(),
    seed=st.integers(0, 99),
)
def test_gradient_of_solve_for_any_shapes(stacks, n, k, is_vector, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(*stacks[0], n, n)) + 3 * np.eye(n)
    b = rng.normal(size=n if is_vector else (*stacks[1], n, k))
    x, by_a, by_b = linalg.solve(a, b), rng.normal(size=a.shape), rng.normal(size=b.shape)
    weights = rng.normal(size=x.shape)

    def total(a, b):
        return np.sum(weights * linalg.solve(a, b))

    g_a, g_b = bo.grad(total, argnums=(0, 1))(a, b)
    assert (g_a.shape, g_b.shape) == (a.shape, b.shape)
    slope = np.imag(total(a + 1e-100j * by_a, b + 1e-100j * by_b)) / 1e-100
    scale = linalg.norm(g_a) * linalg.norm(by_a) + linalg.norm(g_b) * linalg.norm(by_b)
    assert abs(np.sum(g_a * by_a) + np.sum(g_b * by_b) - slope) <= 1e-10 * scale


# ---- the determinant of singular matrices


def derivative_of_det(a, directions):
    """The derivative of det along each direction once, summed over permutations."""
    n, total = len(a), 0.0
    for columns in itertools.permutations(range(n)):
        inversions = sum(columns[i] > columns[j] for i, j in itertools.combinations(range(n), 2))
        for rows in itertools.permutations(range(n), len(directions)):
            factors = [
                directions[rows.index(i)][i, columns[i]] if i in rows else a[i, columns[i]]
                for i in range(n)
            ]
            total += (-1) ** inversions * math.prod(factors)
    return total


@pytest.mark.parametrize("rank", range(5))
@pytest.mark.parametrize("order", range(1, 5))
def test_derivatives_of_det_at_any_rank(rank, order):
    a = A[:, :rank] @ B[:rank]
    directions = RNG.normal(size=(order, 4, 4))

    def along(f, direction):
        return lambda a: np.sum(bo.grad(f)(a) * direction)

    f = linalg.det
    for direction in directions[:-1]:
        f = along(f, direction)
    exact = derivative_of_det(a, directions)
    assert np.sum(bo.grad(f)(a) * directions[-1]) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_derivatives_of_det_are_exact_for_tiny_pivots():
    d = np.array([1.0, 1e-20, 1e-30, 1e-40])
    gradient = bo.grad(linalg.det)(np.diag(d))
    cofactors = [math.prod(np.delete(d, i)) for i in range(4)]
    np.testing.assert_allclose(gradient, np.diag(cofactors), rtol=1e-14, atol=0)
    hessian = bo.hessian(linalg.det)(np.diag(d))
    assert hessian[2, 2, 3, 3] == pytest.approx(1e-20, rel=1e-14)
    assert hessian[2, 3, 3, 2] == pytest.approx(-1e-20, rel=1e-14)


def test_hessian_of_det_is_symmetric():
    hessian = bo.hessian(linalg.det)(A).reshape(16, 16)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12, atol=1e-13)


def test_equal_eigenvalues():
    def total(a):
        return np.sum(linalg.eigvalsh(a) ** 3)

    a = 2 * np.eye(3)
    np.testing.assert_allclose(bo.grad(total)(a), 12 * np.eye(3), rtol=1e-15)
    assert np.isnan(bo.hvp(total)(a, np.ones((3, 3)))).any()  # not a finite wrong number
    # Nor in a gradient of a gradient, where parts of the cotangent cancel to 0.
    direction = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    slope = bo.grad(lambda a: np.sum(bo.grad(total)(a) * direction))(np.diag([0.0, 0, 1]))
    assert np.isnan(slope).any()
    # The largest singular value has its gradient beside equal ones, and no second derivative.
    x, u, v = np.outer([3.0, 0, 4], [0.6, 0, 0.8]), np.array([0.6, 0, 0.8]), np.array([0.6, 0, 0.8])
    np.testing.assert_allclose(bo.grad(lambda x: linalg.norm(x, 2))(x), np.outer(u, v), atol=1e-14)
    product = bo.hvp(lambda x: linalg.norm(x, 2))(np.diag([3.0, 1, 1]), np.ones((3, 3)))
    assert np.isnan(product).any()


# ---- accuracy


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("condition", [1e0, 1e3])
@pytest.mark.parametrize("n", [2, 30, 100])
def test_gradients_lose_what_the_condition_number_costs(dtype, condition, n):
    rng = np.random.default_rng(n)
    u, v = (linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    a = ((u * np.geomspace(1, 1 / condition, n)) @ v).astype(dtype)
    b = rng.normal(size=n).astype(dtype)

    def loss(a, b):
        return linalg.slogdet(a)[1] + b @ linalg.solve(a, b)

    gradient = bo.grad(loss)(a, b)
    inverse = linalg.inv(a.astype(np.float64))
    exact = inverse.T - np.outer(inverse.T @ b, inverse @ b)
    assert gradient.dtype == dtype
    bound = 10 * n * np.finfo(dtype).eps * condition
    assert linalg.norm(gradient - exact) <= bound * linalg.norm(exact)


# ---- inside graphs


def test_a_matrix_is_factored_once():
    with Trace() as trace:
        a, b = trace.input("a", (3, 3)), trace.input("b", (3,))
        loss = b @ linalg.solve(a, b) + linalg.slogdet(a)[1] + np.sum(linalg.inv(a)) + linalg.det(a)
    gradient = trace.builder.grad(loss.node, [a.node, b.node])
    graph = str(trace.builder.build([loss.node, *gradient], ["f", "ga", "gb"]))
    assert graph.count("lu(") == 1


MATRICES = RNG.normal(size=(9, 3, 3)) + 3 * np.eye(3)
VECTORS = RNG.normal(size=(9, 3))
BATCHED = {
    "solve(sample, x)": lambda x, m, v: np.sum(linalg.solve(m, x) ** 2),
    "solve(x, sample vector)": lambda x, m, v: np.sum(linalg.solve(x, v) ** 2),
    "solve(x, sample matrix)": lambda x, m, v: np.sum(linalg.solve(x, m) ** 2),
    "solve(both)": lambda x, m, v: v @ linalg.solve(m + x, v),
    "inv": lambda x, m, v: v @ linalg.inv(x @ m) @ v,
    "det": lambda x, m, v: linalg.det(m @ x + np.outer(v, v)),
    "slogdet": lambda x, m, v: linalg.slogdet(m + x)[1],
    "cholesky(sample)": lambda x, m, v: np.sum(
        linalg.solve(linalg.cholesky(m @ m.T + x @ x.T), v) ** 2
    ),
    "cholesky(x)": lambda x, m, v: np.sum(m @ linalg.cholesky(x @ x.T) @ v) ** 2,
    "norm": lambda x, m, v: linalg.norm(m @ x) + linalg.norm(x @ v - v),
    "a shared factor": lambda x, m, v: v @ linalg.solve(x, v) + linalg.slogdet(x)[1],
}


@pytest.mark.parametrize("name", BATCHED)
def test_samples_of_matrices_against_a_loop(name):
    loss = BATCHED[name]
    x = 2 * np.eye(3) + 0.1 * A[:3, :3]
    oracle = bo.compile(loss, x, data=(MATRICES, VECTORS))
    samples = list(zip(MATRICES, VECTORS, strict=True))
    values = [loss(x, m, v) for m, v in samples]
    gradients = [bo.grad(loss)(x, m, v) for m, v in samples]
    value, gradient = oracle.value_and_grad(x)
    assert value == pytest.approx(np.mean(values), rel=1e-12)
    np.testing.assert_allclose(gradient, np.mean(gradients, axis=0), rtol=1e-10, atol=1e-12)
    one = oracle.grad(x, [4])
    np.testing.assert_allclose(one, gradients[4], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", BATCHED)
def test_second_derivatives_of_samples_against_a_loop(name):
    loss, direction = BATCHED[name], B[:3, :3]
    x = 2 * np.eye(3) + 0.1 * A[:3, :3]
    slope = bo.compile(
        lambda x, m, v: np.sum(bo.grad(loss)(x, m, v) * direction), x, data=(MATRICES, VECTORS)
    )
    products = [bo.hvp(loss)(x, direction, m, v) for m, v in zip(MATRICES, VECTORS, strict=True)]
    np.testing.assert_allclose(slope.grad(x), np.mean(products, axis=0), rtol=1e-9, atol=1e-11)


def test_a_branch_not_taken_may_be_singular():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    for function in (
        linalg.inv,
        linalg.cholesky,
        lambda a: linalg.slogdet(a)[1],
        lambda a: linalg.solve(a, V[:2]),
        lambda a: linalg.solve(a, a),
    ):
        gradient = bo.grad(lambda a, f=function: np.where(a[0, 0] > 9, np.sum(f(a)), a[0, 1]))
        np.testing.assert_array_equal(gradient(singular), [[0.0, 1.0], [0.0, 0.0]])


def test_one_of_a_stack_not_taken_may_be_singular():
    stack = np.array([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 4.0]], [[np.nan, 0], [0, 1]]])
    taken = np.array([False, True, False])
    for function in (
        linalg.inv,
        linalg.cholesky,
        linalg.det,
        linalg.eigvalsh,
        lambda a: linalg.eigh(a)[1],
        lambda a: linalg.slogdet(a)[1],
        lambda a: linalg.solve(a, V[:2]),
        lambda a: linalg.solve(a, a),
    ):

        def total(a, f=function):
            result = f(a)
            mask = taken.reshape((-1,) + (1,) * (result.ndim - 1))
            return np.sum(np.where(mask, result, 0.0))

        slope = bo.grad(total)(stack)
        np.testing.assert_array_equal(slope[[0, 2]], np.zeros((2, 2, 2)))
        alone = bo.grad(lambda a, f=function: np.sum(f(a)))(stack[1])
        np.testing.assert_allclose(slope[1], alone, atol=1e-15)


# ---- norms at 0 (case A02)


def test_norm_at_zero_and_elsewhere():
    gradient = bo.grad(linalg.norm)
    np.testing.assert_array_equal(gradient(np.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(gradient(np.array([3.0, 4.0])), [0.6, 0.8], rtol=1e-15)
    squared = bo.grad(lambda x: linalg.norm(x) ** 2)
    np.testing.assert_array_equal(squared(np.zeros(3)), np.zeros(3))


def test_square_root_at_zero():
    assert bo.grad(np.sqrt)(0.0) == np.inf

    def guarded(x, y):
        return np.maximum(np.sqrt(x**2 + y**2), 1e-10)

    assert bo.value_and_grad(guarded, argnums=(0, 1))(0.0, 0.0) == (1e-10, (0.0, 0.0))


def test_norms_of_rows_of_which_one_is_zero():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    for ord in (None, 2, 2.0):
        value, slope = bo.value_and_grad(lambda x, p=ord: np.sum(linalg.norm(x, p, axis=1)))(x)
        assert value == 5.0
        np.testing.assert_allclose(slope, [[0.0, 0.0], [0.6, 0.8]], rtol=1e-15)


@pytest.mark.parametrize("ord", [None, 1, 1.5, 2, 3, 4, np.inf])
def test_no_norm_has_a_nan_derivative_at_zero(ord):
    gradient = bo.grad(lambda x: linalg.norm(x, ord))
    np.testing.assert_array_equal(gradient(np.zeros(3)), np.zeros(3))
    product = bo.hvp(lambda x: linalg.norm(x, ord))(np.zeros(3), V[:3])
    assert np.isfinite(product).all()


def test_second_derivatives_of_a_norm():
    x = np.array([3.0, 4.0])
    hessian = bo.hessian(linalg.norm)(x)
    np.testing.assert_allclose(hessian, (np.eye(2) - np.outer(x, x) / 25) / 5, rtol=1e-14)
    np.testing.assert_array_equal(bo.hessian(linalg.norm)(np.zeros(2)), np.zeros((2, 2)))
