"""Constants of problems: true bounds, exact where they say so, and minima to rounding."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from buropt.data import breast_cancer, quadratics, synthetic_classification
from buropt.problems import (
    Constants,
    least_squares,
    logistic,
    logistic_nonconvex_reg,
    nonconvex_logistic,
    quadratic,
    spectra,
    synthetic_quadratic,
)
from buropt.problems import constants as constants_module
from buropt.problems.constants import Minimum
from buropt.problems.minimum import strongly_convex_minimum
from buropt.problems.nonconvex_logistic import CURVATURE as NONCONVEX_CURVATURE
from buropt.problems.spectra import squared_norms, top_gram_eigenvalue

N_SAMPLES, DIM = 23, 4
UNEVEN = [np.array([0, 5, 9]), np.array([1, *range(10, 23)]), np.array([2, 3, 4, 6, 7, 8])]

CASES = {
    "logistic": logistic,
    "logistic_l2": partial(logistic, l2=0.3),
    "nonconvex_logistic": nonconvex_logistic,
    "logistic_nonconvex_reg": partial(logistic_nonconvex_reg, lam=0.2),
    "least_squares": least_squares,
    "least_squares_l2": partial(least_squares, l2=0.3),
}


def samples(seed=0):
    data = synthetic_classification(N_SAMPLES, DIM, density=0.7, condition=4.0, seed=seed)
    return data.A.toarray(), data.y


def points(n, dim=DIM, seed=1):
    return np.random.default_rng(seed).standard_normal((n, dim)) * 2


def sigmoid(m):
    return 1 / (1 + np.exp(-m))


# --- bounds ---


def assert_bounds(problem, pairs):
    """Every inequality that the constants promise, at the given pairs of points."""
    c = problem.constants
    for x, y in pairs:
        differences = problem.worker_grads(x) - problem.worker_grads(y)
        mean = differences.mean(axis=0)
        squared = np.sum((x - y) ** 2)
        slack = 1 + 1e-9
        assert mean @ mean <= c.L**2 * squared * slack
        norms = np.sum(differences**2, axis=1)
        assert (norms <= c.L_i**2 * squared * slack).all()
        assert norms.mean() <= c.L_plus**2 * squared * slack
        assert norms.mean() - mean @ mean <= c.L_pm**2 * squared * slack + 1e-12
        assert mean @ (x - y) >= (c.mu * squared) / slack or c.mu == 0
        for j in range(problem.n_samples):
            idx = np.array([j])
            single = problem.sample_grad(x, idx) - problem.sample_grad(y, idx)
            assert single @ single <= c.L_sample_max**2 * squared * slack


def assert_order(c):
    assert c.mu <= c.L <= c.L_plus * (1 + 1e-9)
    assert c.L_plus <= c.L_tilde * (1 + 1e-9)
    assert c.L_tilde <= c.L_max * (1 + 1e-9)
    assert c.L_max == c.L_i.max()
    assert c.L_pm <= c.L_plus * (1 + 1e-9)
    smoothness = {"L", "L_i", "L_sample_max", "L_samples", "L_coordinates", "L_hessian"}
    assert set(c.source) == smoothness | {"L_plus", "L_pm", "mu", "f_star"}


@pytest.mark.parametrize("name", CASES)
def test_constants_are_bounds(name):
    problem = CASES[name](*samples(), split=UNEVEN)
    assert_order(problem.constants)
    assert_bounds(problem, zip(points(8), points(8, seed=2), strict=True))
    assert_bounds(
        problem, [(x, x + 1e-3 * s) for x, s in zip(points(4), points(4, seed=3), strict=True)]
    )


@pytest.mark.parametrize("name", ["logistic", "logistic_l2", "logistic_nonconvex_reg"])
def test_constants_called_closed_are_reached(name):
    A, y = samples()
    problem = CASES[name](A, y, split=UNEVEN)
    c, h = problem.constants, 1e-5
    assert all(c.source[key].startswith("closed form") for key in ("L", "L_i", "L_sample_max"))

    def curvatures(rows):
        """Change of the workers' gradients at 0 along the top eigenvector of rows'rows."""
        v = np.linalg.eigh(rows.T @ rows)[1][:, -1]
        return (problem.worker_grads(h * v) - problem.worker_grads(-h * v)) / (2 * h)

    assert np.linalg.norm(curvatures(A).mean(axis=0)) == pytest.approx(c.L, rel=1e-6)
    for worker, shard in enumerate(UNEVEN):
        reached = np.linalg.norm(curvatures(A[shard])[worker])
        assert reached == pytest.approx(c.L_i[worker], rel=1e-6)


def test_curvature_of_the_nonconvex_loss():
    m = np.linspace(-10, 10, 400001)
    s = sigmoid(-m)
    second = 2 * s**2 * (2 - 3 * s) * (1 - s)
    assert np.abs(second).max() == pytest.approx(NONCONVEX_CURVATURE, rel=1e-8)
    assert np.abs(second).max() <= NONCONVEX_CURVATURE * (1 + 1e-15)
    # The formula for the second derivative is that of the loss itself.
    slope = -2 * s**2 * (1 - s)
    np.testing.assert_allclose(np.gradient(slope, m)[1:-1], second[1:-1], atol=1e-7)


def test_least_squares_constants_are_exact():
    A, y = samples()
    n, l2 = len(UNEVEN), 0.3
    c = least_squares(A, y, l2=l2, split=UNEVEN).constants
    H = [n / N_SAMPLES * A[shard].T @ A[shard] + l2 * np.eye(DIM) for shard in UNEVEN]
    mean = sum(H) / n
    second = sum(H_i @ H_i for H_i in H) / n
    expected = {
        "L": np.linalg.norm(mean, 2),
        "L_i": [np.linalg.norm(H_i, 2) for H_i in H],
        "L_sample_max": max(a @ a for a in A) + l2,
        "L_plus": np.linalg.norm(second, 2) ** 0.5,
        "L_pm": np.linalg.norm(second - mean @ mean, 2) ** 0.5,
        "mu": np.linalg.eigvalsh(mean)[0],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(c, name), value, rtol=1e-12)
        assert c.source[name].startswith("closed form")


def test_equal_workers_have_no_hessian_variance():
    A, y = samples()
    twice = [np.arange(N_SAMPLES), np.arange(N_SAMPLES) + N_SAMPLES]
    c = least_squares(np.vstack([A, A]), np.concatenate([y, -y]), split=twice).constants
    assert c.L_pm == pytest.approx(0, abs=1e-14)
    assert c.L_plus == pytest.approx(c.L, rel=1e-12)
    one = logistic(A, y).constants
    assert one.L_pm == 0
    assert one.L_plus == one.L == one.L_i[0]


def test_a_singular_hessian_is_not_strongly_convex():
    A, y = samples()
    doubled = np.hstack([A, A])
    problem = least_squares(doubled, y)
    assert problem.constants.mu == 0
    residual = A @ np.linalg.lstsq(A, y, rcond=None)[0] - y
    assert problem.constants.f_star == pytest.approx(
        residual @ residual / (2 * N_SAMPLES), rel=1e-13
    )
    assert least_squares(doubled, y, l2=0.1).constants.mu == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)])
@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array])
def test_eigenvalues_by_lanczos(monkeypatch, shape, as_given):
    A = as_given(np.random.default_rng(0).standard_normal(shape))
    dense = top_gram_eigenvalue(A)
    exact = np.linalg.norm(A.toarray() if sp.issparse(A) else A, 2) ** 2
    assert exact <= dense <= exact * (1 + 1e-12)
    monkeypatch.setattr(spectra, "DENSE_LIMIT", 10)
    assert exact <= top_gram_eigenvalue(A) <= exact * (1 + 2e-6)
    assert top_gram_eigenvalue(0 * A) == 0


def assert_bounds_of(exact, problem):
    c = problem.constants
    assert_order(c)
    assert c.source["L_plus"].startswith("bound")
    np.testing.assert_allclose(c.L_i, exact.constants.L_i, rtol=2e-6)
    assert c.L_plus >= exact.constants.L_plus
    assert c.L_pm >= exact.constants.L_pm
    assert c.f_star == pytest.approx(exact.constants.f_star, rel=1e-12)


def test_least_squares_beyond_dense_matrices(monkeypatch):
    A, y = samples()
    exact = least_squares(A, y, l2=0.3, split=UNEVEN)
    monkeypatch.setattr(constants_module, "MOMENTS_LIMIT", 0)
    many = least_squares(A, y, l2=0.3, split=UNEVEN)
    assert many.constants.mu == pytest.approx(exact.constants.mu, rel=1e-12)
    assert_bounds_of(exact, many)
    monkeypatch.setattr(spectra, "DENSE_LIMIT", 2)
    wide = least_squares(A, y, l2=0.3, split=UNEVEN)
    assert wide.constants.mu == 0.3
    assert_bounds_of(exact, wide)
    assert least_squares(A, y, split=UNEVEN).constants.f_star is None


def test_rows_of_zeros():
    A = sp.csr_array((np.zeros(0), np.zeros(0, np.int32), np.zeros(5, np.int32)), shape=(4, 3))
    assert squared_norms(A, axis=1).max() == top_gram_eigenvalue(A) == 0


# --- quadratics ---


def two_workers():
    """grad f_1 = (x1 - 4, 2 x2), grad f_2 = (3 x1, x2 - 3)."""
    return quadratic(np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([[4.0, 0.0], [0.0, 3.0]]))


def test_two_workers_in_the_plane():
    problem = two_workers()
    np.testing.assert_array_equal(problem.worker_grads(np.array([5.0, 7.0])), [[1, 14], [15, 4]])
    c = problem.constants
    expected = {"L": 2, "L_i": [2, 3], "L_max": 3, "mu": 1.5, "L_plus": math.sqrt(5), "L_pm": 1}
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(c, name), value, rtol=1e-14)
    assert c.f_star == pytest.approx(-1.75, rel=1e-15)
    assert problem.value(np.ones(2)) == -1.75
    np.testing.assert_array_equal(problem.grad(np.ones(2)), [0, 0])


def test_parabolas_with_constants():
    i = np.arange(1.0, 5.0)
    problem = quadratic(i.reshape(4, 1, 1), (i**2).reshape(4, 1), i**3 / 2)
    x = np.array([0.5])
    assert problem.value(x) == pytest.approx(np.mean(i * (0.5 - i) ** 2 / 2), rel=1e-15)
    np.testing.assert_allclose(problem.worker_grads(x)[:, 0], i * (0.5 - i))
    assert problem.constants.f_star == pytest.approx(1.25, rel=1e-14)


def test_dense_and_diagonal_matrices_agree():
    diagonal = np.array([[1.0, 2.0], [3.0, 1.0]])
    b = np.array([[4.0, 0.0], [0.0, 3.0]])
    for rows, offsets in ((diagonal, b), (diagonal - 1.5, b), (diagonal * [1, 0], b)):
        dense = quadratic(np.array([np.diag(row) for row in rows]), offsets)
        sparse = quadratic(rows, offsets)
        x = points(1, 2)[0]
        np.testing.assert_allclose(dense.worker_grads(x), sparse.worker_grads(x), rtol=1e-14)
        for name in ("L", "L_i", "L_sample_max", "L_plus", "L_pm", "mu"):
            np.testing.assert_allclose(
                getattr(sparse.constants, name), getattr(dense.constants, name), atol=1e-14
            )
        assert sparse.constants.convex == dense.constants.convex
        assert (sparse.constants.f_star is None) == (dense.constants.f_star is None)


def test_diagonals_are_not_made_into_matrices():
    dim = 300_000  # a matrix of this size would take 720 GB
    diagonals = np.linspace(1.0, 2.0, 2 * dim).reshape(2, dim)
    problem = quadratic(diagonals, np.ones((2, dim)))
    mean = diagonals.mean(axis=0)
    assert problem.constants.L_max == 2
    assert problem.constants.mu == mean[0]
    assert problem.constants.f_star == pytest.approx(-0.5 * np.sum(1 / mean), rel=1e-13)
    assert problem.value(1 / mean) == pytest.approx(problem.constants.f_star, rel=1e-13)


@pytest.mark.parametrize("basis", ["rotated", "diagonal"])
@pytest.mark.parametrize("n_workers", [1, 4])
def test_chosen_constants_are_those_of_the_matrices(basis, n_workers):
    options = {"L": 5.0, "mu": 0.2, "heterogeneity": 0.7, "basis": basis, "seed": 2}
    problem = synthetic_quadratic(n_workers, 6, **options)
    data = quadratics(n_workers, 6, **options)
    computed = quadratic(data.A, data.b).constants
    c = problem.constants
    for name in ("L", "L_i", "L_sample_max", "L_plus", "L_pm", "mu", "f_star"):
        np.testing.assert_allclose(
            getattr(c, name), getattr(computed, name), rtol=1e-11, atol=1e-13
        )
    assert pytest.approx(5, rel=1e-15) == c.L
    assert c.mu == pytest.approx(0.2, rel=1e-15)
    if n_workers == 4:  # s = -1, -1/3, 1/3, 1 with mean square 5/9
        assert c.L_pm == pytest.approx(5 * 0.7 * math.sqrt(5 / 9), rel=1e-14)
        assert c.L_plus == pytest.approx(5 * math.sqrt(1 + 0.49 * 5 / 9), rel=1e-14)
    assert_order(c)
    assert_bounds(problem, zip(points(4, 6), points(4, 6, seed=2), strict=True))
    assert problem.metrics(data.x_star)[1] < 1e-25
    assert problem.value(data.x_star) == pytest.approx(c.f_star, rel=1e-13)


def test_indefinite_workers_with_a_convex_mean():
    problem = synthetic_quadratic(3, 5, L=2.0, mu=0.5, heterogeneity=3.0)
    np.testing.assert_allclose(problem.constants.L_i, [4, 2, 8])
    assert problem.constants.mu == pytest.approx(0.5)


def test_quadratics_unbounded_below_have_no_minimum():
    b = np.array([[1.0, 0.0]])
    assert quadratic(np.array([[1.0, -1.0]]), b).constants.f_star is None
    assert quadratic(np.array([[0.0, 1.0]]), b).constants.f_star is None
    flat = quadratic(np.array([[1.0, 0.0]]), b).constants
    assert flat.f_star == -0.5
    assert flat.mu == 0


# --- the minimum ---


def newton_minimum(A, y, l2):
    x = np.zeros(A.shape[1])
    for _ in range(30):
        s = sigmoid(-y * (A @ x))
        grad = -(y * s) @ A / len(y) + l2 * x
        hessian = (A * (s * (1 - s))[:, None]).T @ A / len(y) + l2 * np.eye(len(x))
        x -= np.linalg.solve(hessian, grad)
    return np.mean(np.logaddexp(0, -y * (A @ x))) + l2 / 2 * x @ x


@pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-5])
def test_minimum_of_regularized_logistic_regression(l2):
    A, y = samples()
    problem = logistic(A, y, l2=l2, split=2)
    assert problem.constants.f_star == pytest.approx(newton_minimum(A, y, l2), rel=1e-13)
    assert problem.counters.oracle_calls == 0
    assert problem.constants.mu == l2


def test_minimum_on_real_data():
    data = breast_cancer()
    f_star = logistic(data.A, data.y, l2=1e-3).constants.f_star
    assert f_star == pytest.approx(newton_minimum(data.A, data.y, 1e-3), rel=1e-13)


def test_the_minimum_is_solved_for_once_and_only_when_asked():
    asked = []
    found = Minimum(0.5, np.zeros(1))
    c = Constants(1.0, np.ones(1), 1.0, minimum=lambda: asked.append(1) or found)
    assert not asked
    assert c.f_star == c.f_star == 0.5
    assert len(asked) == 1
    assert Constants(1.0, np.ones(1), 1.0, minimum=Minimum(0.25, np.ones(1))).f_star == 0.25
    assert Constants(1.0, np.ones(1), 1.0).f_star is None


def test_no_minimum_without_a_certificate():
    A, y = samples()
    assert strongly_convex_minimum(logistic(A, y, l2=0.1).oracle, 1e-40) is None
    assert logistic(A, y).constants.f_star is None
    assert nonconvex_logistic(A, y).constants.f_star is None
    assert logistic_nonconvex_reg(A, y).constants.f_star is None


def test_convexity_is_of_every_worker():
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((20, 3)), np.sign(rng.standard_normal(20))
    assert logistic(A, y).constants.convex
    assert least_squares(A, y).constants.convex
    assert not nonconvex_logistic(A, y).constants.convex
    assert not logistic_nonconvex_reg(A, y, lam=0.1).constants.convex
    H = np.array([[2.0, 0.0], [0.0, 2.0]])
    b = np.zeros((2, 2))
    assert quadratic(np.stack([H, H]), b).constants.convex
    # The mean is positive definite, one worker's function is not convex.
    mixed = quadratic(np.stack([H, np.diag([-1.0, 1.0])]), b).constants
    assert mixed.mu == pytest.approx(0.5)
    assert not mixed.convex
    assert not synthetic_quadratic(dim=4, n_workers=3, heterogeneity=1.5).constants.convex
