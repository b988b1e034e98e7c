"""One test a line of docs/conventions.md, under the name that the line gives.

The files test_conventions_*.py hold further tests; each has them in the order of the page.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from pointwise import INF, MANY, NAN, check
from scipy.special import expit

import buropt as bo
from buropt.compressors import (
    Bernoulli,
    Composition,
    NaturalCompression,
    NaturalDithering,
    PermK,
    PowerSGD,
    RandK,
    RandomDithering,
    RandSeqK,
    RankR,
    Scaled,
    ScaledSign,
    Sign,
    TernGrad,
    TopK,
    TopLEK,
)
from buropt.problems import logistic
from buropt.random import Key

PAGE = Path(__file__).parents[1] / "docs" / "conventions.md"


def test_every_line_has_its_test():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("- ")]
    named = [re.findall(r"`(test_\w+)`", line) for line in lines]
    assert [len(names) for names in named] == [1] * len(lines)
    in_order = [name for (name,) in named]
    tests = []
    for path in sorted(Path(__file__).parent.glob("test_conventions*.py")):
        room = importlib.import_module(path.stem)
        own = [name for name in vars(room) if name.startswith("test_")]
        own = [name for name in own if name != "test_every_line_has_its_test"]
        assert own == [name for name in in_order if name in own], f"{path.name}: the page's order"
        tests += own
    assert sorted(in_order) == sorted(tests)


# Numbers


def test_nothing_is_simplified_at_the_cost_of_nan():
    check(lambda x: 0 * x, [INF], NAN, 0)
    check(lambda x: x - x, [INF], NAN, 0)
    check(lambda x: x / x, [0], NAN, NAN)


def test_subnormals_live():
    tiny = 5e-324
    assert bo.value_and_grad(lambda x: np.exp(x))(-745.0) == (tiny, tiny)
    assert bo.value_and_grad(lambda x: x * 0.5)(2 * tiny) == (tiny, 0.5)
    many = bo.grad(lambda x: np.sum(expit(x)))(np.full(MANY, -745.0))
    np.testing.assert_array_equal(many, np.full(MANY, tiny))


def test_floating_point_events_are_silent():
    with np.errstate(all="raise"):
        value, slope = bo.value_and_grad(lambda x: np.exp(x) / x)(0.0)
    assert value == INF
    assert np.isnan(slope)


def test_integers_become_float64():
    slope = bo.grad(lambda x: np.sum(x**2))(np.array([1, 2, 3], np.int32))
    np.testing.assert_array_equal(slope, [2.0, 4.0, 6.0])
    assert slope.dtype == np.float64
    oracle = bo.compile(lambda x: x @ x, np.array([1, 2]))
    assert oracle.dtype == np.float64


def test_integers_are_exact():
    def loss(x, k):
        return x * np.sum(k + k)

    large = np.array([2**24, 1])
    assert bo.grad(loss)(1.0, np.array([200, 100], np.uint8)) == 600.0  # in NumPy 344
    assert bo.grad(loss)(np.float32(1.0), large) == 2.0**25
    with pytest.raises(ValueError, match="16777217, but float32 tells integers apart only up to"):
        bo.grad(loss)(np.float32(1.0), large + 1)


def test_one_float_dtype():
    single, double = np.ones(3, np.float32), np.ones(3)
    assert bo.grad(lambda x: np.sum(0.1 * x))(single).dtype == np.float32
    value, slope = bo.value_and_grad(lambda x, y: np.sum(0.1 * x * y))(single, double)
    assert value == np.sum(0.1 * double)  # computed in float64
    assert slope.dtype == np.float32  # the gradient has its argument's dtype
    assert bo.grad(lambda x, k: np.sum(x * k))(single, np.arange(3)).dtype == np.float32


def test_absent_sparse_entries_are_not_multiplied():
    A = np.array([[1.0, 0.0], [2.0, 0.0]])
    x = np.array([1.0, INF])
    sparse = bo.compile(lambda x, a: a @ x, np.zeros(2), data=sp.csr_array(A))
    dense = bo.compile(lambda x, a: a @ x, np.zeros(2), data=A)
    assert sparse.value(x) == 1.5
    assert np.isnan(dense.value(x))
    np.testing.assert_array_equal(sparse.grad(x), [1.5, 0.0])


# Tracing


def test_unknown_functions_raise():
    with pytest.raises(bo.UnsupportedOpError, match=r"np\.unique"):
        bo.grad(lambda x: np.sum(np.unique(x)))(np.ones(3))


def test_branch_on_a_traced_value_raises():
    with pytest.raises(bo.TraceError, match=r"np\.where"):
        bo.grad(lambda x: x if x > 0 else -x)(1.0)


def test_constants_are_copied_at_trace_time():
    c = np.array([1.0, 2.0])
    gradient = bo.grad(lambda x: c @ x)
    np.testing.assert_array_equal(gradient(np.zeros(2)), [1.0, 2.0])
    c[:] = 7.0
    np.testing.assert_array_equal(gradient(np.zeros(2)), [1.0, 2.0])


def test_python_integers_are_static():
    gradient = bo.grad(lambda x, n: x**n if n > 1 else x)
    assert [gradient(3.0, n) for n in (2, 1, 3, 2)] == [6.0, 1.0, 27.0, 6.0]
    assert gradient.cache_info().n_traces == 3


def test_disconnected_input_gets_zeros_and_a_warning():
    with pytest.warns(bo.DisconnectedInputWarning, match="y"):
        gx, gy = bo.grad(lambda x, y: x @ x, argnums=(0, 1))(np.ones(2), np.ones(3))
    np.testing.assert_array_equal(gx, [2.0, 2.0])
    np.testing.assert_array_equal(gy, np.zeros(3))


# The objective

A = np.arange(21.0).reshape(7, 3) % 5 - 2
X = np.array([0.5, -1.0, 2.0])
SPLIT = [np.array([6, 0, 2, 3]), np.array([1]), np.array([5, 4])]


def square(x, a):
    return (a @ x) ** 2


def objective(**options):
    return bo.compile(square, np.zeros(3), data=A, regularizer=lambda x: 10 * (x @ x), **options)


def by_hand(rows, weights=1.0):
    """Value and gradient of the mean over rows of A plus the regularizer."""
    z = A[rows] @ X
    value = np.mean(weights * z**2) + 10 * (X @ X)
    gradient = (weights * 2 * z) @ A[rows] / len(rows) + 20 * X
    return value, gradient


def assert_close(pair, expected):
    np.testing.assert_allclose(pair[0], expected[0], rtol=1e-14)
    np.testing.assert_allclose(pair[1], expected[1], rtol=1e-14)


def test_regularizer_counts_once():
    oracle = objective(workers=SPLIT)
    assert_close(oracle.value_and_grad(X), by_hand(range(7)))
    assert_close(oracle.value_and_grad(X, [3, 1]), by_hand([3, 1]))
    penalty = objective().grad(X) - bo.compile(square, np.zeros(3), data=A).grad(X)
    without = bo.compile(square, np.zeros(3), data=A, workers=SPLIT).worker_grads(X)
    np.testing.assert_allclose(oracle.worker_grads(X) - without, np.tile(penalty, (3, 1)))


def test_repeats_count():
    assert_close(objective().value_and_grad(X, [2, 2, 5]), by_hand([2, 2, 5]))


def test_weights_are_not_normalized():
    w = np.array([3.0, 0.0, 1.0, 1.0, 0.5, 2.0, 4.0])
    assert_close(objective().value_and_grad(X, weights=w), by_hand(range(7), w))
    assert_close(objective().value_and_grad(X, [1, 6], w[:2]), by_hand([1, 6], w[:2]))
    assert_close(objective(weights=w).value_and_grad(X, [1, 6]), by_hand([1, 6], w[[1, 6]]))


def test_mean_of_workers_is_the_objective():
    oracle = objective(workers=SPLIT)
    values, gradients = oracle.worker_values_and_grads(X)
    for i, rows in enumerate(SPLIT):
        share = 3 * len(rows) / 7  # of the samples, relative to an equal split
        (value, gradient), (penalty, its_gradient) = by_hand(rows), by_hand(rows, 0.0)
        expected_value = share * (value - penalty) + penalty
        expected_gradient = share * (gradient - its_gradient) + its_gradient
        assert_close((values[i], gradients[i]), (expected_value, expected_gradient))
    assert_close((values.mean(), gradients.mean(axis=0)), by_hand(range(7)))


def test_data_are_not_copied():
    data = A.copy()
    oracle = bo.compile(square, np.zeros(3), data=data)
    data[:] = 0.0
    assert oracle.value(X) == 0.0


def test_sample_numbers_are_checked():
    for idx, error in [([-1], IndexError), ([7], IndexError), ([], ValueError)]:
        with pytest.raises(error, match="idx"):
            objective().value(X, np.array(idx, int))


def test_minibatch_agrees_to_rounding():
    rows = np.arange(0, 400, 3)
    data = np.sin(np.arange(4000.0)).reshape(400, 10)
    x = np.linspace(-1, 1, 10)
    picked = bo.compile(square, x, data=data).value_and_grad(x, rows)
    alone = bo.compile(square, x, data=data[rows]).value_and_grad(x)
    np.testing.assert_allclose(picked[0], alone[0], rtol=1e-13)
    np.testing.assert_allclose(picked[1], alone[1], rtol=1e-12)


def test_programs_agree_to_rounding():
    oracle = objective()
    value, gradient = oracle.value_and_grad(X)
    assert_close((oracle.value(X), oracle.grad(X)), (value, gradient))


def test_threads_change_no_bit():
    data = np.sin(np.arange(300_000.0)).reshape(10_000, 30)
    x = np.linspace(-1, 1, 30)
    results = [
        bo.compile(square, x, data=data, threads=threads).value_and_grad(x) for threads in (1, 2, 5)
    ]
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])


# Messages and counts


def test_topk_ties_and_nan():
    x = np.array([[3.0, -3.0, 3.0, 1.0], [1.0, INF, NAN, 2.0]])
    values = TopK(2).compress(x, Key(0)).values
    np.testing.assert_array_equal(values, [[3.0, -3.0, 0.0, 0.0], [0.0, INF, NAN, 0.0]])


@pytest.mark.parametrize("compressor", [TopK(3), RandK(3)])
def test_full_compressor_is_the_identity(compressor):
    x = np.array([[0.1, -0.0, NAN]])
    assert compressor.compress(x, Key(0)).values.tobytes() == x.tobytes()


def test_indices_cost_bits():
    d = 1000  # 10 bits an index
    x = np.ones((1, d))
    for compressor, bits in [
        (TopK(7), 7 * (64 + 10)),
        (RandK(7), 7 * (64 + 10)),
        (RandK(7, shared_seed=True), 7 * 64),
    ]:
        assert compressor.bits(d, np.float64) == bits
        assert compressor.compress(x, Key(0)).bits == [bits]


def test_draws_depend_on_key_and_worker():
    x = np.tile(np.arange(1.0, 31.0), (4, 1))
    for compressor in (RandK(3), RandomDithering(2), NaturalCompression()):
        values = compressor.compress(x, Key(3, 1)).values
        np.testing.assert_array_equal(compressor.compress(x[:2], Key(3, 1)).values, values[:2])
        received = compressor.decode(compressor.encode(x[3], Key(3, 1), 3), 30, float, Key(3, 1), 3)
        np.testing.assert_array_equal(received, values[3])
        assert not np.array_equal(compressor.compress(x, Key(3, 2)).values, values)
    counts = np.count_nonzero(PermK(4).compress(x, Key(3)).values, axis=0)
    assert counts.tolist() == [1] * 30


def test_messages_are_the_same_on_every_machine():
    place = np.arange(200)
    x = np.ldexp((place * 7919 % 2001 - 1000.0), -(place % 13))
    digest = hashlib.sha256()
    for dtype in (np.float32, np.float64):
        for compressor in (
            *(RandK(9), RandSeqK(9), PermK(7), TopK(9), TopLEK(9), NaturalCompression()),
            *(RandomDithering(5), NaturalDithering(5), NaturalDithering(5, 1), TernGrad()),
            *(Bernoulli(0.7), ScaledSign(), PowerSGD(2)),
            Composition(RandK(50), Scaled(RandomDithering(3))),
        ):
            digest.update(compressor.encode(x.astype(dtype), Key(5, 3, 1), 6))
    assert digest.hexdigest()[:16] == "a316e03eb63e2afd"


def test_norms_that_are_not_finite_give_nan_everywhere():
    largest = np.finfo(np.float64).max
    for compressor in (RandomDithering(2), TernGrad(), ScaledSign(), RankR(1), PowerSGD(1)):
        for bad in (NAN, INF, -INF):
            values = compressor.compress(np.array([[1.0, bad, 0.0, 2.0]]), Key(0)).values
            np.testing.assert_array_equal(values, np.full((1, 4), NAN))
    assert np.isnan(RandomDithering(2).compress(np.full((1, 4), largest), Key(0)).values).all()


def test_sign_of_zero_and_nan_is_positive():
    values = Sign().compress(np.array([[0.0, -0.0, NAN, -INF, 2.0]]), Key(0)).values
    assert values.tolist() == [[1, 1, 1, -1, 1]]


def test_natural_compression_at_the_ends_of_the_range():
    limits = np.finfo(np.float64)
    x = np.array([[limits.max, -INF, NAN, -0.0, limits.tiny / 2]])
    for round in range(20):
        values = NaturalCompression().compress(x, Key(0, round)).values[0]
        assert np.array([2.0**1023, -INF, NAN, 0.0]).tobytes() == values[:4].tobytes()
        assert values[4] in (0, limits.tiny)


def test_messages_are_filled_with_zero_bits():
    payload = TernGrad().encode(np.array([1.0, -1.0, 0.0]), Key(0))
    assert payload == np.array([1.0]).tobytes() + bytes([0b00_00_11_10])


def test_metrics_are_not_counted():
    problem = logistic(A, np.array([1.0, -1.0] * 3 + [1.0]))
    problem.metrics(X)
    assert (problem.counters.oracle_calls, problem.epochs) == (0, 0)
    problem.grad(X)
    assert (problem.counters.oracle_calls, problem.epochs) == (1, 1)
