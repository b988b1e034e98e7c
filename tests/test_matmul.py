"""Products of arrays with any number of axes: values, derivatives, batches, branches not taken."""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import buropt as bo

INF = float("inf")


def assert_derivatives(function, a, b, reference=None, rtol=1e-12):
    """Value and gradients by both operands, against autograd."""
    want = function(np, a, b)
    weights = np.random.default_rng(0).standard_normal(np.shape(want))
    value, gradients = bo.value_and_grad(
        lambda a, b: np.sum(weights.astype(a.dtype) * function(np, a, b)), (0, 1)
    )(a, b)
    atol = rtol * max(1, np.max(np.abs(a), initial=0) * np.max(np.abs(b), initial=0)) * 10
    np.testing.assert_allclose(value, np.sum(weights * want), rtol=rtol, atol=atol)
    for argnum, gradient in enumerate(gradients):
        expected = autograd.grad(lambda a, b: anp.sum(weights * function(anp, a, b)), argnum)(
            a.astype(float), b.astype(float)
        )
        np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=atol)


@given(
    shapes=hnp.mutually_broadcastable_shapes(
        signature="(m,k),(k,n)->(m,n)", max_dims=3, max_side=3
    ),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_stacks_broadcast(shapes, dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes.input_shapes)
    assert_derivatives(lambda m, a, b: m.matmul(a, b), a, b, rtol=1e4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("of_a", "of_b"), [((4,), (2, 3, 4, 5)), ((2, 3, 5, 4), (4,)), ((6, 4), (4,)), ((4,), (4, 6))]
)
def test_vectors(of_a, of_b):
    rng = np.random.default_rng(2)
    assert_derivatives(
        lambda m, a, b: m.matmul(a, b), rng.standard_normal(of_a), rng.standard_normal(of_b)
    )


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transposed_operands_are_read_in_place(transpose_a, transpose_b):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((2, 5, 4, 3) if transpose_a else (2, 5, 3, 4))
    b = rng.standard_normal((5, 2, 4) if transpose_b else (5, 4, 2))

    def function(m, a, b):
        a = m.swapaxes(a, -1, -2) if transpose_a else a
        return m.matmul(a, m.swapaxes(b, -1, -2) if transpose_b else b)

    assert_derivatives(function, a, b)


@pytest.mark.parametrize("name", ["dot", "inner", "tensordot"])
@given(data=st.data())
def test_contractions(name, data):
    shape = st.lists(st.integers(1, 3), min_size=1, max_size=3)
    of_a, of_b = data.draw(shape), data.draw(shape)
    rng = np.random.default_rng(4)
    if name == "tensordot":
        count = data.draw(st.integers(0, min(len(of_a), len(of_b))))
        axes = [
            data.draw(st.permutations(range(len(of_b))))[:count],
            data.draw(st.permutations(range(len(of_a))))[:count],
        ]
        for i, j in zip(axes[1], axes[0], strict=True):
            of_b[j] = of_a[i]
        axes = [axes[1], axes[0]]

        def function(m, a, b):
            return m.tensordot(a, b, axes=axes)
    else:
        of_b[-2 if name == "dot" and len(of_b) > 1 else -1] = of_a[-1]

        def function(m, a, b):
            return getattr(m, name)(a, b)

    assert_derivatives(function, rng.standard_normal(of_a), rng.standard_normal(of_b))


def test_tensordot_over_a_number_of_axes():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 4, 5))
    assert_derivatives(lambda m, a, b: m.tensordot(a, b), a, b)
    assert_derivatives(lambda m, a, b: m.tensordot(a, b, axes=0), a[0], b[0])
    assert_derivatives(lambda m, a, b: m.tensordot(a, b, axes=(-1, 1)), a, b)


def attention(p, x):
    """Two heads, each with matrices of its own, over the rows of x."""
    q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
    scores = q @ np.swapaxes(k, -1, -2)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    mixed = (weights / np.sum(weights, axis=-1, keepdims=True)) @ v
    return np.sum(np.tanh(p["o"] @ mixed))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batches_of_stacks(dtype):
    rng = np.random.default_rng(6)
    p = {name: rng.standard_normal((2, 3, 4)) for name in "qkv"} | {
        "o": rng.standard_normal((3, 5))
    }
    data = rng.standard_normal((60, 5, 3))
    oracle = bo.compile(attention, p, data=data, dtype=dtype)
    x = oracle.x0
    alone = bo.value_and_grad(attention)
    single = {name: value.astype(dtype) for name, value in p.items()}
    results = [alone(single, one.astype(dtype)) for one in data]
    value, gradient = oracle.value_and_grad(x)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(value, np.mean([v for v, _ in results]), rtol=100 * eps)
    tree = oracle.unflatten(gradient)
    for name in p:
        expected = np.mean([g[name] for _, g in results], axis=0)
        np.testing.assert_allclose(tree[name], expected, rtol=3e3 * eps, atol=300 * eps)
    # Sums over the samples are formed in place: no stack of gradients for every sample of a tile.
    assert oracle.describe()["arena_bytes"] < 500_000


def test_second_derivatives_of_stacks():
    rng = np.random.default_rng(7)
    p = {name: rng.standard_normal((2, 3, 4)) for name in "qkv"} | {
        "o": rng.standard_normal((3, 5))
    }
    x, v = rng.standard_normal((2, 5, 3))

    def along(x):
        return np.sum(bo.grad(attention, argnums=1)(p, x) * v)

    gradient = bo.grad(attention, argnums=1)
    h = 1e-5
    expected = (gradient(p, x + h * v) - gradient(p, x - h * v)) / (2 * h)
    np.testing.assert_allclose(bo.grad(along)(x), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("batched", [False, True])
def test_untaken_rows_of_a_stack_may_hold_anything(batched):
    M = np.ones((2, 2, 3))
    M[0, 1] = INF
    taken = np.array([[True, False], [True, True]])

    def loss(x, a):
        return np.sum(np.where(taken, (a @ x[:, :, None])[..., 0], 0.0))

    def transposed(x, a):
        product = x[:, None, :] @ np.swapaxes(a, -1, -2)
        return np.sum(np.where(taken, product[..., 0, :], 0.0))

    def shared(x, a):
        return np.sum(np.where(taken, a @ x[0], 0.0)) + 0 * np.sum(x)

    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    expected = {loss: [[1.0] * 3, [2.0] * 3], transposed: [[1.0] * 3, [2.0] * 3]}
    expected[shared] = [[3.0] * 3, [0.0] * 3]
    for function, gradient in expected.items():
        if batched:
            got = bo.compile(function, x, data=np.stack([M, M])).grad(x.ravel()).reshape(x.shape)
        else:
            got = bo.grad(function)(x, M)
        np.testing.assert_array_equal(got, gradient)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x @ np.ones((5, 2)), r"inner sizes differ: a is \(2, 3, 4\), b is \(5, 2\)"),
        (lambda x: x @ np.ones((3, 4, 2)), r"do not broadcast: a is \(2, 3, 4\), b is \(3, 4, 2\)"),
        (lambda x: np.tensordot(x, np.ones((3, 3)), 1), r"axes \[2\] of an array of shape"),
        (lambda x: np.tensordot(x, np.ones((3, 3)), ([0], [2])), "axis 2 is out of bounds"),
    ],
)
def test_shapes_that_do_not_fit(function, text):
    with pytest.raises(ValueError, match=text):
        bo.grad(lambda x: np.sum(function(x)))(np.ones((2, 3, 4)))


@pytest.mark.parametrize("name", [n for n in ("vecdot", "matvec", "vecmat") if hasattr(np, n)])
def test_newer_products(name):
    rng = np.random.default_rng(8)
    shapes = {
        "vecdot": ((2, 1, 4), (3, 4)),
        "matvec": ((2, 3, 4), (5, 1, 4)),
        "vecmat": ((5, 1, 3), (2, 3, 4)),
    }
    a, b = (rng.standard_normal(shape) for shape in shapes[name])
    function = getattr(np, name)
    weights = rng.standard_normal(function(a, b).shape)
    total = lambda a, b: np.sum(weights * function(a, b))  # noqa: E731
    value, (by_a, by_b) = bo.value_and_grad(total, (0, 1))(a, b)
    assert value == pytest.approx(total(a, b), rel=1e-13)
    # Linear in each operand.
    u, v = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    assert np.sum(by_a * u) == pytest.approx(total(u, b), rel=1e-12)
    assert np.sum(by_b * v) == pytest.approx(total(a, v), rel=1e-12)
