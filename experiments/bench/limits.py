"""What this machine can do, measured in the run itself: product peak and memory bandwidth."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.contest import Result

_PRODUCT_SIZES = (256, 512, 1024)
_STREAM_SIZES = (
    2**20,
    2**22,
    2**24,
    2**26,
    2**29,
)  # bytes: from a core's cache to beyond all caches
_PACKAGES = (
    *("buropt", "numpy", "scipy", "scikit-learn", "jax", "torch", "tensorflow-cpu", "mlx"),
    *("autograd", "casadi", "heyoka", "micrograd"),
)


@dataclass(frozen=True)
class Limits:
    """Measured peaks of one thread.

    Attributes
    ----------
    flops : dict
        Dtype to operations per second.
    bandwidths : list of (int, float)
        Bytes of a working set, and bytes per second that are read from it again and again.
    """

    flops: dict[str, float]
    bandwidths: list[tuple[int, float]]

    def bandwidth(self, n_bytes: float) -> float:
        """Bytes per second of the measured working set that is nearest by its ratio."""
        at = math.log(max(n_bytes, 1))
        return min(self.bandwidths, key=lambda pair: abs(math.log(pair[0]) - at))[1]

    def raised(self, results: Sequence[Result]) -> Limits:
        """The peak of arithmetic is at least what any contestant has reached."""
        flops = dict(self.flops)
        for result in results:
            if result.flops and result.times:
                reached = result.flops / min(result.times.values())
                flops[result.dtype] = max(flops[result.dtype], reached)
        return replace(self, flops=flops)

    def seconds(self, flops: float, n_bytes: float, dtype: str) -> float:
        """The least time for so much arithmetic and memory traffic."""
        return max(flops / self.flops[dtype], n_bytes / self.bandwidth(n_bytes))


def measure(repeats: int = 7) -> Limits:
    """Peaks as the best of several repeats, of square products and of dot products.

    NumPy's products run in its BLAS. Every repeat lasts about 10 ms, so that a short disturbance
    spoils one only.
    """
    flops = {
        dtype: max(_product(n, dtype, repeats) for n in _PRODUCT_SIZES)
        for dtype in ("float32", "float64")
    }
    return Limits(flops, [(size, _stream(size, repeats)) for size in _STREAM_SIZES])


def _product(n: int, dtype: str, repeats: int) -> float:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(dtype) for _ in range(2))
    out = np.empty((n, n), dtype)
    return 2 * n**3 / _best(lambda: np.matmul(a, b, out=out), repeats)


def _stream(n_bytes: int, repeats: int) -> float:
    data = np.ones(n_bytes // 8)
    return n_bytes / _best(lambda: np.dot(data, data), repeats)


def _best(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of a call, in the fastest of the repeats."""
    begin = time.perf_counter()
    call()
    n = max(1, int(0.01 / (time.perf_counter() - begin)))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(n):
            call()
        times.append((time.perf_counter() - begin) / n)
    return min(times)


def machine() -> dict[str, Any]:
    """The processor, its cores and the software: what a table of times has to say."""
    model = platform.processor() or "unknown"
    info = Path("/proc/cpuinfo")
    fields: dict[str, str] = {}
    if info.exists():
        for line in info.read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    flags = f" {fields.get('flags', '')} "
    widths = [name for name in ("avx512f", "avx2", "avx", "sse4_2") if f" {name} " in flags]
    numbers = [fields.get(key, "?") for key in ("cpu family", "model")]
    return {
        "processor": fields.get("model name", model),
        "family, model": ", ".join(numbers),
        "vector extension": widths[0] if widths else "unknown",
        "cores": os.cpu_count(),
        "caches": caches(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> str:
    """Sizes of the first core's caches."""
    found = []
    for index in sorted(folder.glob("index*")):
        level, kind, size = (
            (index / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found) or "unknown"


def versions() -> dict[str, str]:
    """Packages that take part."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
