"""Bundled and synthetic data."""

import logging

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from buropt.data import breast_cancer, digits, quadratics, synthetic_classification


def test_breast_cancer(caplog):
    with caplog.at_level(logging.INFO, "buropt.data"):
        data = breast_cancer()
    assert data.A.shape == (569, 31)
    assert data.A.flags.c_contiguous
    assert np.count_nonzero(data.y == 1) == 357
    assert np.count_nonzero(data.y == -1) == 212
    assert data.label_mapping == {0: -1, 1: 1}
    assert caplog.messages == ["breast_cancer: labels 0 -> -1, 1 -> +1"]
    np.testing.assert_allclose(data.A[:, :30].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.A[:, :30].std(axis=0), 1)
    np.testing.assert_array_equal(data.A[:, 30], 1)


def test_bundled_options():
    raw = breast_cancer(standardize=False, bias=False, dtype="float32")
    assert raw.A.shape == (569, 30)
    assert raw.A.dtype == raw.y.dtype == np.float32
    assert raw.A.max() > 4000


def test_digits():
    data = digits()
    assert data.A.shape == (1797, 65)
    assert data.classes.tolist() == list(range(10))
    assert np.isfinite(data.A).all()
    np.testing.assert_array_equal(data.A[:, 0], 0)  # this pixel is never inked
    eights = digits(positive=8)
    np.testing.assert_array_equal(eights.y, np.where(data.y == 8, 1, -1))
    with pytest.raises(ValueError, match="digits: positive=10 does not cut"):
        digits(positive=10)


def test_repr_says_the_size():
    assert repr(digits()) == "Dataset(digits: 1797 x 65, dense, float64)"
    data = synthetic_classification(20, 10, density=0.3)
    assert repr(data).startswith(
        f"Dataset(synthetic_classification: 20 x 10, sparse, {data.A.nnz} non-zeros"
    )


# --- quadratics ---


@pytest.mark.parametrize("basis", ["rotated", "diagonal"])
@pytest.mark.parametrize(("n_workers", "dim"), [(1, 6), (2, 6), (5, 6), (4, 1)])
@pytest.mark.parametrize(("L", "mu"), [(7.0, 0.3), (7.0, 0.0), (2.0, 2.0)])
def test_quadratics_have_the_spectrum_they_state(basis, n_workers, dim, L, mu):
    mu = L if dim == 1 else mu
    q = quadratics(n_workers, dim, L=L, mu=mu, heterogeneity=0.8, basis=basis, seed=3)
    A = q.A if basis == "rotated" else np.array([np.diag(row) for row in q.A])
    assert A.shape == (n_workers, dim, dim)
    np.testing.assert_array_equal(A, A.transpose(0, 2, 1))
    for matrix, eigenvalues in zip(A, q.eigenvalues, strict=True):
        np.testing.assert_allclose(np.linalg.eigvalsh(matrix), np.sort(eigenvalues), atol=1e-14 * L)
    mean = q.eigenvalues.mean(axis=0)
    assert mean.min() == pytest.approx(mu, rel=1e-15, abs=0)
    assert mean.max() == pytest.approx(L, rel=1e-15, abs=0)

    def f(x):
        return np.mean([0.5 * x @ A_i @ x - b_i @ x for A_i, b_i in zip(A, q.b, strict=True)])

    assert f(q.x_star) == pytest.approx(q.f_star, rel=1e-13)
    np.testing.assert_allclose(A.mean(axis=0) @ q.x_star, q.b.mean(axis=0), atol=1e-13 * L)
    rng = np.random.default_rng(0)
    assert all(f(q.x_star + rng.standard_normal(dim)) >= q.f_star - 1e-12 for _ in range(20))


def test_heterogeneity_spreads_the_smoothness_of_the_workers():
    q = quadratics(5, 8, L=4.0, mu=1.0, heterogeneity=0.5)
    np.testing.assert_allclose(q.eigenvalues.max(axis=1), [2, 3, 4, 5, 6], rtol=1e-15)
    alike = quadratics(5, 8, L=4.0, mu=1.0, heterogeneity=0.0)
    np.testing.assert_array_equal(alike.A, np.broadcast_to(alike.A[0], (5, 8, 8)))


def test_gradient_heterogeneity_is_the_size_of_gradients_at_the_minimizer():
    def size(gradient_heterogeneity):
        q = quadratics(4, 8, gradient_heterogeneity=gradient_heterogeneity, heterogeneity=0.3)
        grads = q.A @ q.x_star - q.b
        return np.sqrt(np.mean(np.sum(grads**2, axis=1)))

    assert size(2.5) == pytest.approx(2.5)
    assert size(0.0) == pytest.approx(0, abs=1e-14)


def test_quadratics_are_seeded_and_rotated():
    first, again, other = (quadratics(3, 5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.A, again.A)
    np.testing.assert_array_equal(first.b, again.b)
    assert not np.array_equal(first.A, other.A)
    off_diagonal = first.A[0][~np.eye(5, dtype=bool)]
    assert np.abs(off_diagonal).min() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_workers": 0}, "n_workers=0, dim=5: write 1 or more"),
        ({"dim": 0}, "n_workers=3, dim=0"),
        ({"L": 1.0, "mu": 2.0}, "L=1.0, mu=2.0 are out of range"),
        ({"mu": -1.0}, "are out of range; write 0 <= mu <= L"),
        ({"L": 0.0, "mu": 0.0}, "are out of range"),
        ({"dim": 1, "L": 2.0}, "dim=1 has a single eigenvalue, but L=2.0 and mu=0.1; write mu=2.0"),
        ({"heterogeneity": -0.1}, "heterogeneity=-0.1 is out of range"),
        ({"gradient_heterogeneity": np.inf}, "gradient_heterogeneity=inf is out of range"),
        ({"basis": "skew"}, "basis='skew' is unknown; write one of rotated, diagonal"),
    ],
)
def test_quadratics_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        quadratics(**({"n_workers": 3, "dim": 5} | options))


# --- classification ---


def test_synthetic_classification():
    data = synthetic_classification(400, 20, condition=100.0, flip=0.0, seed=5)
    assert data.A.shape == (400, 20)
    assert data.classes.tolist() == [-1, 1]
    scales = data.A.std(axis=0)
    assert scales[0] / scales[-1] == pytest.approx(10, rel=0.2)
    # Without wrong labels a hyperplane through the origin separates: y_j a_j'x >= 1 has a solution.
    margins = data.y[:, None] * data.A
    assert scipy.optimize.linprog(
        np.zeros(20), A_ub=-margins, b_ub=-np.ones(400), bounds=(None, None)
    ).success


def test_synthetic_classification_options():
    clean, noisy = (synthetic_classification(500, 5, flip=flip, seed=1) for flip in (0.0, 0.3))
    np.testing.assert_array_equal(clean.A, noisy.A)
    assert 0.2 < np.mean(clean.y != noisy.y) < 0.4
    sparse = synthetic_classification(500, 20, density=0.1, dtype="float32")
    assert sp.issparse(sparse.A)
    assert sparse.A.dtype == sparse.y.dtype == np.float32
    assert 0.05 < sparse.A.nnz / 10000 < 0.15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "0 samples x 50 features"),
        ({"density": 0.0}, "density=0.0 is out of range"),
        ({"flip": 1.5}, "flip=1.5 is out of range"),
        ({"condition": 0.5}, "condition=0.5 is out of range"),
    ],
)
def test_synthetic_classification_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        synthetic_classification(**options)
