"""What holds for every compressor: bits against bytes, constants, zeros, keys, NaN and infinity."""

from __future__ import annotations

import copy
import importlib.resources
import pickle
from itertools import pairwise
from math import ceil, inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from methods import choices

from buropt import compressors
from buropt.build import call
from buropt.compressors import (
    Bernoulli,
    BlockTopK,
    Chooser,
    CompiledCompressor,
    Composition,
    Compressor,
    Identity,
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
    catalogue,
)
from buropt.random import Key

DTYPES = (np.float32, np.float64)


def examples(k: int, n: int, d: int = 10) -> list[CompiledCompressor]:
    """One of each, and of each parameter, that is for d entries; k of them are kept, n workers."""
    natural = NaturalCompression()
    return [
        Identity(),
        RandK(k),
        RandK(k, shared_seed=True),
        RandK(k, scaled=False),
        RandSeqK(k),
        RandSeqK(k, shared_seed=True),
        TopK(k),
        TopLEK(k),
        BlockTopK(1, 3),
        BlockTopK(k, 1000),
        PermK(n),
        Bernoulli(0.4),
        Bernoulli(0.4, scaled=False),
        natural,
        RandomDithering(1),
        RandomDithering(4),
        RandomDithering(100),
        *(NaturalDithering(levels, p) for levels in (1, 3, 8) for p in (1, 2, inf)),
        TernGrad(),
        Sign(),
        ScaledSign(),
        RankR(1),
        PowerSGD(1),
        *((RankR(1, rows=2), PowerSGD(1, rows=2)) if d > 1 else ()),
        Scaled(RandK(k)),
        Scaled(natural),
        Composition(RandK(k), RandomDithering(4)),
        Composition(RandSeqK(k, shared_seed=True), natural),
        Composition(TopK(k), natural),
        Composition(TopK(k), Scaled(TernGrad())),
        Composition(TopLEK(k), ScaledSign()),
        Composition(BlockTopK(1, 3), NaturalDithering(3)),
        Composition(Bernoulli(0.4, scaled=False), Scaled(natural)),
        Composition(PermK(n), TernGrad()),
    ]


EVERY = pytest.mark.parametrize("compressor", examples(3, 4), ids=repr)
VARYING = (TopLEK, PermK, Bernoulli)  # messages differ in length


def varies(compressor: Compressor) -> bool:
    first = compressor.first if isinstance(compressor, Composition) else compressor
    return isinstance(first, VARYING)


def rows(n: int, d: int, dtype: Any = np.float64, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def test_every_compressor_has_a_file_and_a_configuration() -> None:
    classes = set(catalogue.classes())
    assert {type(compressor).__name__ for compressor in examples(1, 1)} == classes
    files = {path.stem for path in Path(compressors.__file__).parent.glob("*.py")}
    assert {getattr(compressors, name).__module__.rpartition(".")[2] for name in classes} < files
    folder = importlib.resources.files("buropt.conf").joinpath("compressor")
    built = set()
    for choice in choices("compressor"):
        text = folder.joinpath(f"{choice}.yaml").read_text().replace("${n_workers}", "4")
        compressor = call(yaml.safe_load(text), "compressor")
        built.add(type(compressor).__name__)
        assert type(compressor).__module__ == f"buropt.compressors.{choice}"
        assert compressor.compress(rows(4, 28), Key(0)).values.shape == (4, 28)
    assert built == classes


def test_the_page_of_all_compressors_is_fresh() -> None:
    page = Path(__file__).parents[1] / "docs" / "compressors.md"
    assert page.read_text() == catalogue.page(), (
        "python -m buropt.compressors.catalogue > docs/compressors.md"
    )
    listed = [name for names in catalogue.FAMILIES.values() for name in names]
    assert sorted(listed) == sorted(catalogue.classes())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 63, 64, 136])
def test_bits_bytes_and_values_agree(d: int, dtype: Any) -> None:
    n, key = 3, Key(d, 5)
    x = rows(n, d, dtype)
    for compressor in examples((d + 2) // 3, n, d):
        message = compressor.compress(x, key)
        most = compressor.bits(d, dtype)
        if varies(compressor):
            assert max(message.bits) <= most
        else:
            assert message.bits.tolist() == [most] * n
        for worker in range(n):
            payload = compressor.encode(x[worker], key, worker)
            assert len(payload) == ceil(message.bits[worker] / 8)
            received = compressor.decode(payload, d, dtype, key, worker)
            assert received.tobytes() == message.values[worker].tobytes(), compressor
        damaged = payload + b"\0"
        with pytest.raises(ValueError, match=rf"^{type(compressor).__name__}\.decode: the payload"):
            compressor.decode(damaged, d, dtype, key, worker)
        if payload:
            with pytest.raises(ValueError, match=r"\.decode: the payload"):
                compressor.decode(payload[:-1], d, dtype, key, worker)


@EVERY
def test_the_longest_message_is_reached(compressor: CompiledCompressor) -> None:
    bits = compressor.compress(np.ones((4, 10)), Key(0)).bits.tolist()
    for round in range(1, 50):
        bits += compressor.compress(np.ones((4, 10)), Key(0, round)).bits.tolist()
    assert max(bits) == compressor.bits(10, np.float64)


@EVERY
def test_only_the_key_decides(compressor: CompiledCompressor) -> None:
    x = rows(4, 55)
    values = compressor.compress(x, Key(1, 2, 3)).values
    assert values.tobytes() == compressor.compress(x, Key(1, 2, 3)).values.tobytes()
    certain = Identity, TopK, BlockTopK, Sign, ScaledSign, RankR
    is_random = not isinstance(compressor, certain)
    for other in (Key(2, 2, 3), Key(1, 9, 3), Key(1, 2, 4)):
        changed = [compressor.compress(x, other.at(other.round + 7 * j)).values for j in range(4)]
        assert any(not np.array_equal(values, again) for again in changed) == is_random
    if compressor.independent:
        assert values[:2].tobytes() == compressor.compress(x[:2], Key(1, 2, 3)).values.tobytes()


@EVERY
def test_records(compressor: CompiledCompressor) -> None:
    assert pickle.loads(pickle.dumps(compressor)) == compressor == copy.deepcopy(compressor)
    assert eval(repr(compressor), vars(compressors) | {"inf": inf}) == compressor


@EVERY
@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros(compressor: CompiledCompressor, dtype: Any) -> None:
    values = compressor.compress(np.zeros((4, 10), dtype), Key(0)).values
    expected = np.full((4, 10), 1 if compressor == Sign() else 0, dtype)
    assert values.tobytes() == expected.tobytes()


def kept_of(compressor: CompiledCompressor) -> Any:
    """The vectors on which most is lost, where the constant is attained."""
    d = 9
    t = 1 / (1 + sqrt(d))
    third = np.full(d, 4 / 3)
    return {
        RandK: np.arange(1.0, d + 1),
        RandSeqK: np.arange(1.0, d + 1),
        PermK: np.arange(1.0, d + 1),
        Bernoulli: np.arange(1.0, d + 1),
        TopK: np.ones(d),
        TopLEK: np.arange(1.0, d + 1),
        ScaledSign: np.eye(d)[2],
        TernGrad: np.array([1, *[t] * (d - 1)]),
        NaturalCompression: third,
        RankR: np.eye(3).ravel(),
    }.get(type(compressor), np.ones(d))


TIGHT = [
    *(RandK(2), RandK(2, scaled=False), RandSeqK(4), PermK(4), PermK(12), Bernoulli(0.3)),
    *(Bernoulli(0.3, scaled=False), TopK(4), TopLEK(4), ScaledSign(), TernGrad()),
    *(NaturalCompression(), RandomDithering(1), RankR(1), BlockTopK(1, 3)),
]


@pytest.mark.parametrize("compressor", TIGHT, ids=repr)
def test_the_worst_vector_attains_the_constant(compressor: CompiledCompressor) -> None:
    x = kept_of(compressor)
    mean, spread = relative_error(compressor, x)
    omega, alpha = compressor.omega(9), compressor.alpha(9)
    expected = 1 - alpha if omega is None else omega  # type: ignore[operator]
    assert abs(mean - expected) < 5 * spread + 1e-9


def draws(compressor: CompiledCompressor, x: Any, n: int = 8000) -> Any:
    """Values of C(x) for n workers; workers that draw together are as many rounds."""
    if compressor.independent:
        return compressor.compress(np.tile(x, (n, 1)), Key(11)).values
    together = getattr(compressor, "n_workers", 4)
    tiled = np.tile(x, (together, 1))
    rounds = [compressor.compress(tiled, Key(11, j)).values[j % together] for j in range(n // 4)]
    return np.array(rounds)


def relative_error(compressor: CompiledCompressor, x: Any) -> tuple[float, float]:
    """Mean of ||C(x) - x||^2 / ||x||^2, and the standard deviation of this mean."""
    errors = np.sum((draws(compressor, x) - x) ** 2, axis=1) / np.sum(x**2)
    return float(errors.mean()), float(errors.std() / sqrt(len(errors)))


@EVERY
@pytest.mark.parametrize("vector", ["ones", "unit", "normal", "powers"])
def test_omega_and_alpha(compressor: CompiledCompressor, vector: str) -> None:
    d = 10
    x = {
        "ones": np.ones(d),
        "unit": np.eye(d)[3],
        "normal": rows(1, d)[0],
        "powers": -(0.7 ** np.arange(d)),
    }[vector]
    mean, spread = relative_error(compressor, x)
    omega, alpha = compressor.omega(d), compressor.alpha(d)
    assert (omega is not None) == compressor.unbiased
    if omega is not None:
        assert mean <= omega + 5 * spread + 1e-9
        drawn = draws(compressor, x)
        norm = sqrt(omega * np.sum(x**2) / len(drawn))
        assert np.linalg.norm(drawn.mean(axis=0) - x) <= 5 * norm + 1e-12
    if alpha is not None:
        assert 0 < alpha <= 1
        assert mean <= 1 - alpha + 5 * spread + 1e-9


# Vectors that are not finite.


@EVERY
@pytest.mark.parametrize("bad", [np.nan, inf, -inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite(compressor: CompiledCompressor, bad: float, dtype: Any) -> None:
    x = rows(4, 10, dtype)
    x[:, 4] = bad
    message = compressor.compress(x, Key(1))
    for worker in range(4):
        payload = compressor.encode(x[worker], Key(1), worker)
        received = compressor.decode(payload, 10, dtype, Key(1), worker)
        assert received.tobytes() == message.values[worker].tobytes()
    shown = ~np.isfinite(message.values).all(axis=1)
    unseen = Sign, RandK, RandSeqK, PermK, Bernoulli  # those that do not look
    inner = compressor.compressor if isinstance(compressor, Scaled) else compressor
    inner = inner.first if isinstance(inner, Composition) else inner
    assert shown.all() or isinstance(inner, unseen)
    if compressor == Sign():
        assert set(message.values[:, 4]) == {-1.0 if bad == -inf else 1.0}


@EVERY
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ends_of_the_range(compressor: CompiledCompressor, dtype: Any) -> None:
    """Multiplied by a power of two, a vector gives the same multiple, as long as all are normal."""
    limits = np.finfo(dtype)
    x = (1 + np.abs(rows(4, 10)) % 1).astype(dtype) * np.sign(rows(4, 10)).astype(dtype)
    values = compressor.compress(x, Key(2)).values
    for exponent in (limits.minexp + 12, limits.maxexp - 8):
        again = compressor.compress(np.ldexp(x, exponent), Key(2)).values
        if compressor == Sign():
            assert np.array_equal(again, values)
        elif np.isfinite(again).all():
            close = np.allclose(np.ldexp(again, -exponent), values, rtol=1e-3, atol=1e-3)
            assert close, (compressor, exponent)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_norm_that_overflows_spoils_the_message(dtype: Any) -> None:
    x = np.full((1, 16), np.finfo(dtype).max)
    for compressor in (RandomDithering(3), NaturalDithering(3), NaturalDithering(3, 1)):
        assert np.isnan(compressor.compress(x, Key(0)).values).all()
    for bounded in (TernGrad(), NaturalDithering(3, inf)):
        assert bounded.compress(x, Key(0)).values.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_subnormal_vectors_have_a_norm(dtype: Any) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    x = (tiny * np.array([[3, -4, 0, 0]])).astype(dtype)
    values = RandomDithering(5).compress(x, Key(0)).values
    assert values.tolist() == x.tolist()  # the norm is 5 of them, so all are on the grid


# Chosen before the vectors are known.


@EVERY
@pytest.mark.parametrize("d", [3, 10, 200])
def test_chosen_entries_are_those_that_are_kept(compressor: CompiledCompressor, d: int) -> None:
    if not isinstance(compressor, Chooser):
        return
    x, key = rows(4, d, np.float32), Key(3, 1)
    choice = compressor.choose(d, key, 4)
    places = [choice.indices[start:stop] for start, stop in pairwise(choice.starts)]
    assert all(np.all(np.diff(own) > 0) for own in places)
    entries = np.concatenate([row[own] for row, own in zip(x, places, strict=True)])
    message, expected = compressor.send(entries, choice, d), compressor.compress(x, key)
    assert message.values.tobytes() == expected.values.tobytes()
    assert message.bits.tolist() == expected.bits.tolist()


# Parameters.


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandK(2, scaled=1), TypeError, r"RandK\.scaled must be True or False, got 1"),
        (lambda: RandSeqK(0), ValueError, r"RandSeqK\.k must be between 1 and the dimension d"),
        (lambda: RandSeqK(2, None), TypeError, r"RandSeqK\.shared_seed must be True or False"),
        (lambda: TopLEK(1.5), TypeError, r"TopLEK\.k must be an integer, got 1\.5"),
        (lambda: BlockTopK(3, 0), ValueError, r"BlockTopK\.block_size must be between 1 and"),
        (lambda: BlockTopK(3, 2).bits(9, float), ValueError, r"BlockTopK\.k .* d = 2, got 3"),
        (lambda: PermK(0), ValueError, r"PermK\.n_workers must be between 1 and 2\*\*31, got 0"),
        (lambda: Bernoulli(0), ValueError, r"Bernoulli\.p must be a number in \(0, 1\], got 0"),
        (lambda: Bernoulli(np.nan), ValueError, r"Bernoulli\.p must be a number in"),
        (lambda: RandomDithering(0), ValueError, r"levels must be between 1 and 2\*\*30, got 0"),
        (lambda: NaturalDithering(256), ValueError, r"levels must be between 1 and 255, got 256"),
        (lambda: NaturalDithering(3, 3), ValueError, r"NaturalDithering\.p must be 1, 2 or inf"),
        (lambda: RankR(0), ValueError, r"RankR\.rank must be between 1 and"),
        (lambda: RankR(4).alpha(9), ValueError, r"RankR\.rank must be at most 3, the smaller side"),
        (lambda: PowerSGD(2, rows=0), ValueError, r"PowerSGD\.rows must be between 1 and"),
        (lambda: Scaled(TopK(3)), ValueError, r"for unbiased .* TopK\(k=3\) is biased; use it as"),
        (lambda: Scaled(3), TypeError, r"Scaled\.compressor must be a compressor, got 3"),
        (lambda: Composition(TernGrad(), TopK(3)), TypeError, r"first must be .* RandK or TopK"),
        (lambda: Composition(TopK(3), TopK(3)), TypeError, r"second must be a quantizer"),
        (lambda: TopK(3).collective(5, 2), ValueError, r"TopK\(k=3\) is biased: there is no A"),
        (lambda: PermK(3).collective(5, 2), ValueError, r"write compressor\.n_workers=2"),
        (lambda: PermK(3).compress(np.ones((2, 5)), Key(0)), ValueError, r"write n_workers=2"),
        (lambda: PermK(3).encode(np.ones(5), Key(0), 3), ValueError, r"worker must be below n_w"),
        (lambda: PermK(3).choose(0, Key(0), 3), ValueError, r"PermK\.choose: a vector has 1 to"),
        (lambda: RankR(4).compress(np.ones((1, 9)), Key(0)), ValueError, r"lower compressor\.rank"),
    ],
)  # fmt: skip
def test_mistakes(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
