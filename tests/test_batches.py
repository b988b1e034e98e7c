"""Batches of every size: what the cut into tiles and slots, or a reused buffer, could break."""

import numpy as np
import pytest

import buropt as bo


def network(p, a):
    return p["v"] @ np.tanh(p["W"] @ a)


def network_gradient(p, A):
    """Of the mean over the rows of A, by hand."""
    H = np.tanh(A @ p["W"].T)
    back = (p["v"] * (1 - H**2)) / len(A)
    return {"W": back.T @ A, "v": H.mean(axis=0)}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("hidden", "inputs"), [(5, 3), (32, 16), (64, 64), (100, 784), (300, 260)])
def test_dense_layers_at_every_batch_size(hidden, inputs, dtype):
    rng = np.random.default_rng(0)
    p = {"W": rng.standard_normal((hidden, inputs)) / 30, "v": rng.standard_normal(hidden)}
    A = rng.standard_normal((520, inputs))
    f = bo.compile(network, p, (A,), dtype=dtype)
    for size in (*range(1, 10), 17, 64, 130, 255, 256, 257, 520):
        idx = rng.integers(0, 520, size)
        got = f.unflatten(f.grad(f.x0, idx))
        want = network_gradient(p, A[idx])
        eps = np.finfo(dtype).eps
        for name in ("W", "v"):
            np.testing.assert_allclose(got[name], want[name], rtol=200 * eps, atol=300 * eps)


def test_untaken_samples_may_hold_anything():
    A = np.array([[1.0, 2.0], [np.inf, 1.0], [3.0, -1.0]])
    b = np.array([1.0, 0.0, 1.0])

    def loss(x, a, b):
        return np.where(b > 0, (a @ x) ** 2, 0.0)

    x = np.array([1.0, -1.0])
    good = A[[0, 2]]
    expected = 2 * good.T @ (good @ x) / 3
    np.testing.assert_allclose(bo.compile(loss, x, (A, b)).grad(x), expected, rtol=1e-14)


@pytest.mark.parametrize("batched", [False, True])
def test_untaken_rows_of_a_product_may_hold_anything(batched):
    M = np.array([[np.inf, 1.0], [2.0, 3.0]])
    taken = np.array([False, True])

    def loss(x, a):
        return np.sum(np.where(taken, a @ x, x))

    def transposed(x, a):
        return np.sum(np.where(taken, x @ a.T, x))

    x = np.array([1.0, 2.0])
    for function in (loss, transposed):
        if batched:
            gradient = bo.compile(function, x, (np.stack([M, M]),)).grad(x)
        else:
            gradient = bo.grad(function)(x, M)
        assert np.array_equal(gradient, [3.0, 3.0])
    by_matrix = bo.grad(loss, argnums=1)(np.array([np.inf, 2.0]), np.ones((2, 2)))
    assert np.array_equal(by_matrix, [[0.0, 0.0], [np.inf, 2.0]])


def test_long_chain_needs_little_memory():
    def chain(length):
        def loss(x, a):
            h = a * x
            for _ in range(length):
                h = np.sin(h) + 0.1
            return np.sum(h)

        return loss

    A = np.ones((10, 100))
    short, long = (bo.compile(chain(n), np.ones(100), (A,)) for n in (10, 300))
    # The gradient needs what the chain computed; the value alone must not.
    assert long.describe()["arena_bytes"] > short.describe()["arena_bytes"]
    values = [f._evaluator("value", False).describe() for f in (short, long)]
    assert values[0]["arena_bytes"] == values[1]["arena_bytes"]


def test_operand_with_two_readers_is_not_overwritten():
    def loss(x, a):
        h = a * x
        g = h + 1  # h has another reader, so this must not be written over it
        k = g * 2
        return np.sum(k * h + g)

    rng = np.random.default_rng(1)
    A, x = rng.standard_normal((40, 7)), rng.standard_normal(7)
    f = bo.compile(loss, x, (A,))
    h = A * x
    assert f.value(x) == pytest.approx(np.sum((h + 1) * 2 * h + h + 1) / 40, rel=1e-13)
    np.testing.assert_allclose(f.grad(x), np.mean((4 * h + 3) * A, axis=0), rtol=1e-12)


def test_sums_do_not_depend_on_what_out_held():
    rng = np.random.default_rng(3)
    p = {"W": rng.standard_normal((32, 16)), "v": rng.standard_normal(32)}
    f = bo.compile(network, p, (rng.standard_normal((520, 16)),))
    for idx in (None, [7], np.arange(40), np.arange(519)):
        out = np.full(f.dim, np.nan)
        np.testing.assert_array_equal(f.grad(f.x0, idx, out=out), f.grad(f.x0, idx))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("hidden", "inputs"), [(301, 260), (1201, 70)])
def test_threads_that_share_a_product_give_the_same_bits(hidden, inputs, dtype):
    """Of the wider layer they share the hyperbolic tangents as well, a few samples each."""
    rng = np.random.default_rng(5)
    p = {"W": rng.standard_normal((hidden, inputs)) / 16, "v": rng.standard_normal(hidden)}
    A = rng.standard_normal((61, inputs))
    seen = set()
    for threads in (1, 2, 3, 7):
        f = bo.compile(network, p, (A,), dtype=dtype, threads=threads)
        assert f.describe()["slots"] == 1
        seen.add(f.grad(f.x0).tobytes())
    assert len(seen) == 1


# A step in place


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_step_is_the_gradient_step(dtype):
    rng = np.random.default_rng(4)
    p = {"W": rng.standard_normal((32, 16)) / 4, "v": rng.standard_normal(32)}
    A, w = rng.standard_normal((520, 16)), rng.uniform(size=520)
    for threads in (1, 3):
        f = bo.compile(network, p, (A,), dtype=dtype, threads=threads)
        x = f.x0.copy()
        for idx, weights in ((None, None), ([7], None), (np.arange(40), w[:40]), (None, w)):
            expected = x - dtype(0.3) * f.grad(x, idx, weights)
            f.step(x, 0.3, idx, weights)
            np.testing.assert_array_equal(x, expected)


def twice(p, a):
    """The gradient of W is a sum of two; the first is there before W has been read to the end."""
    h = np.tanh(p["W"] @ a)
    return p["v"] @ np.tanh(p["W"] @ h)


def with_penalty(p, a):
    return network(p, a) + np.sum(p["W"] ** 2) + np.sum(p["W"] @ p["v"])


def deep(p, a):
    """The gradient of U is there before W is read."""
    h = np.tanh(p["W"] @ a)
    return p["v"] @ np.tanh(p["U"] @ np.tanh(p["X"] @ h))


def other_way_round(p, a):
    """W times matrices of samples, from both sides."""
    return p["v"] @ np.tanh(p["W"] @ np.outer(a, a) @ p["U"])[:, 0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("loss", "matrices"),
    [(twice, "W"), (with_penalty, "W"), (deep, "WUX"), (other_way_round, "WU")],
)
def test_step_moves_no_weight_before_its_last_reader(loss, matrices, dtype):
    rng = np.random.default_rng(4)
    p = {name: rng.standard_normal((16, 16)) / 4 for name in matrices}
    p["v"] = rng.standard_normal(16)
    A, w = rng.standard_normal((300, 16)), rng.uniform(size=300)
    for threads in (1, 3):
        f = bo.compile(loss, p, (A,), dtype=dtype, threads=threads)
        x = f.x0.copy()
        for idx, weights in ((None, None), ([7], None), (np.arange(33), w[:33]), (None, w)):
            expected = x - dtype(0.3) * f.grad(x, idx, weights)
            f.step(x, 0.3, idx, weights)
            np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("size", [0.0, 1e-300])
def test_step_of_next_to_nothing(size):
    """In float32 both are 0, and 0 times infinity is not a number."""
    p = {"W": np.ones((4, 3)), "v": np.ones(4)}
    f = bo.compile(network, p, (np.full((2, 3), np.inf),), dtype=np.float32)
    x = f.x0.copy()
    with np.errstate(invalid="ignore"):
        expected = x - np.float32(size) * f.grad(x)
    f.step(x, size)
    np.testing.assert_array_equal(x, expected)


def test_step_of_an_oracle_with_weights_and_of_one_without_data():
    A, w = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([0.25, 3.0])
    f = bo.compile(lambda x, a: (a @ x) ** 2, np.ones(2), (A,), weights=w)
    g = bo.compile(lambda x: np.sum(x**4), np.ones((2, 1)))
    for oracle, x in ((f, np.ones(2)), (g, np.ones((2, 1)))):
        expected = x - 0.1 * oracle.grad(x)
        oracle.step(x, 0.1)
        np.testing.assert_array_equal(x, expected)


def test_step_needs_an_array_that_it_can_write():
    A = np.ones((3, 2))
    f = bo.compile(lambda x, a: (a @ x) ** 2, np.ones(2), (A,))
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="x is a read-only array; pass a writeable one"):
        f.step(frozen, 0.1)
    with pytest.raises(TypeError, match="x must be a writeable NumPy array, got list"):
        f.step([1.0, 1.0], 0.1)
    with pytest.raises(ValueError, match="x must be a C-contiguous float64 array"):
        f.step(np.ones(2, np.float32), 0.1)
    with pytest.raises(ValueError, match=r"x must have shape \(2,\), got \(3,\)"):
        f.step(np.ones(3), 0.1)
    with pytest.raises(ValueError, match=r"x .*data"):
        f.step(A[1], 0.1)
    with pytest.raises(IndexError):
        f.step(np.ones(2), 0.1, [3])
    x = np.ones(2)
    with pytest.raises(TypeError, match=r"step_size must be a number, got '0\.1'"):
        f.step(x, "0.1")
    with pytest.raises(ValueError, match="step_size must be finite, got nan"):
        f.step(x, np.nan)
    assert (x == 1).all()
