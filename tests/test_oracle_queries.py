"""What oracles answer beside value and gradient: second order, sample by sample, directions."""

import inspect

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special

import buropt as bo

RNG = np.random.default_rng(0)
N, D = 300, 6
A = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
Y = np.sign(RNG.standard_normal(N))
W = RNG.random(N) + 0.5
X, V = RNG.standard_normal(D), RNG.standard_normal(D)
IDX = np.array([3, 7, 7, 250, 11])
CLOSE = {"rtol": 1e-12, "atol": 1e-14}


def loss(x, a, y):
    return np.logaddexp(0, -y * (a @ x))


def regularizer(x):
    return 0.05 * np.sum(x**4)


def rows_of(idx):
    return slice(None) if idx is None else idx


def reference(x, idx=None, weights=None):
    """Rows of gradients, and the Hessian, by formula."""
    a, y = A[rows_of(idx)], Y[rows_of(idx)]
    w = np.ones(len(y)) if weights is None else weights
    s = scipy.special.expit(-y * (a @ x))
    rows = (-w * y * s)[:, None] * a + 0.2 * x**3
    hessian = (a.T * (w * s * (1 - s))) @ a / len(y) + np.diag(0.6 * x**2)
    return rows, hessian


ORACLES = {
    "dense": bo.compile(loss, X, (A, Y), regularizer=regularizer),
    "sparse": bo.compile(loss, X, (sp.csr_array(A), Y), regularizer=regularizer),
    "weighted": bo.compile(loss, X, (A, Y), regularizer=regularizer, weights=W),
    "workers": bo.compile(loss, X, (A, Y), regularizer=regularizer, workers=7, threads=2),
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("idx", [None, IDX], ids=["all", "some"])
@pytest.mark.parametrize("weights", [None, "given"])
def test_against_formulas(name, idx, weights):
    oracle = ORACLES[name]
    given = None if weights is None else np.linspace(1, 2, N if idx is None else len(idx))
    w = W[rows_of(idx)] if name == "weighted" and given is None else given
    rows, hessian = reference(X, idx, w)
    np.testing.assert_allclose(oracle.hvp(X, V, idx, given), hessian @ V, **CLOSE)
    np.testing.assert_allclose(oracle.hessian(X, idx, given), hessian, **CLOSE)
    np.testing.assert_allclose(oracle.jvp(X, V, idx, given), rows.mean(axis=0) @ V, **CLOSE)
    found = oracle.per_sample_grads(X, idx, given)
    np.testing.assert_allclose(found, rows, **CLOSE)
    np.testing.assert_allclose(found.mean(axis=0), oracle.grad(X, idx, given), **CLOSE)


@pytest.mark.parametrize("name", ORACLES)
def test_out(name):
    oracle = ORACLES[name]
    product, rows = np.full(D, np.nan), np.full((len(IDX), D), np.nan)
    assert oracle.hvp(X, V, IDX, out=product) is product
    np.testing.assert_array_equal(product, oracle.hvp(X, V, IDX))
    assert oracle.per_sample_grads(X, IDX, out=rows) is rows
    np.testing.assert_array_equal(rows, oracle.per_sample_grads(X, IDX))


@pytest.mark.parametrize("idx", [None, IDX], ids=["all", "some"])
def test_sparse_gradients_have_the_pattern_of_the_data(idx):
    oracle = ORACLES["sparse"]
    given = None if idx is None else np.linspace(1, 2, len(idx))
    rows = oracle.per_sample_grads(X, idx, given, sparse=True)
    assert isinstance(rows, sp.csr_array)
    data = sp.csr_array(A)[rows_of(idx)]
    np.testing.assert_array_equal(rows.indices, data.indices)
    expected = reference(X, idx, given)[0] - 0.2 * X**3  # without the regularizer
    np.testing.assert_allclose(rows.toarray(), expected, **CLOSE)


def test_sparse_gradients_of_other_losses_are_refused():
    for other in (
        lambda x, a, y: np.tanh(a @ x) + np.sum(x**2),
        lambda x, a, y: (a @ (x * y)) ** 2,
        lambda x, a, y: y * np.sum(x),
    ):
        oracle = bo.compile(other, X, (sp.csr_array(A), Y))
        with pytest.raises(ValueError, match=r"only by a @ x .* Instead: leave sparse out"):
            oracle.per_sample_grads(X, sparse=True)
        np.testing.assert_allclose(oracle.per_sample_grads(X).mean(axis=0), oracle.grad(X), **CLOSE)
    with pytest.raises(ValueError, match="data\\[0\\] to be a sparse matrix"):
        ORACLES["dense"].per_sample_grads(X, sparse=True)
    with pytest.raises(TypeError, match="no out="):
        ORACLES["sparse"].per_sample_grads(X, out=np.empty((N, D)), sparse=True)


def test_nested_parameters():
    """A small network: rows of gradients are the gradients of the rows."""
    params = {
        "w": RNG.standard_normal((4, D)),
        "b": RNG.standard_normal(4),
        "out": RNG.standard_normal(4),
    }

    def network(p, a, y):
        return (p["out"] @ np.tanh(p["w"] @ a + p["b"]) - y) ** 2

    oracle = bo.compile(network, params, (A, Y), regularizer=lambda p: np.sum(p["w"] ** 2))
    x, v = oracle.x0, RNG.standard_normal(oracle.dim)
    gradient = bo.grad(lambda p, a, y: network(p, a, y) + np.sum(p["w"] ** 2))
    rows = oracle.per_sample_grads(x, IDX)
    expected = [oracle.flatten(gradient(params, A[j], Y[j])) for j in IDX]
    np.testing.assert_allclose(rows, expected, **CLOSE)
    hessian = oracle.hessian(x)
    assert hessian.shape == (oracle.dim, oracle.dim)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(oracle.hvp(x, v), hessian @ v, rtol=1e-10, atol=1e-12)
    h = 1e-6
    difference = (oracle.grad(x + h * v) - oracle.grad(x - h * v)) / (2 * h)
    np.testing.assert_allclose(oracle.hvp(x, v), difference, rtol=1e-6, atol=1e-8)
    assert oracle.jvp(x, v) == pytest.approx(oracle.grad(x) @ v, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_workers_have_hessians_of_their_own(weighted):
    """By formula for a split into parts of different sizes; the mean is the whole function's."""
    shards = np.split(RNG.permutation(N), [20, 150])
    weights = W if weighted else None
    oracle = bo.compile(loss, X, (A, Y), regularizer=regularizer, weights=weights, workers=shards)
    hessians, products = oracle.worker_hessians(X), oracle.worker_hvps(X, V)
    assert hessians.shape == (3, D, D)
    for shard, hessian, product in zip(shards, hessians, products, strict=True):
        share = 3 * len(shard) / N
        w = share * (W[shard] if weighted else np.ones(len(shard)))
        np.testing.assert_allclose(hessian, reference(X, shard, w)[1], **CLOSE)
        np.testing.assert_allclose(product, hessian @ V, **CLOSE)
    np.testing.assert_allclose(hessians.mean(axis=0), oracle.hessian(X), **CLOSE)
    np.testing.assert_allclose(products.mean(axis=0), oracle.hvp(X, V), **CLOSE)


def test_without_data():
    """Case S04: Rosenbrock's products, and SciPy's methods that use them."""

    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x0 = np.array([-1.2, 1.0])
    oracle = bo.compile(rosenbrock, x0)
    np.testing.assert_allclose(oracle.hvp(x0, np.array([1.0, 0.0])), [1330, 480], rtol=1e-12)
    np.testing.assert_allclose(oracle.hessian(x0), [[1330, 480], [480, 200]], rtol=1e-12)
    assert oracle.jvp(x0, np.array([0.0, 1.0])) == pytest.approx(oracle.grad(x0)[1])
    for method in ("trust-ncg", "trust-krylov", "Newton-CG"):
        result = scipy.optimize.minimize(
            oracle.value, x0, jac=oracle.grad, hessp=oracle.hvp, method=method
        )
        np.testing.assert_allclose(result.x, [1, 1], atol=1e-3)
        assert result.fun < 1e-8
    with pytest.raises(ValueError, match="per_sample_grads needs data"):
        oracle.per_sample_grads(x0)
    with pytest.raises(ValueError, match="worker Hessians need data"):
        oracle.worker_hvps(x0, x0)
    with pytest.raises(ValueError, match="weights cannot be given"):
        oracle.hvp(x0, x0, weights=np.ones(1))


def test_power_cases_of_hessian_products():
    """Case A04 on an oracle, A06 with tails."""
    oracle = bo.compile(lambda x: np.sum(x**2), np.zeros(3))
    np.testing.assert_array_equal(oracle.hvp(np.zeros(3), np.array([1.0, 2, 3])), [2.0, 4.0, 6.0])
    tails = bo.compile(loss, np.zeros(1), (np.ones((1, 1)), np.ones(1)))
    for m, second in [(-800.0, 0.0), (0.0, 0.25), (800.0, 0.0)]:
        assert tails.hvp(np.array([m]), np.ones(1)) == [second]
        assert tails.hessian(np.array([m])) == [[second]]


def test_repeats_are_bit_identical_and_threads_change_nothing():
    """Case A08 on second order."""
    one, two = (bo.compile(loss, X, (A, Y), regularizer=regularizer, threads=t) for t in (1, 2))
    for ask in (
        lambda o: o.hvp(X, V),
        lambda o: o.hessian(X),
        lambda o: np.float64(o.jvp(X, V)),
        lambda o: o.per_sample_grads(X),
    ):
        first = ask(one).tobytes()
        assert first == ask(one).tobytes() == ask(two).tobytes()


def test_float32_and_the_shape_of_x0():
    matrix = RNG.standard_normal((2, 3)).astype(np.float32)
    oracle = bo.compile(
        lambda x, a: np.sum(np.exp(x) @ a), matrix, data=(RNG.random((5, 3)).astype(np.float32),)
    )
    v = np.ones((2, 3), np.float32)
    product = oracle.hvp(matrix, v)
    assert product.dtype == np.float32
    assert product.shape == (2, 3)
    np.testing.assert_allclose(product, np.exp(matrix) * (product / np.exp(matrix))[:1], rtol=1e-5)
    np.testing.assert_array_equal(product.ravel(), oracle.hvp(matrix.ravel(), v.ravel()))
    out = np.empty((2, 3), np.float32)
    assert oracle.hvp(matrix, v, out=out) is out
    assert oracle.hessian(matrix).shape == (6, 6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o: o.hvp(X, V[:3]), r"v must have shape \(6,\), got \(3,\)"),
        (lambda o: o.jvp(X[:2], V), r"x must have shape \(6,\), got \(2,\)"),
        (lambda o: o.hessian(X, [N]), "idx contains 300"),
        (lambda o: o.hvp(X, V, IDX, np.ones(3)), "weights must have one entry per sample"),
        (lambda o: o.hvp(X, V, out=np.empty(3)), r"out must have shape \(6,\), got \(3,\)"),
        (lambda o: o.hvp(X, V, out=[0.0] * D), "out must be an array of shape"),
        (lambda o: o.hvp(X, V, out=np.empty(2 * D)[::2]), "out"),
        (lambda o: o.hvp(X, V, out=V), "out must not share memory with v"),
        (lambda o: o.hvp(np.ma.array(X), V), "x is a masked array"),
        (
            lambda o: o.per_sample_grads(X, out=np.empty((2, D))),
            r"out must be a C-contiguous float64 array of shape \(300, 6\)",
        ),
    ],
)
def test_mistakes(call, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call(ORACLES["dense"])


def test_all_queries_take_their_arguments_in_one_order() -> None:
    """Points and what belongs to them, then which workers and samples, weights, and `out`."""
    order = ["x", "v", "y", "step_size", "coords", "workers", "idx", "weights", "names", "out"]
    queries = [name for name in dir(bo.Oracle) if not name.startswith("_")]
    for name in queries:
        query = getattr(bo.Oracle, name)
        if not callable(query):
            continue
        parameters = list(inspect.signature(query).parameters)
        places = [order.index(parameter) for parameter in parameters if parameter in order]
        assert places == sorted(places), name
