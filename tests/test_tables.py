"""Looked-up rows times a matrix, once for every row of the table: what stays, and when."""

import numpy as np
import pytest

import buropt as bo

autograd = pytest.importorskip("autograd")
anp = pytest.importorskip("autograd.numpy")

V, E, N, T = 5, 9, 7, 4  # rows and columns of the table, columns of the product, rows of a sample
SAMPLES = 60
RNG = np.random.default_rng(0)
START = {
    "table": RNG.standard_normal((V, E)),
    "other": RNG.standard_normal((2 * V, E)),
    "wide": RNG.standard_normal((N, T * E)),
    "tall": RNG.standard_normal((T * E, N)),
    "pairs": RNG.standard_normal((2 * E, N)),
    "square": RNG.standard_normal((E, N)),
    "long": RNG.standard_normal((70, T * E)),
}
TOKENS = RNG.integers(-V, V, (SAMPLES, T))


def rows_in_front(p, tokens, np):
    return np.tanh(p["wide"] @ np.reshape(p["table"][tokens], -1))


def rows_behind(p, tokens, np):
    return np.tanh(np.reshape(p["table"][tokens], -1) @ p["tall"])


def one_row(p, tokens, np):
    return np.tanh(p["table"][tokens[1]] @ p["square"])


def one_row_transposed(p, tokens, np):
    return np.tanh(p["square"].T @ p["table"][tokens[2]])


def every_row(p, tokens, np):
    return np.tanh(p["table"][tokens] @ p["square"])


def rows_in_pairs(p, tokens, np):
    return np.tanh(np.reshape(p["table"][tokens], (2, -1)) @ p["pairs"])


def two_tables(p, tokens, np):
    first = np.reshape(p["table"][tokens], -1) @ p["tall"]
    second = p["wide"] @ np.reshape(p["other"][tokens], -1)
    return np.tanh(first * second)


def rows_that_are_read_as_well(p, tokens, np):
    rows = p["table"][tokens]
    return np.tanh(p["wide"] @ np.reshape(rows, -1)) * np.sum(np.sin(rows))


def many_columns(p, tokens, np):
    return np.tanh(p["long"] @ np.reshape(p["table"][tokens], -1))


FUNCTIONS = {
    rows_in_front: ("table", "wide"),
    rows_behind: ("table", "tall"),
    one_row: ("table", "square"),
    one_row_transposed: ("table", "square"),
    every_row: ("table", "square"),
    rows_in_pairs: ("table", "pairs"),
    two_tables: ("table", "tall", "wide", "other"),
    rows_that_are_read_as_well: ("table", "wide"),
    many_columns: ("table", "long"),
}


def start(names, dtype=np.float64):
    return {name: START[name].astype(dtype) for name in names}


def compiled(function, dtype=np.float64, data=TOKENS, **options):
    return bo.compile(
        lambda p, tokens: np.sum(function(p, tokens, np) ** 2),
        start(FUNCTIONS[function], dtype),
        data=(data,),
        **options,
    )


def in_small_batches(query, **options):
    """The mean over batches that are too small for tables."""
    parts = [query(idx=idx, **options) for idx in np.split(np.arange(SAMPLES), SAMPLES // 2)]
    return np.mean(parts, axis=0)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients(function):
    oracle = compiled(function)
    least = oracle.describe()["programs"]["value_and_grad"]["table_samples"]
    assert 2 < least <= SAMPLES

    def mean(p):
        return sum(anp.sum(function(p, row, anp) ** 2) for row in TOKENS) / SAMPLES

    value, gradient = oracle.value_and_grad(oracle.x0)
    assert value == pytest.approx(mean(START), rel=1e-13)
    expected = autograd.grad(mean)(start(FUNCTIONS[function]))
    for name, part in oracle.unflatten(gradient).items():
        np.testing.assert_allclose(part, expected[name], rtol=1e-11, atol=1e-12)
    small = in_small_batches(lambda idx: oracle.grad(oracle.x0, idx))
    np.testing.assert_allclose(gradient, small, rtol=1e-11, atol=1e-13)
    direction = np.random.default_rng(1).standard_normal(oracle.dim)
    np.testing.assert_allclose(
        oracle.hvp(oracle.x0, direction),
        in_small_batches(lambda idx: oracle.hvp(oracle.x0, direction, idx)),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_steps_have_the_same_bits(function, dtype):
    oracle = compiled(function, dtype)
    x = oracle.x0
    gradient = oracle.grad(x)
    np.testing.assert_array_equal(compiled(function, dtype, threads=3).grad(x), gradient)
    moved = x.copy()
    oracle.step(moved, dtype(0.25))
    np.testing.assert_array_equal(moved, x - dtype(0.25) * gradient)


def test_weights_and_workers():
    weights = np.random.default_rng(2).uniform(0.5, 2, SAMPLES)
    everyone = np.arange(SAMPLES)
    shards = [everyone[:30], everyone[30:]]
    oracle = compiled(rows_in_front, workers=shards)
    each = np.array([oracle.grad(oracle.x0, [i]) for i in everyone])
    np.testing.assert_allclose(
        oracle.grad(oracle.x0, everyone, weights=weights),
        weights @ each / SAMPLES,
        rtol=1e-11,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        oracle.worker_grads(oracle.x0),
        [np.mean(each[shard], axis=0) for shard in shards],
        rtol=1e-11,
        atol=1e-13,
    )


def test_many_tiles_and_slots():
    tokens = np.random.default_rng(3).integers(0, V, (20_000, T))
    oracle = compiled(rows_in_front, data=tokens, threads=1)
    gradient = oracle.grad(oracle.x0)
    threaded = compiled(rows_in_front, data=tokens, threads=2)
    np.testing.assert_array_equal(threaded.grad(oracle.x0), gradient)
    small = [oracle.grad(oracle.x0, np.arange(i, i + 2)) for i in range(0, len(tokens), 2)]
    np.testing.assert_allclose(gradient, np.mean(small, axis=0), rtol=1e-9, atol=1e-12)


def test_a_step_subtracts_from_matrices_that_are_read_until_then():
    """The gradient of the matrix comes last: that of the table reads the matrix."""
    oracle = compiled(rows_in_front)
    x = oracle.x0.copy()
    expected = oracle.x0.copy()
    for _ in range(5):
        expected -= 0.1 * oracle.grad(expected)
        oracle.step(x, 0.1)
    np.testing.assert_array_equal(x, expected)
    oracle.step(x, 0.0)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_rows_that_nobody_looks_up_do_not_count(number):
    """0 times what is not finite is NaN, but no sample has that product."""
    oracle = compiled(rows_in_front, data=TOKENS % (V - 1))
    params = oracle.unflatten(oracle.x0)
    params["table"][-1] = number
    x = oracle.flatten(params)
    small = in_small_batches(lambda idx: oracle.grad(x, idx))
    gradient = oracle.grad(x)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient, small, rtol=1e-11, atol=1e-13)


def test_computed_indices_out_of_range_read_nan():
    """As everywhere; and what they would add goes nowhere."""
    tokens = TOKENS % V

    def loss(p, row):
        h = p["wide"] @ np.reshape(p["table"][row + 1], -1)
        return np.sum(np.where(np.max(row) < V - 1, np.tanh(h), 0.0) ** 2)

    oracle = bo.compile(loss, start(("table", "wide")), data=(tokens,))
    inside = np.flatnonzero(tokens.max(axis=1) < V - 1)
    assert 0 < len(inside) < SAMPLES
    expected = np.mean(
        [oracle.grad(oracle.x0, [i]) * (i in inside) for i in range(SAMPLES)], axis=0
    )
    np.testing.assert_allclose(oracle.grad(oracle.x0), expected, rtol=1e-11, atol=1e-13)
    plain = bo.compile(
        lambda p, row: np.sum(p["wide"] @ np.reshape(p["table"][row + 1], -1)),
        start(("table", "wide")),
        data=(tokens,),
    )
    assert np.isnan(plain.value(plain.x0))
    assert np.isfinite(plain.value(plain.x0, np.repeat(inside, 20)))


def narrow_rows(p, row):
    return np.sum(np.tanh(p["table"][:, :3][row] @ p["square"][:3]))


def computed_rows(p, row):
    return np.sum(np.tanh(np.tanh(p["table"])[row] @ p["square"]))


def columns(p, row):
    return np.sum(np.tanh(p["table"][:, row + V].T @ p["square"][:V]))


def a_part_of_the_rows(p, row):
    return np.sum(np.tanh(p["table"][row][1:3] @ p["square"]))


@pytest.mark.parametrize(
    "loss", [narrow_rows, computed_rows, columns, a_part_of_the_rows], ids=lambda f: f.__name__
)
def test_what_is_no_table_stays_as_it_is(loss):
    oracle = bo.compile(loss, start(("table", "square")), data=(TOKENS,))
    assert oracle.describe()["programs"]["value_and_grad"]["table_samples"] == 0
    gradient = oracle.grad(oracle.x0)
    small = in_small_batches(lambda idx: oracle.grad(oracle.x0, idx))
    np.testing.assert_allclose(gradient, small, rtol=1e-11, atol=1e-12)


def test_the_description_says_from_when_on():
    oracle = compiled(rows_in_front)
    oracle.grad(oracle.x0)
    least = oracle.describe()["programs"]["grad"]["table_samples"]
    assert f"from {least} samples on, looked-up rows are multiplied once" in str(oracle.describe())
