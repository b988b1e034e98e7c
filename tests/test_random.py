"""Keys and draws: Philox against its published vectors, streams, and exactly uniform integers."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from itertools import count, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from buropt import _core
from buropt.random import Key, Purpose

SERVER = 2**32 - 1

seeds = st.integers(0, 2**64 - 1)
rounds = st.integers(0, 2**48 - 1)
keys = st.builds(Key, seeds, rounds, st.integers(0, 2**16 - 1))


def words(key, worker=SERVER):
    """The documented stream of 32-bit words, from single Philox blocks."""
    halves = [key.seed & 0xFFFFFFFF, key.seed >> 32]
    low, high = key.round & 0xFFFFFFFF, key.round >> 32
    for block in count():
        yield from _core.philox4x32([block, worker, low, key.purpose << 16 | high], halves)


def below(stream, bound):
    """Lemire's unbiased integer below bound, as the paper has it."""
    width = 32 if bound < 2**32 else 64
    excess = (2**width - bound) % bound
    while True:
        word = next(stream) if width == 32 else next(stream) | next(stream) << 32
        if word * bound % 2**width >= excess:
            return word * bound >> width


# Counter, key and result from the file kat_vectors of the authors' Random123 library.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)  # fmt: skip
def test_philox_known_answers(counter, key, expected):
    counter, key, expected = ([int(w, 16) for w in t.split()] for t in (counter, key, expected))
    assert list(_core.philox4x32(counter, key)) == expected


@given(keys)
def test_uniform_has_53_bits_of_the_stream(key):
    low, high = islice(words(key), 2)
    assert key.uniform() == ((high << 32 | low) >> 11) * 2.0**-53
    assert key.uniform() == key.uniform()


@given(keys, st.integers(1, 2**64 - 1), st.integers(0, 40))
def test_integers_follow_lemire(key, n, size):
    low = -(2**63)
    stream = words(key)
    expected = [low + below(stream, n) for _ in range(size)]
    assert key.integers(low, low + n, size).tolist() == expected


# Just above a power of two, where nearly half of the words must be drawn again.
@pytest.mark.parametrize("n", [2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1])
def test_integers_reject_what_would_be_biased(n):
    key = Key(5, 9)
    stream = words(key)
    drawn = key.integers(0, n, 1000)
    assert drawn.tolist() == [below(stream, n) for _ in range(1000)]
    assert 0 <= drawn.min() <= drawn.max() < n


def test_integers_are_uniform():
    counts = np.bincount(Key(1, 2).integers(0, 7, 70_000), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-3
    assert set(Key(1).integers(-3, 0, 100).tolist()) == {-3, -2, -1}
    assert Key(1).integers(4, 5, (2, 3)).tolist() == [[4, 4, 4], [4, 4, 4]]
    assert Key(1).integers(0, 5, 0).shape == (0,)
    assert Key(1).integers(0, 5, 2).dtype == np.int64


def test_integers_accept_numpy_bounds():
    key = Key(3)
    assert np.array_equal(key.integers(np.int32(0), np.int64(9), 5), key.integers(0, 9, 5))


def test_uniform_over_rounds_is_uniform():
    drawn = [Key(3, round).uniform() for round in range(5000)]
    assert 0 <= min(drawn) <= max(drawn) < 1
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3


def test_coin():
    heads = sum(Key(4, round).coin(0.3) for round in range(10_000))
    assert abs(heads - 3000) < 5 * np.sqrt(10_000 * 0.3 * 0.7)
    assert Key(4).coin(np.float64(0.5)) in (True, False)
    assert type(Key(4).coin(np.float64(0.5))) is bool


@given(keys)
def test_coin_at_the_ends(key):
    assert all(key.coin(p) for p in (1, 1.0, True))
    assert not any(key.coin(p) for p in (0, 0.0, False))


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), float("inf")])
def test_coin_refuses(p):
    with pytest.raises(ValueError, match=r"Key\.coin: p must be a probability between 0 and 1"):
        Key(0).coin(p)


def test_every_field_changes_the_draw():
    key = Key(1, 2, 3)
    others = [key, Key(2, 2, 3), Key(1 + 2**32, 2, 3), Key(1, 3, 3), Key(1, 2 + 2**32, 3),
              Key(1, 2, 4), key.fold(1), key.fold(1 + 3)]  # fmt: skip
    assert len({other.uniform() for other in others}) == len(others)


def test_at_and_fold():
    key = Key(seed=1, round=2)
    assert key.at(9) == Key(1, 9)
    assert key.fold(Purpose.COIN) == Key(1, 2, 2)
    assert key.fold(Purpose.COIN).at(9) == key.at(9).fold(Purpose.COIN)
    assert type(key.fold(Purpose.COIN).purpose) is int


def test_folds_never_coincide():
    key = Key(0)
    purposes = [int(purpose) for purpose in Purpose] + [255]
    paths = [(a,) for a in purposes] + [(a, b) for a in purposes for b in purposes]
    folded = {key}
    for path in paths:
        other = key
        for purpose in path:
            other = other.fold(purpose)
        folded.add(other)
    assert len(folded) == 1 + len(paths)


@pytest.mark.parametrize("purpose", [0, -1, 256])
def test_fold_refuses(purpose):
    with pytest.raises(ValueError, match=r"Key\.fold: purpose must be between 1 and 255"):
        Key(0).fold(purpose)


def test_fold_refuses_a_third_level():
    with pytest.raises(ValueError, match=r"folded twice already \(purposes 1 and 2\)"):
        Key(0).fold(1).fold(2).fold(3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((-1,), r"Key\.seed must be between 0 and 2\*\*64 - 1, got -1"),
        ((2**64,), r"Key\.seed must be between"),
        ((0, -1), r"Key\.round must be between 0 and 2\*\*48 - 1, got -1"),
        ((0, 2**48), r"Key\.round must be between"),
        ((0, 0, 2**16), r"Key\.purpose must be between"),
    ],
)
def test_key_refuses_out_of_range(fields, message):
    with pytest.raises(ValueError, match=message):
        Key(*fields)


@pytest.mark.parametrize("seed", [1.0, True, np.True_, "1", None])
def test_key_refuses_other_types(seed):
    with pytest.raises(TypeError, match=r"Key\.seed must be an integer, got"):
        Key(seed)


def test_key_is_a_plain_record():
    key = Key(np.uint64(2**64 - 1), np.int64(3))
    assert (type(key.seed), type(key.round)) == (int, int)
    assert key == Key(2**64 - 1, 3)
    assert hash(key) == hash(Key(2**64 - 1, 3))
    assert pickle.loads(pickle.dumps(key)) == key == copy.deepcopy(key)
    with pytest.raises(FrozenInstanceError):
        key.seed = 1
    assert not hasattr(key, "__dict__")


@pytest.mark.parametrize(("low", "high"), [(0, 0), (3, 2), (0, 2**63), (-(2**63) - 1, 0)])
def test_integers_refuse(low, high):
    with pytest.raises(ValueError, match=r"Key\.integers: need -2\*\*63 <= low < high < 2\*\*63"):
        Key(0).integers(low, high, 1)
    with pytest.raises(TypeError):
        Key(0).integers(0, 2.5, 1)
