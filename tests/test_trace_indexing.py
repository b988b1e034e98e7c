"""Indexing of traced arrays is NumPy's: slices, arrays of integers, traced integers, masks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import buropt as bo
from buropt import _core
from buropt.trace import Trace, TraceError, UnsupportedOpError

MATRIX = np.arange(12.0).reshape(3, 4) + 0.5
CUBE = np.arange(24.0).reshape(2, 3, 4) + 0.5
ROWS = MATRIX[:, 0] > 3
ENTRIES = MATRIX > 3


class Traced:
    """Integers of an index that are traced; the others are constants."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __repr__(self):
        return f"Traced({self.values.tolist()})"


def apply(x, key, traced):
    given = iter(traced)
    return x[tuple(next(given) if isinstance(part, Traced) else part for part in key)]


def run(function, x, *integers):
    """Trace a function of an array and of integers, and run it."""
    integers = [np.asarray(values) for values in integers]
    with Trace() as trace:
        array = trace.input("x", x.shape)
        indices = [trace.input(f"i{k}", i.shape, kind="i") for k, i in enumerate(integers)]
        result = trace.lift(function(array, *indices))
    graph = trace.builder.build([result.node], ["result"])
    return np.asarray(_core.Program(graph)(x, *[i.astype(float) for i in integers])[0])


def assert_like_numpy(function, x, *integers):
    """Compare values with NumPy's, and gradients with weights added where they belong."""
    integers = [np.asarray(values) for values in integers]
    expected, got = function(x, *integers), run(function, x, *integers)
    assert got.shape == np.shape(expected)
    np.testing.assert_array_equal(got, expected)
    weights = np.random.default_rng(0).normal(size=np.shape(expected))
    gradient = bo.grad(lambda x, *i: np.sum(weights * function(x, *i)) + 0.0 * np.sum(x))
    adjoint = np.zeros(x.size)
    np.add.at(adjoint, function(np.arange(x.size).reshape(x.shape), *integers), weights)
    np.testing.assert_allclose(
        gradient(x, *integers), adjoint.reshape(x.shape), rtol=1e-13, atol=1e-14
    )


def assert_indexed_like_numpy(x, key):
    traced = [part.values for part in key if isinstance(part, Traced)]
    assert_like_numpy(lambda x, *indices: apply(x, key, indices), x, *traced)


ALL = slice(None)


@pytest.mark.parametrize(
    ("x", "key"),
    [
        (MATRIX, ([0, 2, 0],)),
        (MATRIX, (np.array([2, 0, -1]),)),
        (MATRIX, (np.array([[2, 0], [1, 1]], np.uint8),)),
        (MATRIX, (ALL, [3, 0, 0])),
        (MATRIX, (ALL, [1, 3])),
        (MATRIX, (ALL, [3, 2, 1])),
        (MATRIX, ([],)),
        (MATRIX, ([0, 2], [1, -1])),
        (MATRIX, ([[0], [2]], [1, -1, 0])),
        (MATRIX, (Traced(1),)),
        (MATRIX, (Traced(-1), Traced(2))),
        (MATRIX, (ALL, Traced([0, 0, 3]))),
        (MATRIX, (Traced([0, 1]), [1, 2])),
        (MATRIX, (Traced([[0], [-1]]), Traced([-1, 2]))),
        (MATRIX, (Traced([1, 1]), slice(None, None, -2))),
        (CUBE, (0, ALL, [1, 2])),
        (CUBE, (ALL, 0, [1, 2])),
        (CUBE, (ALL, [0, 1], None, [1, 2])),
        (CUBE, (ALL, [0, 1], ..., [1, 2])),
        (CUBE, (Traced([1, 1]), ..., [[0], [1]])),
        (CUBE, (None, slice(1, 3), Traced([1, 0, 2]), 2)),
        (CUBE, (..., Traced([1, 0, 2]), None)),
        (MATRIX, (ROWS,)),
        (MATRIX, (ROWS.tolist(),)),
        (MATRIX, (ENTRIES,)),
        (MATRIX, (np.zeros(3, bool),)),
        (MATRIX, (ROWS, [0])),
        (CUBE, (ALL, ENTRIES)),
        (CUBE, (Traced(1), ENTRIES)),
        (CUBE, (ENTRIES[:2, :3], [1])),
    ],
)
def test_advanced_indexing(x, key):
    assert_indexed_like_numpy(x, key)


@st.composite
def arrays_and_keys(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=4))
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    key = []
    for extent in shape[: draw(st.integers(1, len(shape)))]:
        what = draw(st.sampled_from(["slice", "integer", "constant", "traced", "traced"]))
        if what == "slice":
            key.append(draw(st.slices(extent)))
        elif what == "integer":
            key.append(draw(st.integers(-extent, extent - 1)))
        else:
            axes = draw(st.integers(0, len(common)))
            own = [n if draw(st.booleans()) else 1 for n in common[axes:]]
            values = draw(hnp.arrays(np.int64, own, elements=st.integers(-extent, extent - 1)))
            key.append(Traced(values) if what == "traced" else values)
    if draw(st.booleans()):  # the axes that no part stands for are behind the others
        key.insert(draw(st.integers(0, len(key))) if len(key) == len(shape) else len(key), ...)
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), None)
    return np.arange(np.prod(shape), dtype=float).reshape(shape), tuple(key)


@settings(max_examples=60)
@given(arrays_and_keys())
def test_indexing_in_general(drawn):
    assert_indexed_like_numpy(*drawn)


def test_lists_of_traced_integers():
    assert_like_numpy(lambda x, i, j: x[[i, j, 0]], MATRIX, 2, 1)
    assert_like_numpy(lambda x, i: x[[[0, 1], i]], MATRIX, [2, 2])


@pytest.mark.parametrize("indices", [2, [0, 2, 2], [[0, -1], [1, 0]]])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(indices, axis):
    assert_like_numpy(lambda x: np.take(x, indices, axis), MATRIX)
    assert_like_numpy(lambda x: x.take(np.array(indices), axis=axis), MATRIX)
    assert_like_numpy(lambda x, i: np.take(x, i, axis), MATRIX, indices)


def test_take_out_of_range():
    outside = [-9, 5, 1]
    for mode in ("clip", "wrap"):
        assert_like_numpy(lambda x, m=mode: np.take(x, outside, 0, mode=m), MATRIX)
        assert_like_numpy(lambda x, m=mode: np.take(x, 11, 1, mode=m), MATRIX)
    for mode in ("clip", "wrap"):
        assert_like_numpy(lambda x, i, m=mode: np.take(x, i, 0, mode=m), MATRIX, outside)


def test_take_along_axis():
    order = np.argsort(np.cos(MATRIX), axis=1)
    assert_like_numpy(lambda x: np.take_along_axis(x, order, 1), MATRIX)
    assert_like_numpy(lambda x: np.take_along_axis(x, order - 4, -1), MATRIX)
    assert_like_numpy(lambda x, i: np.take_along_axis(x, i, axis=1), MATRIX, order)
    assert_like_numpy(lambda x, i: np.take_along_axis(x, i, 0), MATRIX, [[2, 0, 0, -1]])
    assert_like_numpy(lambda x: np.take_along_axis(x, np.array([5, 5]), None), MATRIX)
    with pytest.raises(ValueError, match="as many axes"):
        run(lambda x: np.take_along_axis(x, np.array([0]), 0), MATRIX)
    with pytest.raises(IndexError, match="index 3 is out of bounds for an axis of extent 3"):
        run(lambda x: np.take_along_axis(x, np.array([[3]]), 0), MATRIX)


def test_choose():
    assert_like_numpy(lambda x, i: x * np.choose(i, np.ones((2, 3, 4), int)), MATRIX, 1)
    assert_like_numpy(lambda x, i: np.choose(i, x), MATRIX, 2)
    assert_like_numpy(lambda x: np.choose(2, x), MATRIX)
    assert_like_numpy(lambda x: np.choose(np.array([0, 2, 1, 1]), x), MATRIX)
    assert_like_numpy(lambda x, i: np.choose(i, x), MATRIX, [[0], [2]])
    assert_like_numpy(lambda x, i: np.choose(i, [x[0], x[1, 2]], mode="wrap"), MATRIX, [3, 0, 1, 1])
    assert_like_numpy(lambda x, i: x[0, np.choose(i, np.array([2, 0]))], MATRIX, 1)


def test_choose_does_not_count_from_the_end():
    with pytest.raises(IndexError, match=r"np\.choose: index -1 is out of bounds .* from 0 to 2"):
        run(lambda x: np.choose([0, 0, -1, 0], x), MATRIX)
    with pytest.raises(IndexError, match=r"i holds -1, .* from 0 to 2"):
        bo.grad(lambda x, i: np.sum(np.choose(i, x)))(MATRIX, np.array(-1))
    assert np.isnan(run(lambda x, i: np.choose(i - 1, x), MATRIX, 0)).all()


def test_compress_and_extract():
    assert_like_numpy(lambda x: np.compress(ROWS, x, axis=0), MATRIX)
    assert_like_numpy(lambda x: x.compress([False, True], 1), MATRIX)
    assert_like_numpy(lambda x: np.extract(ENTRIES, x), MATRIX)
    with pytest.raises(TraceError, match="unknown number of elements"):
        run(lambda x: np.compress(x[0] > 3, x, axis=0), MATRIX)


def test_indexing_keeps_the_kind():
    with Trace() as trace:
        x, i = trace.input("x", (3, 4)), trace.input("i", (2,), kind="i")
        assert (x[i].kind, i[[0, 1]].kind, (x > 0)[i].kind) == tuple("fib")
        assert (np.take(x, i).kind, np.take(i, [0]).kind) == tuple("fi")


def test_labels_of_a_softmax():
    """The use that matters most, with the gradient by hand."""
    rng = np.random.default_rng(0)
    A, y, W = rng.normal(size=(5, 3)), np.array([0, 3, 3, 1, -1]), rng.normal(size=(3, 4))

    def loss(W, a, label):
        z = a @ W
        return np.log(np.sum(np.exp(z))) - z[label]

    value, gradient = bo.compile(loss, W, (A, y)).value_and_grad(W)
    p = np.exp(A @ W) / np.exp(A @ W).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(value, -np.mean(np.log(p[np.arange(5), y])), rtol=1e-13)
    np.testing.assert_allclose(gradient, A.T @ (p - np.eye(4)[y]) / 5, rtol=1e-12)


def test_tokens_of_an_embedding():
    """Integer data index a table; repeats add, sample by sample."""
    rng = np.random.default_rng(0)
    table, tokens = rng.normal(size=(7, 3)), rng.integers(0, 7, size=(6, 4))

    def loss(E, t):
        return np.sum(np.tanh(E[t[:-1]] * E[t[1:]]))

    oracle = bo.compile(loss, table, tokens)
    each = [bo.value_and_grad(loss)(table, row) for row in tokens]
    np.testing.assert_allclose(oracle.value(table), np.mean([v for v, _ in each]), rtol=1e-13)
    mean = np.mean([g for _, g in each], axis=0)
    np.testing.assert_allclose(oracle.grad(table), mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(oracle.grad(table, [2]), each[2][1], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "pick",
    [
        lambda x, a, i, j: x[i, j] * a[0],
        lambda x, a, i, j: a[i % 2, j] * x[0, 0],
        lambda x, a, i, j: a[:, j] @ a[:, :3] @ x[:, i],
        lambda x, a, i, j: np.sum(x[i][..., [0, 2]]) * a[0, j],
        lambda x, a, i, j: x[np.argmax(a[:, 1]), j] * a[[0, 1], [i, j]],
        lambda x, a, i, j: np.choose(i % 3, np.eye(3)) @ x[:, 1:] @ a.T[:3] * x[i, [[0], [j]]],
    ],
)
def test_samples_of_indices(pick):
    """Parameters and data indexed by data: the oracle is the mean of single samples."""
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=(3, 4)), rng.normal(size=(20, 2, 4))
    i, j = rng.integers(-3, 3, size=20), rng.integers(0, 4, size=20)

    def loss(x, a, i, j):
        return np.sum(np.sin(pick(x, a, i, j)))

    value, gradient = bo.compile(loss, x, (a, i, j)).value_and_grad(x)
    each = [bo.value_and_grad(loss)(x, *sample) for sample in zip(a, i, j, strict=True)]
    assert value == pytest.approx(np.mean([v for v, _ in each]), rel=1e-13)
    constant = [loss(x, *sample) for sample in zip(a, i, j, strict=True)]
    assert value == pytest.approx(np.mean(constant), rel=1e-13)
    mean = np.mean([g for _, g in each], axis=0)
    np.testing.assert_allclose(gradient, mean, rtol=1e-12, atol=1e-14)
    slope = bo.grad(lambda x: np.mean(np.stack([loss(x, *s) for s in zip(a, i, j, strict=True)])))
    np.testing.assert_allclose(gradient, slope(x), rtol=1e-12, atol=1e-14)


# ---- what is out of range


@pytest.mark.parametrize(
    ("key", "kind", "message"),
    [
        (3, IndexError, r"index 3 is out of bounds for axis 0 of a traced array of shape \(3, 4\)"),
        ((0, [1, -5]), IndexError, "index -5 is out of bounds for axis 1"),
        ((0, 0, [1]), IndexError, "too many indices"),
        (([0, 1], [0, 1, 2]), IndexError, r"shapes \(2,\) and \(3,\) do not broadcast together"),
        (np.ones(4, bool), IndexError, "mask with an axis of extent 4 does not fit axis 0"),
        ([0.0, 1.0], UnsupportedOpError, "index of type list"),
        (np.array([0.0]), UnsupportedOpError, "index array of dtype float64"),
        ("x", UnsupportedOpError, "index of type str"),
        (True, UnsupportedOpError, "index of type bool"),
    ],
)
def test_constant_indices_that_cannot_be(key, kind, message):
    with pytest.raises(
        kind, match=rf"(?s){message}.*Raised while tracing.*test_trace_indexing\.py"
    ):
        run(lambda x: x[key], MATRIX)


def test_traced_values_that_cannot_be_indices():
    with pytest.raises(UnsupportedOpError, match=r"traced mask of shape \(3,\).*np\.where\(mask"):
        run(lambda x: x[:, 0][x[:, 0] > 1], MATRIX)
    with pytest.raises(UnsupportedOpError, match=r"dtype float64 cannot be an index"):
        run(lambda x: x[x[0, 0]], MATRIX)
    with pytest.raises(TraceError, match=r"np\.choose\(i, array\) for array\[i\]"):
        run(lambda x, i: MATRIX[i] * x, MATRIX, 1)


def next_token(E, t):
    return np.sum(E[t[:-1]]) + np.sum(E.T[:, t[1]])


def test_data_out_of_range_are_named():
    tokens = np.zeros((5, 4), int)
    tokens[:, 3] = 99  # is not used as an index
    table = np.ones((7, 2))
    bo.compile(next_token, table, tokens)
    tokens[3, 2] = 7
    with pytest.raises(IndexError) as caught:
        bo.compile(next_token, table, (tokens,))
    line = next_token.__code__.co_firstlineno + 1
    for part in [
        "data[0] holds 7 at [2] in sample 3, an index into an axis of extent 7",
        "indices go from -7 to 6",
        f"Used in next_token, at {__file__}:{line}: `return np.sum(E[t[:-1]])",
        "Instead: ",
    ]:
        assert part in str(caught.value)
    with pytest.raises(IndexError, match=r"data\['t'\]\[1\] holds -3 in sample 1, .* extent 2"):
        bo.compile(lambda x, s: x[s["t"][1]], np.ones(2), {"t": (np.ones(2), np.array([1, -3]))})


def test_arguments_out_of_range_are_named_in_every_call():
    derivative = bo.grad(next_token)
    table = np.ones((7, 2))
    for tokens in ([0, 1, 6, 99], [-7, 0, 0, 0]):
        derivative(table, np.array(tokens))
    with pytest.raises(IndexError, match=r"^t holds 7 at \[0\], an index into an axis of extent 7"):
        derivative(table, np.array([7, 0, 0, 0]))


def test_constants_among_traced_indices_are_checked():
    def loss(x, t, first):
        return np.sum(x[np.concatenate([[first], t])])

    data = np.array([[0, 1], [2, 2]])
    assert bo.compile(lambda x, t: loss(x, t, 2), np.arange(3.0), data).value(np.arange(3.0)) == 4.5
    with pytest.raises(IndexError, match="index 3 is out of bounds for an axis of extent 3"):
        bo.compile(lambda x, t: loss(x, t, 3), np.arange(3.0), data)


def test_computed_indices_out_of_range_are_nan():
    def diagonal(x, i):
        return x[i + 1, i]

    assert run(diagonal, MATRIX, 1) == MATRIX[2, 1]
    assert np.isnan(run(diagonal, MATRIX, 2))  # x[3, 2] does not exist; x[2, 6] neither
    assert np.isnan(run(lambda x, i: x[0, i + 1], MATRIX, 3))  # not the first entry of row 1


# ---- views


def test_what_an_index_shares():
    def scalar_index(x, i):
        y = x * 2.0
        row = y[i]
        row += 1.0
        return y

    def array_index(x, i):
        y = x * 2.0
        row = y[np.stack([i, i])]
        row += 1.0
        return y + row[0]

    with pytest.raises(TraceError, match="shares its memory"):
        run(scalar_index, MATRIX, 1)
    np.testing.assert_array_equal(run(array_index, MATRIX, 1), array_index(MATRIX, np.int64(1)))
