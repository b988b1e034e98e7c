"""Elements picked by integers: take, take_along_axis and what they do to derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buropt as bo

NAN = float("nan")


def primitive(op, x, indices, axis):
    """The node itself, with indices that NumPy would refuse."""
    return x.recording.emit(op, (x, x.recording.lift(indices)), {"axis": axis})


def pick(op, x, indices, axis):
    function = np.take if op == "take" else np.take_along_axis
    return function(x, indices, axis=axis)


@st.composite
def picks(draw, op):
    """An array, indices that fit it (negative ones and repeats too), the axis."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axis = draw(st.integers(0, len(shape) - 1))
    if op == "take":
        of_indices = draw(st.lists(st.integers(0, 3), max_size=2))
    else:
        of_indices = [*shape[:axis], draw(st.integers(0, 5)), *shape[axis + 1 :]]
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    indices = rng.integers(-shape[axis], shape[axis], of_indices)
    return rng.standard_normal(shape), indices, axis


OPS = pytest.mark.parametrize("op", ["take", "take_along_axis"])


@OPS
@given(data=st.data(), dtype=st.sampled_from([np.float64, np.float32]))
def test_value_gradient_and_second_derivative(op, data, dtype):
    x, indices, axis = data.draw(picks(op))
    x = x.astype(dtype)
    picked = pick(op, x, indices, axis)
    weights = np.random.default_rng(0).standard_normal(picked.shape).astype(dtype)

    def loss(x):
        return np.sum(weights * pick(op, x, indices, axis) ** 3)

    value, gradient = bo.value_and_grad(loss)(x)
    assert value == pytest.approx(np.sum(weights * picked**3), rel=1e-4, abs=1e-4)
    # The transpose of picking adds: every pick of an element counts.
    places = pick(op, np.arange(x.size).reshape(x.shape), indices, axis)
    count = np.zeros((x.size,))
    np.add.at(count, places.ravel(), (weights * 3 * picked**2).ravel())
    np.testing.assert_allclose(gradient.ravel(), count, rtol=1e-4, atol=1e-5)

    v = np.linspace(-1, 1, x.size).reshape(x.shape).astype(dtype)
    hvp = bo.grad(lambda x: np.sum(bo.grad(loss)(x) * v))(x)
    second = np.zeros((x.size,))
    np.add.at(second, places.ravel(), (weights * 6 * picked).ravel())
    np.testing.assert_allclose(hvp.ravel(), second * v.ravel(), rtol=1e-4, atol=1e-4)


def loss_of(op, axis, x_batched, indices_batched, constant):
    """A loss whose operands come from data, from the parameters or from outside."""

    def loss(p, *data):
        data = list(data)
        x = data.pop(0) * p if x_batched else p
        indices = data.pop(0) if indices_batched else constant
        picked = pick(op, x, indices, axis)
        return np.sum(np.sin(picked * np.arange(1.0, picked.size + 1).reshape(picked.shape)))

    return loss


@OPS
@pytest.mark.parametrize("x_batched", [False, True])
@pytest.mark.parametrize("indices_batched", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_any_mix_of_batched_operands(op, x_batched, indices_batched, axis):
    rng = np.random.default_rng(3)
    n, shape = 37, (4, 5)
    p, X = rng.standard_normal(shape), rng.standard_normal((n, *shape))
    of_indices = (2, 3) if op == "take" else ((6, 5) if axis == 0 else (4, 7))
    tokens = rng.integers(-shape[axis], shape[axis], (n, *of_indices))
    constant = tokens[0]
    loss = loss_of(op, axis, x_batched, indices_batched, constant)
    data = (X,) * x_batched + (tokens,) * indices_batched
    if not data:
        data = (np.ones((n, 1)),)
        oracle = bo.compile(lambda p, a: loss(p) * a[0], p, data=data)
        samples = [bo.value_and_grad(loss)(p)] * n
    else:
        oracle = bo.compile(loss, p, data=data)
        # One sample after the other, with indices that are constants of each function.
        samples = []
        for i in range(n):
            one = loss_of(op, axis, False, False, tokens[i] if indices_batched else constant)
            sample = X[i] if x_batched else 1.0
            samples.append(bo.value_and_grad(lambda p, one=one, s=sample: one(s * p))(p))
    value, gradient = oracle.value_and_grad(p.ravel())
    assert value == pytest.approx(np.mean([value for value, _ in samples]), rel=1e-13)
    expected = np.mean([gradient for _, gradient in samples], axis=0)
    np.testing.assert_allclose(gradient, expected.ravel(), rtol=1e-12, atol=1e-14)
    # A minibatch is cut into tiles in another way; one sample is a tile of its own.
    for i in (0, 5):
        value, gradient = oracle.value_and_grad(p.ravel(), [i])
        assert value == pytest.approx(samples[i][0], rel=1e-13)
        np.testing.assert_allclose(gradient, samples[i][1].ravel(), rtol=1e-13)


def test_gradient_of_an_embedding():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 3))
    tokens = rng.integers(0, 50, (200, 8))
    weights = rng.standard_normal((8, 3))

    def loss(table, tokens):
        return np.sum(weights * np.take(table, tokens, 0))

    oracle = bo.compile(loss, table, data=tokens)
    expected = np.zeros_like(table)
    np.add.at(expected, tokens, np.broadcast_to(weights, (200, 8, 3)))
    np.testing.assert_allclose(oracle.grad(table.ravel()), expected.ravel() / 200, rtol=1e-12)
    # No array of the table's size for every sample of a tile.
    assert oracle.describe()["arena_bytes"] < 100 * table.nbytes


def test_second_derivative_through_an_embedding():
    tokens = np.array([[0, 2, 2], [1, -1, 0]])

    def mean_loss(table):
        picked = [np.take(table, row, 0) for row in tokens]
        return (np.sum(picked[0] ** 3) + np.sum(picked[1] ** 3)) / 2

    table = np.linspace(-1, 2, 6).reshape(3, 2)
    count = np.bincount((tokens % 3).ravel())[:, None]
    hvp = bo.grad(lambda t: np.sum(bo.grad(mean_loss)(t)))(table)
    np.testing.assert_allclose(hvp, count * 6 * table / 2, rtol=1e-14)


@OPS
def test_out_of_range_reads_nan_and_adds_nothing(op):
    x = np.array([1.0, 2.0, 3.0])
    for bad in ([3.0], [-4.0], [NAN], [1e300], [-np.inf]):
        value, gradient = bo.value_and_grad(
            lambda x, bad=bad: np.sum(primitive(op, x, np.array([1.0, *bad]), 0))
        )(x)
        assert np.isnan(value)
        np.testing.assert_array_equal(gradient, [0.0, 1.0, 0.0])


def test_shapes_that_do_not_fit():
    def along(x):
        return np.sum(primitive("take_along_axis", x, np.zeros((3, 2)), 1))

    with pytest.raises(ValueError, match=r"shape \(2, 2\) and indices of shape \(3, 2\)"):
        bo.grad(along)(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"buropt\.take: axis 2 is out of range"):
        bo.grad(lambda x: np.sum(primitive("take", x, np.zeros(2), 2)))(np.ones((2, 2)))


def test_computed_indices_out_of_range_read_nan():
    def loss(table, tokens):
        return np.sum(np.take(table, tokens + 0, axis=0))

    oracle = bo.compile(loss, np.array([1.0, 2.0]), data=np.array([[0, -1], [2, 0], [-3, 1]]))
    values = [oracle.value(oracle.x0, [i]) for i in range(3)]
    np.testing.assert_array_equal(values, [3.0, NAN, NAN])
    np.testing.assert_array_equal(oracle.grad(oracle.x0), np.array([2.0, 2.0]) / 3)


X = np.linspace(-1, 1, 12).reshape(3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.take(x, [3, -1, 3]),
        lambda x: np.take(x, 5),
        lambda x: np.take(x, [[0, 2], [1, 1]], axis=1),
        lambda x: np.take(x, [[0, 2], [1, 1]], axis=-2),
        lambda x: np.take(x, [7, -9], axis=0, mode="wrap"),
        lambda x: np.take(x, [7, -9], axis=0, mode="clip"),
        lambda x: np.take(x, np.zeros((2, 0), int), axis=0),
        lambda x: np.take(x, [True, False], axis=0),
        lambda x: np.take_along_axis(x, np.array([[1], [0], [-1]]), axis=1),
        lambda x: np.take_along_axis(x, np.array([[1, 0]]), axis=1),
        lambda x: np.take_along_axis(x, np.array([[1], [2]]), axis=0),
        lambda x: np.take_along_axis(x[:1], np.array([[1], [0], [-1]]), axis=1),
        lambda x: np.take_along_axis(x, np.array([3, 11, 3]), axis=None),
    ],
)
def test_as_numpy(function):
    want = function(X)
    weights = np.random.default_rng(0).standard_normal(want.shape)
    value, gradient = bo.value_and_grad(lambda x: np.sum(weights * function(x)))(X)
    assert value == pytest.approx(np.sum(weights * want), rel=1e-14)
    places = function(np.arange(X.size).reshape(X.shape))
    count = np.bincount(places.ravel(), weights.ravel(), X.size) if want.size else np.zeros(X.size)
    np.testing.assert_allclose(gradient.ravel(), count, rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (
            lambda x: np.take(x, [0, 12]),
            IndexError,
            "index 12 is out of bounds",
        ),
        (
            lambda x: np.take(x, [-4], axis=0),
            IndexError,
            "index -4 is out of bounds for an axis",
        ),
        (lambda x: np.take(x, [1.0]), TypeError, "the indices are floats"),
        (lambda x: np.take(x, []), TypeError, "the indices are floats"),
        (lambda x: np.take(x[:0], [0], axis=0), IndexError, "an axis of extent 0"),
        (lambda x: np.take(x, [0], mode="zero"), TypeError, "argument mode="),
        (lambda x: np.take_along_axis(x, np.array([0]), axis=0), ValueError, "as many axes"),
        (
            lambda x: np.take_along_axis(x, np.zeros((2, 2), int), axis=1),
            ValueError,
            "the other axes must be equal, or 1",
        ),
    ],
)
def test_refused_as_by_numpy(function, error, text):
    with pytest.raises(error, match=text):
        bo.grad(lambda x: np.sum(function(x)))(X)
