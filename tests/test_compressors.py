"""Compressors: exact small cases, omega and alpha, ties and NaN, and bits against bytes."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import combinations, count
from math import ceil, comb, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from buropt import _core
from buropt.compressors import Identity, RandK, TopK
from buropt.random import Key

DTYPES = (np.float32, np.float64)


def every_compressor(k):
    return Identity(), RandK(k), RandK(k, shared_seed=True), TopK(k)


def bits_of(x):
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


def assert_same_bits(a, b):
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert np.array_equal(bits_of(a), bits_of(b))


def squared_norm(x):
    return sum(Fraction(float(entry)) ** 2 for entry in x)


def masks_of(compressor, n, d, key):
    """(n, k) ascending indices that n workers keep."""
    kept = compressor.compress(np.ones((n, d)), key).values != 0
    return np.nonzero(kept)[1].reshape(n, -1)


def key_of_mask(compressor, d, mask):
    """A key under which worker 0 keeps exactly the given indices."""
    return next(
        key for key in map(Key, count()) if masks_of(compressor, 1, d, key)[0].tolist() == mask
    )


def floyd(key, worker, d, k):
    """The documented draw, from single Philox blocks; ignores the rare rejected word."""
    halves = [key.seed & 0xFFFFFFFF, key.seed >> 32]
    words = []
    for block in range(k // 4 + 1):
        words += _core.philox4x32([block, worker, key.round, key.purpose << 16], halves)
    chosen = set()
    for word, j in zip(words, range(d - k, d), strict=False):
        t = word * (j + 1) >> 32
        chosen.add(j if t in chosen else t)
    return sorted(chosen)


def test_rand_2_over_all_masks():
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    rand2 = RandK(2)
    keys = [key_of_mask(rand2, 4, list(mask)) for mask in combinations(range(4), 2)]
    results = [rand2.compress(x, key).values[0] for key in keys]
    assert results[0].tolist() == [2.0, 4.0, 0.0, 0.0]
    assert np.array_equal(np.mean(results, axis=0), x[0])
    assert np.mean([np.sum((values - x[0]) ** 2) for values in results]) == 30
    assert rand2.omega(4) * np.sum(x**2) == 30


def test_top_2_with_ties():
    x = np.array([[3.0, -3.0, 3.0, 1.0]])
    for round in range(5):
        values = TopK(2).compress(x, Key(0, round)).values
        assert values.tolist() == [[3.0, -3.0, 0.0, 0.0]]
    assert np.sum((values - x) ** 2) == 10 <= (1 - TopK(2).alpha(4)) * np.sum(x**2) == 14


# RandK: which entries.


@pytest.mark.parametrize(("d", "k"), [(4, 1), (5, 2), (6, 3), (6, 5), (7, 4), (70, 1), (80, 79)])
def test_every_mask_is_equally_likely(d, k):
    n = 300 * comb(d, k)
    drawn, counts = np.unique(masks_of(RandK(k), n, d, Key(1)), axis=0, return_counts=True)
    assert len(drawn) == comb(d, k)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_workers_and_rounds_are_independent():
    drawn = [masks_of(RandK(1), 2, 3, Key(0, round)).ravel() for round in range(4500)]
    first, second = np.transpose(drawn)
    for a, b in ((first, second), (first[:-1], first[1:])):
        assert stats.chisquare(np.bincount(3 * a + b, minlength=9)).pvalue > 1e-3


# Both ways of putting the indices in order: by the bitmap, and by a sort where d is large beside k.
@pytest.mark.parametrize(("d", "k"), [(10, 3), (123, 10), (5000, 7), (5000, 500), (100_000, 40)])
def test_randk_draws_what_is_documented(d, k):
    key = Key(2**63 + 7, 11, 5)
    for worker, mask in enumerate(masks_of(RandK(k), 4, d, key)):
        assert mask.tolist() == floyd(key, worker, d, k)


def test_the_key_decides():
    x = np.arange(1.0, 301.0).reshape(3, 100)
    values = RandK(10).compress(x, Key(1, 2, 3)).values
    assert_same_bits(values, RandK(10).compress(x, Key(1, 2, 3)).values)
    for other in (Key(2, 2, 3), Key(1, 3, 3), Key(1, 2, 4)):
        assert not np.array_equal(values, RandK(10).compress(x, other).values)
    assert len({tuple(np.nonzero(row)[0]) for row in values}) == 3
    # A worker's draw does not depend on how many others there are, nor on the seed being shared.
    assert_same_bits(values[:2], RandK(10).compress(x[:2], Key(1, 2, 3)).values)
    assert_same_bits(values, RandK(10, shared_seed=True).compress(x, Key(1, 2, 3)).values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("vector", ["ones", "first unit", "random"])
def test_randk_is_unbiased_with_exact_omega(vector, dtype):
    n, d, k = 40_000, 12, 5
    x = {"ones": np.ones(d), "first unit": np.eye(d)[0],
         "random": np.random.default_rng(0).standard_normal(d)}[vector]  # fmt: skip
    x = x.astype(dtype)
    drawn = RandK(k).compress(np.tile(x, (n, 1)), Key(7)).values.astype(np.float64)
    variance = RandK(k).omega(d) * np.sum(x.astype(np.float64) ** 2)
    assert np.linalg.norm(drawn.mean(axis=0) - x) < 5 * np.sqrt(variance / n)
    errors = np.sum((drawn - x) ** 2, axis=1)
    spread = 5 * errors.std() / np.sqrt(n) + 1e-6 * variance
    assert abs(errors.mean() - variance) < spread


finite = arrays(np.float64, st.integers(1, 12), elements=st.floats(-1e6, 1e6, width=32))


@given(finite, st.data())
def test_topk_contracts_on_every_vector(x, data):
    compressor = TopK(data.draw(st.integers(1, len(x))))
    values = compressor.compress(x[None, :], Key(0)).values[0]
    share = 1 - Fraction(compressor.k, len(x))
    assert squared_norm(values - x) <= share * squared_norm(x)
    assert compressor.alpha(len(x)) == compressor.k / len(x)


def test_constants():
    assert (Identity().omega(9), Identity().alpha(9), Identity().unbiased) == (0, 1, True)
    assert (RandK(3).omega(9), RandK(3).alpha(9), RandK(3).unbiased) == (2, None, True)
    assert (TopK(3).omega(9), TopK(3).alpha(9), TopK(3).unbiased) == (None, 1 / 3, False)
    assert (RandK(9).omega(9), RandK(9).alpha(9), TopK(9).alpha(9)) == (0, 1, 1)
    unscaled = RandK(3, scaled=False)
    assert (unscaled.omega(9), unscaled.alpha(9), unscaled.unbiased) == (None, 1 / 3, False)


# TopK: which entries.


def topk_reference(x, k):
    """The NaNs first, then the largest; the lowest index first among equals."""
    size = np.where(np.isnan(x), np.inf, np.abs(x))
    order = np.lexsort((np.arange(len(x)), -size, ~np.isnan(x)))
    out = np.zeros_like(x)
    out[order[:k]] = x[order[:k]]
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_topk_against_sorting(dtype, data):
    width = 8 * np.dtype(dtype).itemsize
    few = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan])
    x = data.draw(arrays(dtype, st.integers(1, 200), elements=few | st.floats(width=width)))
    k = data.draw(st.integers(1, len(x)))
    values = TopK(k).compress(x[None, :], Key(0)).values[0]
    assert_same_bits(values, topk_reference(x, k))


def test_topk_never_hides_a_nan():
    x = np.array([[5.0, np.inf, np.nan, -np.nan, 2.0]])
    bits_of(x)[0, 3] += 1  # all NaNs are equal, whatever their bits
    assert np.isnan(TopK(1).compress(x, Key(0)).values[0]).tolist() == [0, 0, 1, 0, 0]


# Long rows are thinned by a sample first; these are the ones that could mislead it.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 10, 777, 4000, 8190])
def test_topk_on_long_rows(k, dtype):
    d = 8191
    stripes = np.where(np.arange(d) % 8 == 0, np.arange(1.0, d + 1), 0)
    noise = np.random.default_rng(3).standard_normal(d)
    rows = [noise, np.sort(noise), -np.sort(-noise), np.ones(d), np.zeros(d), stripes,
            1 - np.sign(stripes), np.round(noise), noise * 1e-310, np.full(d, np.nan)]  # fmt: skip
    x = np.array(rows).astype(dtype)
    values = TopK(k).compress(x, Key(0)).values
    for row, kept in zip(x, values, strict=True):
        assert_same_bits(kept, topk_reference(row, k))


@pytest.mark.parametrize("dtype", DTYPES)
def test_keeping_everything_is_the_identity(dtype):
    limits = np.finfo(dtype)
    x = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan, 0.1, limits.max, limits.tiny / 4]])
    x = np.concatenate([x, -x]).astype(dtype)
    bits_of(x)[1, 4] = bits_of(x)[0, 2] + 5  # a signaling NaN with bits of its own
    for compressor in every_compressor(8):
        message = compressor.compress(x, Key(3))
        assert_same_bits(message.values, x)
        for worker, row in enumerate(x):
            payload = compressor.encode(row, Key(3), worker)
            assert_same_bits(compressor.decode(payload, 8, dtype, Key(3), worker), row)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 1), (3, 2), (3, 64), (3, 65), (2, 1000), (0, 5)])
def test_zero_stays_zero(shape, dtype):
    for compressor in every_compressor(max(1, shape[1] // 3)):
        message = compressor.compress(np.zeros(shape, dtype), Key(0))
        assert_same_bits(message.values, np.zeros(shape, dtype))
        assert message.bits.shape == shape[:1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_subnormals_and_rounding(dtype):
    limits = np.finfo(dtype)
    few = np.array([limits.smallest_subnormal, 3 * limits.smallest_subnormal, limits.max], dtype)
    x = np.append(few, np.random.default_rng(0).standard_normal(97).astype(dtype))
    with np.errstate(over="ignore"):
        scaled = (x.astype(np.float64) * (5 / 3)).astype(dtype)  # the product, rounded once
    for round in range(10):
        values = RandK(60).compress(x[None, :], Key(0, round)).values[0]
        kept = values != 0
        assert kept.sum() == 60
        assert_same_bits(values[kept], scaled[kept])
    assert TopK(1).compress(few[None, :2], Key(0)).values.tolist() == [[0, few[1]]]


# Bits and bytes.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 123, 128, 129, 1000])
def test_declared_bits_are_counted_bits_are_sent_bits(d, dtype):
    x = np.random.default_rng(d).standard_normal((3, d)).astype(dtype)
    width = 8 * np.dtype(dtype).itemsize
    for k in {1, (d + 1) // 2, d}:
        packed = k * (width + ceil(log2(d)))
        expected = (d * width, packed, k * width, packed)
        for compressor, bits in zip(every_compressor(k), expected, strict=True):
            counted = compressor.compress(x, Key(1)).bits
            assert counted.dtype == np.int64
            assert counted.tolist() == [bits] * 3
            assert compressor.bits(d, dtype) == bits
            assert len(compressor.encode(x[0], Key(1))) == ceil(bits / 8)


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_decode_inverts_encode(dtype, data):
    width = 8 * np.dtype(dtype).itemsize
    shape = st.tuples(st.integers(1, 4), st.integers(1, 300))
    x = data.draw(arrays(dtype, shape, elements=st.floats(width=width)))
    n, d = x.shape
    key = Key(data.draw(st.integers(0, 2**64 - 1)), data.draw(st.integers(0, 2**48 - 1)))
    worker = data.draw(st.integers(0, n - 1))
    for compressor in every_compressor(data.draw(st.integers(1, d))):
        message = compressor.compress(x, key)
        payload = compressor.encode(x[worker], key, worker)
        assert len(payload) == ceil(message.bits[worker] / 8)
        received = compressor.decode(payload, d, dtype, key, worker)
        assert_same_bits(received, message.values[worker])


def test_the_bytes_are_the_documented_ones():
    x = np.array([0.0, 9.0, 1.0, -8.0, 2.0], np.float32)
    values = np.array([9.0, -8.0, 2.0], "<f4").tobytes()
    places = 1 | 3 << 3 | 4 << 6
    message = places | int.from_bytes(values, "little") << 9
    assert TopK(3).encode(x, Key(0)) == message.to_bytes(14, "little")
    assert Identity().encode(x, Key(0)) == x.astype("<f4").tobytes()
    shared = RandK(2, shared_seed=True)
    kept = masks_of(shared, 1, 5, Key(4))[0]
    assert shared.encode(x, Key(4)) == (x[kept] * np.float32(2.5)).astype("<f4").tobytes()


def test_a_shared_seed_needs_the_same_key():
    x = np.arange(1.0, 101.0)
    shared = RandK(10, shared_seed=True)
    payload = shared.encode(x, Key(1), worker=2)
    right = shared.decode(payload, 100, x.dtype, Key(1), worker=2)
    assert not np.array_equal(right, shared.decode(payload, 100, x.dtype, Key(2), worker=2))
    assert not np.array_equal(right, shared.decode(payload, 100, x.dtype, Key(1), worker=3))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda p: p[:-1], "is too short for"),
        (lambda p: p + b"\0", "goes on after"),
        (lambda p: b"", "has impossible indices for"),
    ],
)
def test_decode_refuses_a_wrong_length(damage, what):
    payload = damage(TopK(3).encode(np.arange(5.0), Key(0)))
    message = rf"TopK\.decode: the payload {what} a message of d = 5 entries in float64"
    with pytest.raises(ValueError, match=message):
        TopK(3).decode(payload, 5, np.float64, Key(0))


@pytest.mark.parametrize("indices", [5 | 6 << 3, 2 | 2 << 3, 3 | 1 << 3])
def test_decode_refuses_impossible_indices(indices):
    payload = bytes([indices]) + np.ones(2).tobytes()
    with pytest.raises(ValueError, match=r"TopK\.decode: the payload has impossible indices"):
        TopK(2).decode(payload, 5, np.float64, Key(0))


def test_decode_refuses_bits_in_the_padding():
    payload = bytearray(TopK(2).encode(np.arange(5.0), Key(0)))
    payload[-1] |= 1 << 7
    with pytest.raises(ValueError, match=r"TopK\.decode: the payload goes on after"):
        TopK(2).decode(bytes(payload), 5, np.float64, Key(0))


# The caller's arrays.


@pytest.mark.parametrize("dtype", DTYPES)
def test_out_is_filled_and_returned(dtype):
    x = np.random.default_rng(0).standard_normal((4, 50)).astype(dtype)
    x.flags.writeable = False
    before = x.copy()
    for compressor in every_compressor(7):
        out = np.full_like(before, np.nan)
        message = compressor.compress(x, Key(0), out=out)
        assert message.values is out
        assert_same_bits(out, compressor.compress(x, Key(0)).values)
        assert_same_bits(x, before)


MEMORY = np.ones((3, 6))
X = np.ones((2, 6))
FROZEN = np.ones((2, 6))
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    ("x", "out", "error", "message"),
    [
        (np.ones(6), None, ValueError, r"got \(6,\); for one worker pass x\[None, :\]"),
        (np.ones((2, 3, 1)), None, ValueError, r"shape \(n_workers, d\), got \(2, 3, 1\)"),
        (np.float64(1.0), None, ValueError, r"shape \(n_workers, d\), got \(\)"),
        (np.ones((2, 0)), None, ValueError, r"a vector has 1 to 2\*\*32 - 1 entries, got 0"),
        ([[1.0, 2.0]], None, TypeError, "x must be a NumPy array of float32 or float64.*got list"),
        (np.ones((2, 6), int), None, TypeError, r"got int64; pass x.astype\(np.float64\)"),
        (np.ones((2, 6), np.float16), None, TypeError, "x must be float32 or float64, got float16"),
        (np.ones((2, 6), complex), None, TypeError, "x must be float32 or float64, got complex128"),
        (np.ones((2, 6), ">f8"), None, TypeError, "in native byte order"),
        (np.ones((6, 2)).T, None, ValueError, r"C-contiguous; pass np.ascontiguousarray\(x\)"),
        (np.ones((2, 12))[:, ::2], None, ValueError, "x must be C-contiguous"),
        (X, np.ones((2, 5)), ValueError, r"out must be .* of shape \(2, 6\), .* \(2, 5\)"),
        (X, np.ones((6, 2)).T, ValueError, "out must be a C-contiguous float64 array"),
        (X, np.ones((2, 6), np.float32), ValueError, "out must be .* float64 .*got dtype float32"),
        (X, FROZEN, TypeError, "out is a read-only array"),
        (X, X, ValueError, "out must not overlap x"),
        (MEMORY[:2], MEMORY[1:], ValueError, "out must not overlap x"),
    ],
)  # fmt: skip
def test_compress_checks_its_arrays(x, out, error, message):
    for compressor in every_compressor(1):
        with pytest.raises(error, match=rf"^{type(compressor).__name__}\.compress: .*{message}"):
            compressor.compress(x, Key(0), out=out)


def test_encode_checks_its_arguments():
    with pytest.raises(ValueError, match=r"TopK\.encode: x must have shape \(d,\), got \(1, 6\)"):
        TopK(1).encode(np.ones((1, 6)), Key(0))
    for worker in (-1, 2**32 - 1):
        with pytest.raises(ValueError, match=r"worker must be between 0 and 2\*\*32 - 2"):
            RandK(1).encode(np.ones(6), Key(0), worker=worker)


@pytest.mark.parametrize("make", [RandK, TopK])
def test_parameters_are_checked(make):
    name = make.__name__
    for k in (0, -3):
        with pytest.raises(ValueError, match=rf"{name}\.k must be between 1 and .*got {k}; raise"):
            make(k)
    for k in (2.0, "2", True, np.True_, None):
        with pytest.raises(TypeError, match=rf"{name}\.k must be an integer, got"):
            make(k)
    assert type(make(np.int64(3)).k) is int
    message = rf"{name}\.k must be between 1 and d = 123, got 200; lower compressor\.k"
    x = np.ones((5, 123))
    for call in (
        lambda c: c.compress(x, Key(0)),
        lambda c: c.encode(x[0], Key(0)),
        lambda c: c.decode(b"", 123, np.float64, Key(0)),
        lambda c: c.bits(123, np.float64),
        lambda c: c.alpha(123) if make is TopK else c.omega(123),
    ):
        with pytest.raises(ValueError, match=message):
            call(make(200))
    with pytest.raises(TypeError, match=r"RandK\.shared_seed must be True or False, got 'no'"):
        RandK(3, shared_seed="no")


def test_compressors_are_plain_records():
    for compressor in every_compressor(3):
        assert pickle.loads(pickle.dumps(compressor)) == compressor == copy.deepcopy(compressor)
        assert hash(compressor) == hash(copy.copy(compressor))
    assert repr(RandK(3)) == "RandK(k=3, scaled=True, shared_seed=False)"
    assert replace(RandK(3), k=4) == RandK(4) != TopK(4)
    with pytest.raises(FrozenInstanceError):
        TopK(3).k = 4
