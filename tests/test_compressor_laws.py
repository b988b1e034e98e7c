"""The distributions of compressors against their definitions: by enumeration, and word by word.

A rounding at random is checked against a reference that reads the same words of the Philox stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import count, islice, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from buropt import _core
from buropt.compressors import (
    Bernoulli,
    BlockTopK,
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
    TernGrad,
    TopK,
    TopLEK,
)
from buropt.random import Key

DTYPES = (np.float32, np.float64)
SERVER = 2**32 - 1


def words(key: Key, worker: int, stage: int = 0) -> Iterator[int]:
    """The documented stream of 32-bit words."""
    halves = [key.seed & 0xFFFFFFFF, key.seed >> 32]
    for block in count(stage << 30):
        yield from _core.philox4x32([block, worker, key.round, key.purpose << 16], halves)


def entry_words(key: Key, worker: int, d: int, dtype: Any, stage: int = 0) -> list[int]:
    """Random bits of the width of a float for each of d entries."""
    stream = words(key, worker, stage)
    if dtype == np.float32:
        return list(islice(stream, d))
    halves = list(islice(stream, 2 * d))
    return [low | high << 32 for low, high in zip(halves[::2], halves[1::2], strict=True)]


def unit(word: int, dtype: Any) -> Fraction:
    return Fraction(word, 2**32) if dtype == np.float32 else Fraction(word >> 11, 2**53)


# Places.


def test_every_first_place_is_as_likely() -> None:
    n, d, k = 6000, 5, 3
    values = RandSeqK(k).compress(np.ones((n, d)), Key(1)).values
    kept, counts = np.unique(values, axis=0, return_counts=True)
    expected = {tuple(np.roll([5 / 3] * k + [0] * (d - k), first)) for first in range(d)}
    assert {tuple(row) for row in kept} == expected
    assert stats.chisquare(counts).pvalue > 1e-3
    assert np.allclose(np.mean(sorted(expected), axis=0), 1)


def test_toplek_sends_the_length_that_gives_the_share() -> None:
    """x = (3, 2, 1), k = 1: nothing with probability 13/27, else the 3; 14/3 of 14 in the mean."""
    n = 40_000
    values = TopLEK(1).compress(np.tile([2.0, -3.0, 1.0], (n, 1)), Key(2)).values
    kept = values[:, 1] == -3
    assert np.all(values[kept] == [0, -3, 0])
    assert not values[~kept].any()
    assert abs(kept.mean() - 14 / 27) < 5 * math.sqrt(14 * 13) / 27 / math.sqrt(n)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_toplek_over_both_lengths(k: int) -> None:
    """The share of ||x||^2 is exact in the mean, by the lengths and probabilities of the paper."""
    x = [Fraction(v) for v in (7, -5, 5, 2, 1, 1)]
    energy = [Fraction(0)]
    for v in sorted(x, key=abs, reverse=True):
        energy.append(energy[-1] + v * v)
    target = energy[-1] * Fraction(k, len(x))
    m = next(j for j, e in enumerate(energy) if e >= target)
    shorter = (energy[m] - target) / (energy[m] - energy[m - 1])
    assert shorter * energy[m - 1] + (1 - shorter) * energy[m] == target
    row = np.array([[float(v) for v in x]])
    for seed in range(200):
        kept = np.count_nonzero(TopLEK(k).compress(row, Key(seed)).values)
        low, high = islice(words(Key(seed), 0), 2)
        drawn = Fraction((high << 32 | low) >> 11, 2**53)
        assert kept == (m - 1 if drawn < shorter else m)


def test_toplek_of_what_is_not_finite_is_topk() -> None:
    x = np.array([[1.0, math.inf, -2.0, math.nan]])
    values, expected = (c.compress(x, Key(0)).values for c in (TopLEK(2), TopK(2)))
    assert values.tobytes() == expected.tobytes()


def test_blocks_have_their_own_largest() -> None:
    x = np.array([[1.0, -4.0, 3.0, 0.5, 0.5, 0.25, 9.0]])
    values = BlockTopK(2, 3).compress(x, Key(0)).values
    assert values.tolist() == [[0, -4, 3, 0.5, 0.5, 0, 9]]


def test_bernoulli_is_one_coin() -> None:
    x = np.tile([1.0, 2.0], (4000, 1))
    values = Bernoulli(0.3).compress(x, Key(5)).values
    drawn = values[:, 0] != 0
    assert np.array_equal(values, np.where(drawn[:, None], x * (1 / 0.3), 0))
    first = [next(words(Key(5), worker)) for worker in range(50)]
    second = [next(islice(words(Key(5), worker), 1, None)) for worker in range(50)]
    for worker, (low, high) in enumerate(zip(first, second, strict=True)):
        assert drawn[worker] == (((high << 32 | low) >> 11) * 2.0**-53 < 0.3)
    lazy = Bernoulli(0.3, scaled=False).compress(x, Key(5)).values
    assert np.array_equal(lazy, np.where(drawn[:, None], x, 0))


# PermK.


def permk_shares(n: int, d: int) -> Iterator[list[list[int]]]:
    """The coordinates of each worker, over all pairs of orders of coordinates and workers."""
    for coordinates, workers in product(permutations(range(d)), permutations(range(n))):
        shares: list[list[int]] = [[] for _ in range(n)]
        for j in range(max(n, d)):
            shares[workers[j % n]].append(coordinates[j % d])
        yield [sorted(share) for share in shares]


@pytest.mark.parametrize(("n", "d"), [(2, 4), (3, 4), (3, 3), (4, 2), (4, 3), (1, 3), (3, 1)])
def test_permk_satisfies_its_equality(n: int, d: int) -> None:
    """E|mean_i C_i(a_i) - mean_i a_i|^2 = A mean_i |a_i|^2 - B |mean_i a_i|^2, exactly."""
    rng = np.random.default_rng(n * d)
    a = [[Fraction(int(v)) for v in row] for row in rng.integers(-9, 9, (n, d))]
    average = [sum(row[c] for row in a) / n for c in range(d)]
    scale, total, single, number = min(n, d), Fraction(0), Fraction(0), 0
    for shares in permk_shares(n, d):
        error = [-value for value in average]
        for i, share in enumerate(shares):
            for c in share:
                error[c] += Fraction(scale, n) * a[i][c]
        total += sum(e * e for e in error)
        single += sum((scale * a[0][c]) ** 2 for c in shares[0])
        number += 1
    squares = sum(v * v for row in a for v in row) / n
    A, B = PermK(n).collective(d, n)
    expected = A * float(squares) - B * float(sum(v * v for v in average))
    assert math.isclose(float(total / number), expected, rel_tol=1e-12, abs_tol=1e-9)
    first = sum(v * v for v in a[0])
    assert single / number == (1 + int(PermK(n).omega(d))) * first


def test_permk_never_has_b_above_a() -> None:
    """Then A L+^2 - B (L+^2 - L+-^2) is no negative number, also where L+- is 0."""
    for n, d in product(range(1, 40), range(1, 40)):
        A, B = PermK(n).collective(d, n)
        assert A >= B >= 0
        assert (A == B) == (d >= n or n % d == 0)


@pytest.mark.parametrize(("n", "d"), [(2, 4), (3, 4), (4, 2), (5, 3), (7, 7), (3, 40)])
def test_permk_draws_what_is_documented(n: int, d: int) -> None:
    def shuffled(size: int, stream: Iterator[int]) -> list[int]:
        result = list(range(size))
        for j in range(size, 1, -1):
            other = next(stream) * j >> 32  # ignores the rare rejected word
            result[j - 1], result[other] = result[other], result[j - 1]
        return result

    for seed in range(20):
        stream = words(Key(seed), SERVER)
        coordinates = shuffled(d, stream)
        workers = shuffled(n, stream)
        shares: list[list[int]] = [[] for _ in range(n)]
        for j in range(max(n, d)):
            shares[workers[j % n]].append(coordinates[j % d])
        values = PermK(n).compress(np.ones((n, d)), Key(seed)).values
        for row, share in zip(values, shares, strict=True):
            assert np.flatnonzero(row).tolist() == sorted(share)
            assert set(row[share]) == {min(n, d)}


@pytest.mark.parametrize(("n", "d"), [(2, 4), (3, 40), (7, 50)])
def test_permk_is_exact_where_workers_agree(n: int, d: int) -> None:
    x = np.tile(np.random.default_rng(0).integers(-8, 8, d).astype(float), (n, 1))
    values = PermK(n).compress(x, Key(3)).values
    assert np.array_equal(values.sum(axis=0), n * x[0])
    assert np.all(np.count_nonzero(PermK(n).compress(np.ones((n, d)), Key(3)).values, axis=0) == 1)


# Codes.


def natural(x: Any, word: int, dtype: Any) -> float:
    """To the power of two above with probability mantissa / 2^(bits of the mantissa)."""
    fraction, exponent = math.frexp(abs(float(x)))
    size, bits = Fraction(fraction) * 2, 23 if dtype == np.float32 else 52  # in [1, 2)
    up = (word >> (9 if dtype == np.float32 else 12)) >= 2**bits - (size - 1) * 2**bits
    return math.copysign(math.ldexp(1.0, exponent - 1 + up), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_natural_compression_word_by_word(dtype: Any) -> None:
    x = np.random.default_rng(1).standard_normal((2, 700)).astype(dtype)
    x[0, :5] = [1, -2, 0.75, 1.5, -1.25]
    values = NaturalCompression().compress(x, Key(4)).values
    for worker in range(2):
        drawn = entry_words(Key(4), worker, 700, dtype)
        expected = [natural(v, word, dtype) for v, word in zip(x[worker], drawn, strict=True)]
        assert values[worker].tolist() == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_natural_compression_at_the_ends(dtype: Any) -> None:
    limits = np.finfo(dtype)
    top = limits.max / 2 * (1 / (1 - limits.epsneg))  # 2^127 or 2^1023
    x = np.array([limits.max, -limits.max, top, math.inf, -math.inf, -0.0, limits.tiny], dtype)
    expected = np.array([top, -top, top, math.inf, -math.inf, 0.0, limits.tiny], dtype)
    for seed in range(20):
        values = NaturalCompression().compress(x[None], Key(seed)).values[0]
        assert values.tobytes() == expected.tobytes()
    below = np.full((4000, 1), limits.tiny / 4, dtype)  # to 0 or the smallest normal number
    values = NaturalCompression().compress(-below, Key(0)).values
    assert set(values.ravel().tolist()) == {0.0, -float(limits.tiny)}
    assert abs(np.count_nonzero(values) / 4000 - 0.25) < 5 * math.sqrt(3 / 16 / 4000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compressor", [RandomDithering(1), RandomDithering(7), TernGrad()])
def test_dithering_word_by_word(compressor: Any, dtype: Any) -> None:
    d, levels = 600, getattr(compressor, "levels", 1)
    x = np.random.default_rng(2).standard_normal((2, d)).astype(dtype)
    values = compressor.compress(x, Key(6)).values
    for worker in range(2):
        row = x[worker].astype(np.float64)
        size = np.max(np.abs(row)) if compressor == TernGrad() else np.linalg.norm(row)
        norm = float(dtype(size))
        drawn = entry_words(Key(6), worker, d, dtype)
        level = [
            math.floor(t) + (unit(word, dtype) < Fraction(t) - math.floor(t))
            for t, word in zip(levels * (np.abs(row) / norm), drawn, strict=True)
        ]
        expected = np.sign(row) * norm * np.array(level) / levels
        assert np.allclose(values[worker], expected, rtol=1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_natural_dithering_word_by_word(p: float, dtype: Any) -> None:
    d, s = 500, 4
    x = np.random.default_rng(3).standard_normal((1, d)).astype(dtype)
    values = NaturalDithering(s, p).compress(x, Key(7)).values[0]
    norm = float(dtype(np.linalg.norm(x[0].astype(np.float64), p)))
    grid = [0.0] + [2.0 ** (j - s) for j in range(1, s + 1)]
    drawn = entry_words(Key(7), 0, d, dtype)
    for value, entry, word in zip(values, x[0].astype(np.float64), drawn, strict=True):
        t = abs(entry) / norm
        below = max(g for g in grid if g <= t)
        above = min((g for g in grid if g > t), default=below)
        if below > 0:
            chosen = abs(natural(t, word << (32 if dtype == np.float32 else 0), np.float64))
        else:
            chosen = above if unit(word, dtype) < Fraction(t) / Fraction(above) else 0.0
        assert chosen in (below, above)
        assert math.isclose(value, math.copysign(chosen * norm, entry), rel_tol=1e-6, abs_tol=0)


# Matrices.


def nearest(x: Any, shape: tuple[int, int], rank: int) -> Any:
    padded = np.zeros(math.prod(shape))
    padded[: len(x)] = x
    u, s, v = np.linalg.svd(padded.reshape(shape), full_matrices=False)
    return ((u[:, :rank] * s[:rank]) @ v[:rank]).ravel()[: len(x)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("d", "rows"), [(1, None), (12, 3), (12, 6), (12, 12), (23, None), (23, 4), (90, 2)]
)
def test_rank_r_is_the_truncated_decomposition(d: int, rows: int | None, dtype: Any) -> None:
    x = np.random.default_rng(d).standard_normal((3, d)).astype(dtype)
    shape = RankR(1, rows).shape(d)
    for rank in range(1, min(shape) + 1):
        values = RankR(rank, rows).compress(x, Key(0)).values
        for row, value in zip(x, values, strict=True):
            expected = nearest(row, shape, rank)
            assert np.allclose(value, expected, rtol=0, atol=2e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("rows", [5, 8])
def test_power_sgd_projects(rows: int) -> None:
    """On rank columns: the error is orthogonal, and nothing is lost of a matrix of that rank."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 40))
    for rank in (1, 2, 4):
        value = PowerSGD(rank, rows).compress(x, Key(rank)).values[0]
        assert np.linalg.matrix_rank(value.reshape(rows, -1)) == rank
        assert abs(value @ (x[0] - value)) < 1e-13 * (x[0] @ x[0])
        low = (rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, 40 // rows))).ravel()
        assert np.allclose(PowerSGD(rank, rows).compress(low[None], Key(0)).values[0], low)
        for deficient in (low, np.outer(low[:rows], np.ones(40 // rows)).ravel()):
            again = PowerSGD(4, rows).compress(deficient[None], Key(5)).values[0]
            assert np.allclose(again, deficient)


@pytest.mark.parametrize("make", [RankR, PowerSGD])
@pytest.mark.parametrize("exponent", [-1060, -900, 900, 1020])
def test_low_rank_at_the_ends_of_the_range(make: Any, exponent: int) -> None:
    """Squares of these numbers are 0 or infinite."""
    x = np.round(np.random.default_rng(0).standard_normal((1, 10)), 3)
    values = make(2).compress(x, Key(0)).values
    again = make(2).compress(np.ldexp(x, exponent), Key(0)).values
    tolerance = 1e-3 if exponent == -1060 else 1e-14
    assert np.allclose(np.ldexp(again, -exponent), values, rtol=0, atol=tolerance)


# Composed.


def test_a_composition_is_what_its_parts_make() -> None:
    x = np.random.default_rng(4).standard_normal((3, 50))
    kept = RandK(7).compress(x, Key(8)).values
    values = Composition(RandK(7), NaturalCompression()).compress(x, Key(8)).values
    for worker in range(3):
        places = np.flatnonzero(kept[worker])
        drawn = entry_words(Key(8), worker, 7, np.float64, stage=1)
        pairs = zip(kept[worker][places], drawn, strict=True)
        expected = [natural(v, word, np.float64) for v, word in pairs]
        assert values[worker][places].tolist() == expected
        assert np.count_nonzero(values[worker]) == 7
    whole = Composition(TopK(50), RandomDithering(3)).compress(x, Key(8)).bits
    assert whole.tolist() == [50 * 6 + 64 + 50 * 3] * 3


def test_scaled_divides_by_one_plus_omega() -> None:
    x = np.random.default_rng(5).standard_normal((2, 16))
    values = TernGrad().compress(x, Key(9)).values
    again = Scaled(TernGrad()).compress(x, Key(9))
    assert np.array_equal(again.values, values * (1 / (1 + TernGrad().omega(16))))
    assert again.bits.tolist() == [64 + 32] * 2
