"""docs/compressor_speed.md: how many GB of a vector each compressor handles in a second.

python -m experiments.compressor_speed > docs/compressor_speed.md
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np

from buropt.compressors import (
    Bernoulli,
    BlockTopK,
    CompiledCompressor,
    Composition,
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
)
from buropt.notes import table
from buropt.random import Key

HEAD = """# Speed of the compressors

GB of the vector a second, on one thread and one core of {machine}, for {d:,} entries from a
normal distribution. `compress` makes what the receiver reads, `encode` the bytes of the message,
`decode` reads them. Contestants take turns, and the fastest call counts. PermK compresses for ten
workers, who share one permutation. Written by `python -m experiments.compressor_speed`.
"""
CALLS = ("compress", "encode", "decode")
RANK_R_LIMIT = 20_000  # above, its eigenvectors take minutes


def contestants(d: int) -> list[CompiledCompressor]:
    k = max(1, d // 100)
    return [
        *(Identity(), RandK(k), RandK(k, shared_seed=True), RandSeqK(k), PermK(10)),
        *(Bernoulli(1.0), TopK(k), TopLEK(k), BlockTopK(10, 1000), NaturalCompression()),
        *(RandomDithering(1), RandomDithering(7), NaturalDithering(7), TernGrad()),
        *(ScaledSign(), Sign(), PowerSGD(2), RankR(2)),
        *(Composition(TopK(k), NaturalCompression()), Scaled(RandomDithering(7))),
    ]


def fits(compressor: CompiledCompressor, d: int) -> bool:
    return not isinstance(compressor, RankR) or d <= RANK_R_LIMIT


def fastest(call: Callable[[], object], seconds: float) -> float:
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best)


def measure(compressor: CompiledCompressor, x: np.ndarray, seconds: float) -> list[float]:
    """GB a second of compress, encode and decode."""
    d, key = x.size, Key(0)
    rows = np.tile(x, (getattr(compressor, "n_workers", 1), 1))
    out, payload = np.empty_like(rows), compressor.encode(x, key)
    return [
        rows.nbytes / fastest(lambda: compressor.compress(rows, key, out), seconds) / 1e9,
        x.nbytes / fastest(lambda: compressor.encode(x, key), seconds) / 1e9,
        x.nbytes / fastest(lambda: compressor.decode(payload, d, x.dtype, key), seconds) / 1e9,
    ]


def shown(speed: float) -> str:
    return f"{speed:.2g}" if speed < 10 else f"{speed:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default=platform.machine(), help="what to call this machine")
    parser.add_argument("--d", type=int, default=100_000, help="entries of the vector")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=0.008, help="of each number in a turn")
    arguments = parser.parse_args()
    x = np.random.default_rng(0).standard_normal(arguments.d)
    takes_part = [c for c in contestants(arguments.d) if fits(c, arguments.d)]
    best = np.zeros((len(takes_part), 2, 3))
    for _ in range(arguments.turns):
        for place, compressor in enumerate(takes_part):
            for column, dtype in enumerate((np.float32, np.float64)):
                speeds = measure(compressor, x.astype(dtype), arguments.seconds)
                best[place, column] = np.maximum(best[place, column], speeds)
    header = ["compressor"]
    header += [f"{call}, {dtype}" for dtype in ("float32", "float64") for call in CALLS]
    rows = [
        [f"`{compressor!r}`", *map(shown, speeds.ravel())]
        for compressor, speeds in zip(takes_part, best, strict=True)
    ]
    print(HEAD.format(machine=arguments.machine, d=arguments.d))
    print("\n".join(table(header, rows)), end="")


if __name__ == "__main__":
    main()
