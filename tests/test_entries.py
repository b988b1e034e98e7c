"""Some entries of the workers' gradients, and products with rows that repeat each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from methods import run
from scipy import sparse

import buropt as bo
from buropt import Oracle, _core
from buropt.compressors import Bernoulli, Chooser, Compressor, PermK, RandK, TopK
from buropt.optim import Marina
from buropt.problems import logistic
from buropt.random import Key

SHARDS = [np.array([7, 3, 20, 1]), np.array([0, 2, 4, 5, 6]), np.r_[8:20, 21:6000]]


def loss(x: Any, a: Any, b: Any) -> Any:
    return np.logaddexp(0, -b * (a @ x))


def categories(n: int, dtype: Any, values: bool = False, attributes: int = 12) -> Any:
    """Rows of a few attributes, each of them one of two or three, or missing."""
    rng = np.random.default_rng(0)
    blocks = []
    for size in (attributes // 2) * (2, 3):
        block = np.eye(size + 1, dtype=dtype)[rng.integers(-3, size + 1, n).clip(0)][:, :size]
        blocks.append(block * rng.integers(1, 3, (n, 1)) if values else block)
    return sparse.csr_array(np.hstack(blocks), dtype=dtype)


def entries_of(A: Any, dtype: Any = np.float64, threads: int = 1) -> _core.WorkerEntries:
    csr = (A.data, A.indices.astype(np.int32), A.indptr.astype(np.int64))
    n, d = A.shape
    shards = [np.arange(n, dtype=np.int64)]
    return _core.WorkerEntries(np.dtype(dtype).name, d, n, [csr], shards, threads)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("values", [False, True])
def test_products_with_repeated_rows(dtype: Any, values: bool) -> None:
    A = categories(20000, dtype, values)
    x = np.random.default_rng(1).standard_normal(A.shape[1]).astype(dtype)
    z, same = np.empty(20000, dtype), np.empty(20000, dtype)
    entries = entries_of(A, dtype)
    assert entries.has_patterns
    entries.products(x, z)
    np.testing.assert_allclose(z, A @ x, atol=1e-5 if dtype == np.float32 else 1e-13)
    entries_of(A, dtype, threads=3).products(x, same)
    assert z.tobytes() == same.tobytes()


@pytest.mark.parametrize("attributes", [6, 18, 24, 30, 48])
def test_products_of_rows_with_many_pieces(attributes: int) -> None:
    """Whatever number of pieces the last word of a row has, and whether it is the only one."""
    A = categories(9001, np.float64, attributes=attributes)
    x = np.random.default_rng(1).standard_normal(A.shape[1])
    z, same = np.empty((2, 9001))
    entries = entries_of(A)
    assert entries.has_patterns
    entries.products(x, z)
    np.testing.assert_allclose(z, A @ x, atol=1e-12)
    entries_of(A, threads=2).products(x, same)
    assert z.tobytes() == same.tobytes()


def test_rows_that_differ_have_no_patterns() -> None:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((3000, 9))
    for A in (dense, np.round(dense), np.where(rng.random((3000, 60)) < 0.05, 1.0, 0.0)):
        entries = entries_of(sparse.csr_array(A))
        assert not entries.has_patterns
        with pytest.raises(ValueError, match="do not repeat each other"):
            entries.products(np.zeros(A.shape[1]), np.empty(3000))


def compiled(kind: str, dtype: Any, **options: Any) -> Oracle:
    rng = np.random.default_rng(2)
    if kind == "categories":
        A = categories(6000, dtype)
    else:
        A = sparse.random_array((6000, 30), density=0.4, rng=rng, dtype=dtype).tocsr()
    y = np.where(rng.random(6000) < 0.5, 1.0, -1.0)
    return bo.compile(loss, np.zeros(30, dtype), (A, y), workers=SHARDS, **options)


@pytest.mark.parametrize("kind", ["categories", "floats"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_of_gradients(kind: str, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    oracle = compiled(
        kind,
        dtype,
        regularizer=lambda x: 0.05 * np.sum(x * x / (1 + x * x)),
        weights=rng.random(6000),
    )
    assert oracle._entries.has_patterns == (kind == "categories")
    accuracy = 1e-5 if dtype == np.float32 else 1e-14
    starts, indices = [0, 3, 3, 7], np.array([2, 9, 29, 0, 9, 9, 17])
    worker = np.repeat([0, 1, 2], [3, 0, 4])
    previous = None
    for _ in range(3):
        x = rng.standard_normal(30).astype(dtype)
        expected = oracle.worker_grads(x)[worker, indices]
        found = oracle.worker_grad_entries(x, starts, indices)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, atol=accuracy)
        if previous is not None:
            expected -= oracle.worker_grads(previous)[worker, indices]
            found = oracle.worker_grad_entries(x, starts, indices, previous)
            np.testing.assert_allclose(found, expected, atol=accuracy)
        previous = x


def test_the_same_bits_whatever_was_asked_before_and_for_any_threads() -> None:
    rng = np.random.default_rng(4)
    x, y, z = rng.standard_normal((3, 30))
    starts, indices = [0, 2, 3, 5], [4, 8, 1, 28, 0]
    fresh = compiled("categories", np.float64).worker_grad_entries(x, starts, indices, y)
    for threads in (1, 2):
        oracle = compiled("categories", np.float64, threads=threads)
        for point in (y, x, z):
            oracle.worker_grad_entries(point, starts, indices)
            again = oracle.worker_grad_entries(x, starts, indices, y)
            assert again.tobytes() == fresh.tobytes()


@pytest.mark.parametrize("compressor", [RandK(4), RandK(30), PermK(3), Bernoulli(0.5), TopK(4)])
def test_differences_are_sent_by_the_quickest_way(compressor: Compressor) -> None:
    """Of sparse rows only the entries that were chosen; the messages are those of dense ones."""
    rng = np.random.default_rng(5)
    A, y = categories(6000, np.float64), np.where(rng.random(6000) < 0.5, 1.0, -1.0)
    quick = logistic(A, y, l2=0.1, split=SHARDS)
    plain = logistic(A.toarray(), y, l2=0.1, split=SHARDS)
    assert quick.oracle.has_quick_entries
    assert not plain.oracle.has_quick_entries
    old, new = rng.standard_normal((2, 30))
    for number in range(3):
        sent = [
            problem.send_mean_difference(compressor, new, old, Key(0, number))
            for problem in (quick, plain)
        ]
        np.testing.assert_allclose(sent[0], sent[1], atol=1e-13)
        assert quick.counters == plain.counters
        old, new = new, new - 0.1 * sent[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("compressor", [RandK(1), RandK(9), PermK(3)])
def test_the_mean_of_messages_is_that_of_messages_sent_one_by_one(
    compressor: Chooser, dtype: Any
) -> None:
    oracle = compiled("floats", dtype, regularizer=lambda x: 0.05 * np.sum(x * x / (1 + x * x)))
    x, y = np.random.default_rng(7).standard_normal((2, 30)).astype(dtype)
    for number in range(3):
        key = Key(3, number)
        choice = compressor.choose(30, key, 3)
        message = compressor.send(oracle.worker_grad_entries(x, *choice, y), choice, 30)
        draw = key.seed, key.round, key.purpose
        mean, bits = oracle.mean_of_messages(x, y, compressor._compiled(30), draw)
        np.testing.assert_array_equal(mean, message.values.sum(axis=0) / dtype(3))
        assert bits == message.bits.sum()


def test_marina_does_not_depend_on_what_is_kept() -> None:
    """A state continues to the bit in another problem, with metrics in between or without."""
    rng = np.random.default_rng(6)
    A, y = categories(6000, np.float64), np.where(rng.random(6000) < 0.5, 1.0, -1.0)
    problems = [logistic(A, y, l2=0.1, split=SHARDS, threads=threads) for threads in (1, 2)]
    states = [run(Marina(compressor=RandK(5)), problem, 10)[-1] for problem in problems]
    method = Marina(compressor=RandK(5)).theory(problems[0])
    fresh, state = logistic(A, y, l2=0.1, split=SHARDS), states[0]
    for number in range(11, 20):
        fresh.metrics(state.x)
        state = method.step(fresh, state, Key(0, number))
        states = [
            method.step(problem, other, Key(0, number))
            for problem, other in zip(problems, states, strict=True)
        ]
    for other in states:
        assert state.x.tobytes() == other.x.tobytes()
        assert state.g.tobytes() == other.g.tobytes()


def test_refusals() -> None:
    oracle = compiled("floats", np.float64)
    x = np.zeros(30)
    with pytest.raises(ValueError, match=r"starts must ascend from 0 to 2 in 3 steps"):
        oracle.worker_grad_entries(x, [0, 1, 2], [0, 1])
    with pytest.raises(IndexError, match="indices contains 30, but coordinates go from 0 to 29"):
        oracle.worker_grad_entries(x, [0, 1, 1, 1], [30])
    draw = (0, 0, 0)
    with pytest.raises(ValueError, match="TopK: it chooses by the vector"):
        oracle.mean_of_messages(x, x, TopK(2)._compiled(30), draw)
    with pytest.raises(ValueError, match="PermK: it is for 4 workers, got the vectors of 3"):
        oracle.mean_of_messages(x, x, PermK(4)._compiled(30), draw)
    with pytest.raises(ValueError, match=r"RandK\.k must be between 1 and d = 30"):
        oracle.mean_of_messages(x, x, RandK(31)._compiled(30), draw)
    dense = bo.compile(loss, np.zeros(3), (np.eye(3), np.ones(3)))
    assert not dense.has_quick_entries
    with pytest.raises(ValueError, match=r"Instead: pick from worker_grads\(x\)"):
        dense.worker_grad_entries(np.zeros(3), [0, 1], [0])
