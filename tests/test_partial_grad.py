"""Entries of the gradient: right for every way in which a parameter is used, and cheap."""

import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo
from buropt import _core
from buropt.trace import Trace

RNG = np.random.default_rng(0)
CLOSE = {"rtol": 1e-12, "atol": 1e-14}
N = 30
A = RNG.standard_normal((N, 8))
TOKENS = RNG.integers(-12, 12, (N, 5))

# Parameters, a loss of one sample, data.
LOSSES = {
    "linear": ({"x": (8,)}, lambda p, a: np.tanh(a @ p["x"]), A),
    "matrix": ({"w": (40, 8)}, lambda p, a: np.sum(np.tanh(p["w"] @ a) ** 2), A),
    "matrix from the right": ({"w": (8, 40)}, lambda p, a: np.sum(np.sin(a @ p["w"])), A),
    "matrix and its transpose": (
        {"w": (9, 8)},
        lambda p, a: np.sum(np.tanh(p["w"].T @ (p["w"] @ a))),
        A,
    ),
    "matrices of samples": (
        {"w": (8, 6)},
        lambda p, a: np.sum(np.tanh(np.outer(a, a) @ p["w"]) ** 2),
        A,
    ),
    "two layers": (
        {"v": (7, 8), "b": (7,), "w": (30, 7), "c": (30,)},
        lambda p, a: np.sum((p["w"] @ np.tanh(p["v"] @ a + p["b"]) + p["c"]) ** 2),
        A,
    ),
    "layers without data": (
        {"w": (12, 12), "u": (12,)},
        lambda p: np.sum(np.tanh(p["w"] @ np.tanh(p["w"] @ p["u"]))),
        None,
    ),
    "regular penalty": ({"w": (6, 8)}, lambda p, a: np.sum(p["w"] ** 4) + a[0] * p["w"][0, 0], A),
    "broadcast": (
        {"row": (8,), "column": (6, 1), "number": ()},
        lambda p, a: np.sum(np.exp(p["row"] * p["column"] * 0.1 + a) * p["number"]),
        A,
    ),
    "sums over axes": (
        {"w": (4, 5, 3)},
        lambda p, a: np.sum(np.sum(p["w"], axis=1) ** 3) * a[0] + np.sum(p["w"].sum((0, 2)) ** 2),
        A,
    ),
    "pieces": (
        {"x": (17,)},
        lambda p, a: np.sum(p["x"][1::2] * a) ** 2 + p["x"][-1] * p["x"][3] + np.sum(p["x"][::-3]),
        A,
    ),
    "joins": (
        {"x": (5,), "y": (3,)},
        lambda p, a: np.sum(np.concatenate([p["x"], p["y"] ** 2]) * a) ** 2,
        A,
    ),
    "joined matrices": (
        {"u": (3, 8), "v": (2, 8)},
        lambda p, a: np.sum(np.tanh(np.concatenate([p["u"], p["v"], p["u"]]) @ a)),
        A,
    ),
    "transposes": (
        {"w": (2, 4, 3)},
        lambda p, a: np.sum(np.transpose(p["w"], (2, 0, 1)).reshape(3, 8) @ a) ** 2,
        A,
    ),
    "embedding": (
        {"table": (12, 6)},
        lambda p, t: np.sum(np.tanh(np.take(p["table"], t, axis=0).sum(axis=0)) ** 2),
        TOKENS,
    ),
    "picked columns": (
        {"table": (3, 12)},
        lambda p, t: np.sum(np.take(p["table"], t, axis=1) ** 3),
        TOKENS,
    ),
    "constant picks": (
        {"x": (20,)},
        lambda p, a: np.sum(p["x"][np.array([3, 3, 19, 0, 7, 3, 1, 2])] * a) ** 2,
        A,
    ),
    "no rule": ({"x": (8,)}, lambda p, a: np.sum(np.cumsum(p["x"]) ** 2 * a), A),
    "one number": ({"x": ()}, lambda p, a: np.sin(p["x"] * a[0]), A),
    "no influence": ({"x": (8,), "y": (9,)}, lambda p, a: np.sum(p["x"] * a), A),
}


def oracle_of(name, **options):
    shapes, loss, data = LOSSES[name]
    x0 = {key: RNG.standard_normal(shape) for key, shape in shapes.items()}
    return bo.compile(loss, x0, data if data is None else (data,), **options)


@pytest.mark.filterwarnings("ignore::buropt.DisconnectedInputWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LOSSES)
def test_entries_are_those_of_the_gradient(name, dtype):

    def penalty(p):
        return 0.1 * np.sum(next(iter(p.values())) ** 2)

    oracle = oracle_of(name, dtype=dtype, regularizer=penalty)
    x = oracle.x0
    gradient = oracle.grad(x)
    close = CLOSE if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    for count in (1, 3, oracle.dim):
        coords = RNG.integers(0, oracle.dim, count)
        found = oracle.partial_grad(x, coords)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, gradient[coords], **close)
    if oracle.n_samples:
        idx, weights = np.array([3, 3, 17]), np.array([1.0, 0.5, 2.0], dtype)
        found = oracle.partial_grad(x, coords, idx, weights)
        np.testing.assert_allclose(found, oracle.grad(x, idx, weights)[coords], **close)


@pytest.mark.parametrize("columns", [None, 3])
def test_sparse_data(columns):
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(rng.random((N, 40)) * (rng.random((N, 40)) < 0.2))
    shape = (40,) if columns is None else (40, columns)
    x0 = RNG.standard_normal(shape)
    oracle = bo.compile(lambda x, a: np.sum(np.tanh(a @ x) ** 2), x0, (matrix,))
    coords = RNG.permutation(oracle.dim)[:9]
    x = x0.ravel()
    np.testing.assert_allclose(oracle.partial_grad(x, coords), oracle.grad(x)[coords], **CLOSE)
    binary = matrix.copy()
    binary.data[:] = 1
    oracle = bo.compile(lambda x, a: np.sum(np.tanh(a @ x) ** 2), x0, (binary,))
    np.testing.assert_allclose(oracle.partial_grad(x, coords), oracle.grad(x)[coords], **CLOSE)


def network(width, outputs):
    """A network whose last layer has width * outputs weights."""
    x0 = {
        "v": 0.1 * RNG.standard_normal((width, 20)),
        "w": 0.1 * RNG.standard_normal((outputs, width)),
    }
    data = (RNG.standard_normal((16, 20)), RNG.standard_normal((16, outputs)))

    def loss(p, a, y):
        return np.sum((p["w"] @ np.tanh(p["v"] @ a) - y) ** 2)

    return bo.compile(loss, x0, data)


def work_of(oracle, counts):
    return oracle._queries.partial(False, counts).work_per_sample


def test_few_entries_of_a_large_layer_cost_a_small_fraction():
    """10 of 100 000 weights of a last layer: their lines, and no other output."""
    oracle = network(100, 1000)
    x = oracle.x0
    coords = 2000 + RNG.integers(0, 100_000, 10)
    np.testing.assert_allclose(oracle.partial_grad(x, coords), oracle.grad(x)[coords], **CLOSE)
    whole = oracle.describe()["work_per_sample"]
    assert work_of(oracle, (0, 16)) < 0.05 * whole
    works = [work_of(oracle, (0, count)) for count in (1, 16, 256, 4096)]
    assert works == sorted(works)
    # The size of the layer plays no part.
    larger = network(100, 3000)
    assert work_of(larger, (0, 16)) == work_of(oracle, (0, 16))
    # One block only: the first layer's gradient is never formed.
    assert work_of(oracle, (1, 0)) > work_of(oracle, (0, 1))


def test_new_coordinates_need_no_new_program():
    oracle = network(10, 20)
    made = []
    compiled = oracle._queries._compile
    oracle._queries._compile = lambda *args: made.append(args) or compiled(*args)
    x = oracle.x0
    gradient = oracle.grad(x)
    for count in (5, 6, 7, 8):
        coords = 200 + RNG.integers(0, 200, count)
        np.testing.assert_allclose(oracle.partial_grad(x, coords), gradient[coords], **CLOSE)
    assert len(made) == 1
    for count in range(1, 300):
        oracle.partial_grad(x, np.arange(count))
    assert len(oracle._queries._compiled) <= 64


def test_out_and_order():
    oracle = network(3, 4)
    x = oracle.x0
    coords = np.array([70, 0, 71, 0, 59])
    out = np.full(5, np.nan)
    assert oracle.partial_grad(x, coords, out=out) is out
    np.testing.assert_allclose(out, oracle.grad(x)[coords], **CLOSE)


@pytest.mark.parametrize(
    ("coords", "message"),
    [
        ([], "non-empty 1-D array of integers"),
        ([0.5], "got dtype float64"),
        ([[1]], r"shape \(1, 1\)"),
        ([0, 72], "coords contains 72, but coordinates go from 0 to 71"),
        ([-1], "coords contains -1"),
    ],
)
def test_mistakes(coords, message):
    oracle = network(3, 4)
    with pytest.raises((ValueError, IndexError), match=message):
        oracle.partial_grad(oracle.x0, coords)
    with pytest.raises(ValueError, match=r"out must be an array of shape \(1,\)"):
        oracle.partial_grad(oracle.x0, [0], out=np.empty(2))


def test_places_in_slices():
    """The arithmetic of places, in an array of four axes."""
    shape, starts, sizes, steps = (3, 4, 5, 2), (2, 0, 1, 1), (2, 2, 3, 1), (-2, 3, 1, 1)
    places = np.arange(120.0)
    with Trace() as trace:
        x = trace.input("x", (120,))
        inside = trace.emit(
            "index_in_slice",
            (x,),
            {"shape": shape, "starts": starts, "sizes_and_steps": [*sizes, *steps]},
        )
        moved = trace.emit(
            "index_map", (x,), {"extents": shape, "strides": (1, 0, 7, 100), "offset": 5}
        )
        graph = trace.builder.build([inside.node, moved.node], ["inside", "moved"])
    found, mapped = _core.Program(graph)(places)
    whole = np.arange(120).reshape(shape)
    key = zip(starts, sizes, steps, strict=True)
    picked = whole[np.ix_(*(start + step * np.arange(size) for start, size, step in key))]
    expected = np.full(120, -1.0)
    expected[picked.ravel()] = np.arange(12)
    np.testing.assert_array_equal(found, expected)
    a, _, c, d = np.unravel_index(np.arange(120), shape)
    np.testing.assert_array_equal(mapped, 5 + a + 7 * c + 100 * d)


def test_places_must_be_a_list():
    with Trace() as trace:
        x, places = trace.input("x", (4, 2)), trace.input("places", (2, 2))
    with pytest.raises(ValueError, match=r"places must have one axis, got shape \(2, 2\)"):
        trace.builder.restrict([x.node], [places.node])
    with pytest.raises(ValueError, match="1 nodes but 0 places"):
        trace.builder.restrict([x.node], [])
