"""`_core.Query`: values sample by sample, several vectors, several cotangents at once."""

import numpy as np
import pytest
import scipy.sparse as sp

from buropt import _core
from buropt.trace import Trace

RNG = np.random.default_rng(0)
N, D = 700, 5
A = RNG.standard_normal((N, D))
X = RNG.standard_normal(D)


def loss(x, a):
    return np.tanh(a @ x) ** 2 + np.sum(x**2)


def loss_gradient(x, a):
    t = np.tanh(a @ x)
    return (2 * t * (1 - t**2))[:, None] * a + 2 * x


def per_sample_query(data, threads=2):
    is_csr = sp.issparse(data)
    with Trace() as trace:
        x = trace.input("x", (D,))
        row = trace.csr_input("a", D) if is_csr else trace.input("a", (D,), batched=True)
        value = trace.call(loss, x, row)
        builder = trace.builder
        one = builder.constant(np.ones(()))
        (gradient,) = builder.vjp([value.node], [one], [x.node], per_sample=True)
        graph = builder.build([gradient, value.node], ["gradient", "value"])
    parts = []
    if is_csr:
        parts = [(data.data, data.indices.astype(np.int32), data.indptr.astype(np.int64))]
    return _core.Query(
        graph,
        [("x", (D,), False)],
        [("gradients", (D,), True), ("values", (), True)],
        [("vector", 0, 0), ("csr" if is_csr else "dense", 0, 0)],
        [(0, 0), (1, 0)],
        [] if is_csr else [data],
        parts,
        N,
        threads,
    )


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("count", [None, 1, 3, 300])
def test_gradients_sample_by_sample(form, count):
    data = A * (RNG.random(A.shape) < 0.5)
    query = per_sample_query(data if form == "dense" else sp.csr_array(data))
    idx = None if count is None else RNG.integers(0, N, count)
    rows = data if idx is None else data[idx]
    gradients, values = query([X], idx, None, 1.0, [None, None])
    np.testing.assert_allclose(gradients, loss_gradient(X, rows), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(values, [loss(X, a) for a in rows], rtol=1e-12)


def test_threads_and_out_do_not_change_a_bit():
    one, two = per_sample_query(A, 1), per_sample_query(A, 2)
    expected = one([X], None, None, 1.0, [None, None])
    out = [np.empty((N, D)), np.empty(N)]
    results = two([X], None, None, 1.0, out)
    for result, target, reference in zip(results, out, expected, strict=True):
        assert result is target
        assert result.tobytes() == reference.tobytes()


def test_the_rows_of_an_argument_are_samples():
    """A Jacobian: all cotangents at once, as the samples of a batch."""
    weights = RNG.standard_normal((4, D))
    with Trace() as trace:
        x = trace.input("x", (D,))
        u = trace.input("u", (4,), batched=True)
        y = trace.lift(np.tanh(weights @ x) * x[0])
        rows = trace.builder.vjp([y.node], [u.node], [x.node])
        graph = trace.builder.build(rows, ["jacobian"])
    query = _core.Query(
        graph,
        [("x", (D,), False), ("u", (4,), True)],
        [("jacobian", (D,), True)],
        [("vector", 0, 0), ("rows", 1, 0)],
        [(0, 0)],
        [],
        [],
        0,
        2,
    )
    (jacobian,) = query([X, np.eye(4)], None, None, 1.0, [None])
    t = np.tanh(weights @ X)
    expected = (1 - t**2)[:, None] * weights * X[0]
    expected[:, 0] += t
    np.testing.assert_allclose(jacobian, expected, rtol=1e-13)


def test_wrong_arrays_are_refused_by_name():
    query = per_sample_query(A)
    with pytest.raises(ValueError, match=r"x must have shape \(5,\), got \(4,\)"):
        query([np.ones(4)], None, None, 1.0, [None, None])
    with pytest.raises(TypeError, match="takes 1 arrays and gives 2"):
        query([X, X], None, None, 1.0, [None, None])
    with pytest.raises(IndexError, match="idx contains 700"):
        query([X], [N], None, 1.0, [None, None])
    buffer = np.empty((N + 1, D))
    with pytest.raises(ValueError, match="out must not share memory with x"):
        query([buffer[0]], None, None, 1.0, [buffer[:N], None])
