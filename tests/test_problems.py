"""Problems: what they compute, what they state about themselves and what they count."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hydra.utils import instantiate

from buropt.compressors import Identity, RandK, TopK
from buropt.data import split_workers, synthetic_classification
from buropt.problems import (
    least_squares,
    logistic,
    logistic_nonconvex_reg,
    nonconvex_logistic,
    quadratic,
)
from buropt.random import Key

N_SAMPLES, DIM = 23, 4
UNEVEN = [np.array([0, 5, 9]), np.array([1, *range(10, 23)]), np.array([2, 3, 4, 6, 7, 8])]


def sigmoid(m):
    return 1 / (1 + np.exp(-m))


# Per-sample loss and its slope, as functions of z = a'x and the label b.
def logistic_loss(z, b):
    return np.log1p(np.exp(-b * z)), -b * sigmoid(-b * z)


def marina_loss(z, b):
    s = sigmoid(-b * z)
    return s**2, -2 * b * s**2 * (1 - s)


def square_loss(z, b):
    return (z - b) ** 2 / 2, z - b


def l2_term(weight, x):
    return weight / 2 * x @ x, weight * x


def bounded_term(weight, x):
    return weight * np.sum(x**2 / (1 + x**2)), weight * 2 * x / (1 + x**2) ** 2


CASES = {
    "logistic": (logistic, logistic_loss, partial(l2_term, 0.0)),
    "logistic_l2": (partial(logistic, l2=0.3), logistic_loss, partial(l2_term, 0.3)),
    "nonconvex_logistic": (nonconvex_logistic, marina_loss, partial(l2_term, 0.0)),
    "logistic_nonconvex_reg": (
        partial(logistic_nonconvex_reg, lam=0.2),
        logistic_loss,
        partial(bounded_term, 0.2),
    ),
    "least_squares": (least_squares, square_loss, partial(l2_term, 0.0)),
    "least_squares_l2": (partial(least_squares, l2=0.3), square_loss, partial(l2_term, 0.3)),
}


def samples(seed=0):
    data = synthetic_classification(N_SAMPLES, DIM, density=0.7, condition=4.0, seed=seed)
    return data.A.toarray(), data.y


@pytest.fixture(params=CASES)
def case(request):
    """A problem on uneven shards, and its worker values and gradients in plain NumPy."""
    make, loss, term = CASES[request.param]
    A, y = samples()

    def reference(x):
        values, slopes = loss(A @ x, y)
        r, r_grad = term(x)
        scale = len(UNEVEN) / N_SAMPLES
        return (
            np.array([scale * values[shard].sum() + r for shard in UNEVEN]),
            np.array([scale * slopes[shard] @ A[shard] + r_grad for shard in UNEVEN]),
        )

    return make(A, y, split=UNEVEN), reference


def points(n, dim=DIM, seed=1):
    return np.random.default_rng(seed).standard_normal((n, dim)) * 2


def two_workers():
    """grad f_1 = (x1 - 4, 2 x2), grad f_2 = (3 x1, x2 - 3)."""
    return quadratic(np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([[4.0, 0.0], [0.0, 3.0]]))


# --- functions and gradients ---


def test_values_and_gradients(case):
    problem, reference = case
    for x in (problem.x0, *points(3)):
        values, grads = reference(x)
        assert problem.value(x) == pytest.approx(values.mean(), rel=1e-13)
        np.testing.assert_allclose(problem.worker_grads(x), grads, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(problem.grad(x), grads.mean(axis=0), rtol=1e-12, atol=1e-14)
        value, grad = problem.value_and_grad(x)
        assert value == problem.metrics(x)[0] == pytest.approx(values.mean(), rel=1e-13)
        np.testing.assert_array_equal(grad, problem.grad(x))
        assert problem.metrics(x)[1] == pytest.approx(np.sum(grads.mean(axis=0) ** 2), rel=1e-11)


def test_gradient_differences_and_minibatches(case):
    problem, reference = case
    x, y = points(2)
    differences = reference(x)[1] - reference(y)[1]
    np.testing.assert_allclose(problem.worker_grad_differences(x, y), differences, atol=1e-13)
    every = np.arange(N_SAMPLES)
    np.testing.assert_allclose(problem.sample_grad(x, every), problem.grad(x), atol=1e-13)
    parts = [problem.sample_grad(x, np.array([j])) for j in (3, 3, 8)]
    together = problem.sample_grad(x, np.array([3, 3, 8]))
    np.testing.assert_allclose(together, np.mean(parts, axis=0), atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_sparse_data_give_the_same_problem(name):
    A, y = samples()
    dense, sparse = (CASES[name][0](data, y, split=3) for data in (A, sp.csr_array(A)))
    x = points(1)[0]
    np.testing.assert_allclose(sparse.worker_grads(x), dense.worker_grads(x), atol=1e-13)
    for attribute in ("L", "L_i", "L_sample_max", "L_plus", "L_pm", "mu"):
        np.testing.assert_allclose(
            getattr(sparse.constants, attribute), getattr(dense.constants, attribute), rtol=1e-12
        )


def test_repeated_entries_of_a_sparse_matrix_add_up():
    indices, indptr = np.array([0, 0, 1]), np.array([0, 2, 3])
    A = sp.csr_array((np.array([1.0, 2.0, 4.0]), indices, indptr), shape=(2, 2))
    problem = least_squares(A, np.array([5.0, 6.0]))
    assert problem.value(np.zeros(2)) == 61 / 4
    assert problem.constants.L_sample_max == pytest.approx(16)
    assert problem.constants.L_i == pytest.approx([8])
    assert A.nnz == 3


@pytest.mark.parametrize("name", CASES)
def test_the_split_does_not_change_the_function(name):
    A, y = samples()
    one = CASES[name][0](A, y)
    assert one.n_workers == 1
    x = points(1)[0]
    for split in (5, UNEVEN, split_workers(y, 4, "sorted")):
        other = CASES[name][0](A, y, split=split)
        assert other.value(x) == pytest.approx(one.value(x), rel=1e-13)
        np.testing.assert_allclose(other.grad(x), one.grad(x), atol=1e-14)
        assert pytest.approx(one.constants.L, rel=1e-13) == other.constants.L


def test_logistic_tails():
    problem = logistic(np.array([[1.0], [1.0]]), np.array([1.0, -1.0]), split=2)
    for m in (-800.0, 0.0, 800.0):
        grads = problem.worker_grads(np.array([m]))
        np.testing.assert_allclose(2 * problem.value(np.array([m])), max(abs(m), math.log(4)))
        np.testing.assert_allclose(
            grads[:, 0], [-(m <= 0) / (1 + (m == 0)), (m >= 0) / (1 + (m == 0))]
        )
    nonconvex = nonconvex_logistic(np.array([[1.0]]), np.array([1.0]))
    values = [nonconvex.value(np.array([m])) for m in (-800.0, 0.0, 800.0)]
    np.testing.assert_array_equal(values, [1, 0.25, 0])
    assert all(np.isfinite(nonconvex.grad(np.array([m]))).all() for m in (-800.0, 800.0))


# --- counting ---


def counters(problem):
    c = problem.counters
    return c.oracle_calls, c.sample_grads


def test_oracle_calls_and_sample_gradients():
    A, y = samples()
    problem = logistic(A, y, split=3)
    x, other = points(2)
    N = N_SAMPLES
    expected = np.zeros(2, int)
    for ask, calls, grads in [
        (lambda: problem.value(x), 1, 0),
        (lambda: problem.grad(x), 1, N),
        (lambda: problem.value_and_grad(x), 1, N),
        (lambda: problem.worker_grads(x), 1, N),
        (lambda: problem.worker_grads(x), 1, N),
        (lambda: problem.worker_grad_differences(x, other), 1, 2 * N),
        (lambda: problem.sample_grad(x, np.array([1, 1, 5])), 1, 3),
        (lambda: problem.metrics(x), 0, 0),
        (lambda: problem.metrics(other), 0, 0),
    ]:
        ask()
        expected += (calls, grads)
        assert counters(problem) == tuple(expected)
    assert problem.epochs == (6 * N + 3) / N


class Spy:
    """Counts the evaluations that really happen."""

    def __init__(self, oracle):
        self.oracle, self.passes = oracle, 0

    def __getattr__(self, name):
        return getattr(self.oracle, name)

    def worker_values_and_grads(self, x):
        self.passes += 1
        return self.oracle.worker_values_and_grads(x)


def test_metrics_and_gradients_share_one_evaluation():
    A, y = samples()
    problem = logistic(A, y, split=3)
    problem.oracle = spy = Spy(problem.oracle)
    x, other = points(2)
    for ask in (problem.metrics, problem.worker_grads, problem.grad, problem.value_and_grad):
        ask(x)
        ask(x.copy())
    value = problem.value(x)
    assert spy.passes == 1
    assert problem.value(other) != value
    problem.worker_grads(other)
    problem.metrics(other)
    assert spy.passes == 2
    x[0] += 1  # compared by value: the array is the same, the point is not
    problem.metrics(x)
    assert spy.passes == 3


def test_gradients_cannot_be_overwritten():
    problem = two_workers()
    for array in (problem.grad(problem.x0), problem.worker_grads(problem.x0)):
        with pytest.raises(ValueError, match="read-only"):
            array += 1


def test_identity_of_the_mean_of_workers_and_the_gradient():
    A, y = samples()
    problem = logistic(A, y, split=3)
    x = points(1)[0]
    np.testing.assert_array_equal(problem.grad(x), np.mean(problem.worker_grads(x), axis=0))


@pytest.mark.parametrize(("dtype", "bits"), [("float64", 64), ("float32", 32)])
def test_bits(dtype, bits):
    A, y = samples()
    problem = logistic(A, y, split=3, dtype=dtype)
    key = Key(seed=0, round=1)
    grads = problem.worker_grads(problem.x0)
    assert grads.dtype == dtype
    np.testing.assert_array_equal(problem.send(Identity(), grads, key), grads)
    assert problem.counters.bits_up == DIM * bits
    sent = problem.send(RandK(2), grads, key)
    assert (np.count_nonzero(sent, axis=1) == 2).all()
    assert problem.counters.bits_up == DIM * bits + 2 * (bits + 2)
    problem.send(TopK(1), grads, key)
    assert problem.counters.bits_up == DIM * bits + 3 * (bits + 2)
    problem.send_dense()
    problem.send_dense(2)
    assert problem.counters.bits_up == 4 * DIM * bits + 3 * (bits + 2)
    assert problem.counters.bits_down == 0
    problem.broadcast()
    problem.broadcast(3)
    assert problem.counters.bits_down == 4 * DIM * bits
    assert counters(problem) == (1, N_SAMPLES)


def test_float32_problems():
    A, y = samples()
    single = logistic(A.astype(np.float32), y, l2=0.1)
    double = logistic(A, y, l2=0.1)
    assert single.x0.dtype == single.grad(single.x0).dtype == np.float32
    assert pytest.approx(double.constants.L, rel=1e-6) == single.constants.L
    assert single.constants.f_star == pytest.approx(double.constants.f_star, rel=1e-6)


# --- errors ---


@pytest.mark.parametrize("make", [logistic, nonconvex_logistic, logistic_nonconvex_reg])
def test_labels_other_than_signs_are_refused(make):
    A, y = samples()
    with pytest.raises(ValueError, match=r"labels must be -1 and \+1, found 0, 1; .* positive"):
        make(A, (y + 1) / 2)


@pytest.mark.parametrize(
    "make", [logistic, nonconvex_logistic, logistic_nonconvex_reg, least_squares]
)
def test_data_that_do_not_fit_are_refused(make):
    A, y = samples()
    with pytest.raises(ValueError, match=r"A has shape \(23, 4\) and y has shape \(22,\)"):
        make(A, y[1:])
    with pytest.raises(ValueError, match=r"A has shape \(23,\)"):
        make(A[:, 0], y)
    broken = A.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="A or y has nan or inf"):
        make(broken, y)
    with pytest.raises(ValueError, match="A or y has nan or inf"):
        make(sp.csr_array(broken), y)
    with pytest.raises(ValueError, match=r"split must hold each of the 23 .* once; found 24"):
        make(A, y, split=[np.arange(23), np.array([0])])
    for data, labels, where in ((A * 1j, y, "A"), (sp.csr_array(A * 1j), y, "A"), (A, y * 1j, "y")):
        with pytest.raises(TypeError, match=rf"{where} has dtype complex128; pass real numbers"):
            make(data, labels)
    matrix = sp.csr_array(A)
    matrix.indices[0] = 4
    with pytest.raises(ValueError, match=r"A is not a valid sparse matrix: .* must be < 4"):
        make(matrix, y)
    with pytest.raises(ValueError, match="each of the 23 samples exactly once"):
        make(A, y, split=[np.arange(22)])
    with pytest.raises(ValueError, match=r"split\[1\] must be a non-empty 1-D array"):
        make(A, y, split=[np.arange(23), np.zeros(0, np.int64)])
    with pytest.raises(ValueError, match="split=24 does not fit 23 samples"):
        make(A, y, split=24)


def test_weights_out_of_range_are_refused():
    A, y = samples()
    for weight in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match=r"l2=.* is out of range"):
            logistic(A, y, l2=weight)
        with pytest.raises(ValueError, match=r"l2=.* is out of range"):
            least_squares(A, y, l2=weight)
        with pytest.raises(ValueError, match=r"lam=.* is out of range"):
            logistic_nonconvex_reg(A, y, lam=weight)


def test_quadratics_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"A has shape \(2, 3, 3\), b \(2, 2\), c \(2,\); pass A"):
        quadratic(np.zeros((2, 3, 3)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"c \(1,\)"):
        quadratic(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(1))
    with pytest.raises(ValueError, match="not symmetric; pass"):
        quadratic(np.array([[[1.0, 2.0], [0.0, 1.0]]]), np.zeros((1, 2)))


def test_points_of_another_size_are_refused():
    problem = two_workers()
    for ask in (problem.grad, problem.worker_grads, problem.metrics, problem.value):
        with pytest.raises(ValueError, match=r"quadratic: a point has shape \(2,\), got .* \(3,\)"):
            ask(np.zeros(3))


# --- from configs ---


@pytest.mark.parametrize(
    "name", ["logistic", "nonconvex_logistic", "logistic_nonconvex_reg", "least_squares"]
)
def test_hydra_finds_problems_by_their_short_names(name):
    A, y = samples()
    problem = instantiate({"_target_": f"buropt.problems.{name}"}, A=A, y=y, split=2)
    assert problem.name == name
    assert problem.n_workers == 2


def test_hydra_finds_quadratics():
    config = {"_target_": "buropt.problems.synthetic_quadratic", "n_workers": 3, "dim": 7}
    problem = instantiate(config)
    assert (problem.n_workers, problem.dim) == (3, 7)
