"""How fast each compressor is, in GB of the vector a second, on one thread.

    python -m experiments.compressor_speed --d 1000000

`compress` makes what the receiver reads, `encode` the bytes of the message, `decode` reads them.
Each is called for `--seconds`, and the fastest call counts. PermK compresses for ten workers.
"""

from __future__ import annotations

import argparse
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d", type=int, default=1_000_000, help="entries of the vector")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each number")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = []
    for compressor in contestants(arguments.d):
        if isinstance(compressor, RankR) and arguments.d > RANK_R_LIMIT:
            continue
        speeds = []
        for dtype in (np.float32, np.float64):
            x = rng.standard_normal(arguments.d).astype(dtype)
            speeds += measure(compressor, x, arguments.seconds)
        rows.append([f"`{compressor!r}`", *(f"{speed:.3g}" for speed in speeds)])
    columns = [
        f"{dtype} {call}"
        for dtype in ("float32", "float64")
        for call in ("compress", "encode", "decode")
    ]
    print("\n".join(table(["compressor", *columns], rows)))


if __name__ == "__main__":
    main()
