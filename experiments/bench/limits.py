"""What this machine can do, measured in the run itself: product peak and memory bandwidth."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Limits(NamedTuple):
    """Measured peaks of one thread, in operations and bytes per second."""

    flops_float32: float
    flops_float64: float
    bandwidth: float

    def seconds(self, flops: float, n_bytes: float, dtype: str = "float32") -> float:
        """The least time for so much arithmetic and memory traffic."""
        peak = self.flops_float32 if dtype == "float32" else self.flops_float64
        return max(flops / peak, n_bytes / self.bandwidth)


def measure(repeats: int = 7) -> Limits:
    """The best of several repeats of a 1024 x 1024 product, and of a dot product over 256 MB."""
    return Limits(_gemm(np.float32, repeats), _gemm(np.float64, repeats), _bandwidth(repeats))


def _gemm(dtype: Any, repeats: int) -> float:
    n = 1024
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(dtype) for _ in range(2))
    out = np.empty((n, n), dtype)
    return 2 * n**3 / _best(lambda: np.matmul(a, b, out=out), repeats)


def _bandwidth(repeats: int) -> float:
    data = np.ones(32 * 2**20)  # 256 MB, beyond every cache
    return data.nbytes / _best(lambda: np.dot(data, data), repeats)


def _best(call: Any, repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def machine() -> dict[str, Any]:
    """The processor, its cores and the software: what a table of times has to say."""
    model = platform.processor() or "unknown"
    info = Path("/proc/cpuinfo")
    flags = ""
    if info.exists():
        for line in info.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            if key.strip() == "flags":
                flags = value
    widths = [name for name in ("avx512f", "avx2", "avx", "sse4_2") if f" {name} " in f"{flags} "]
    return {
        "processor": model,
        "vector_extension": widths[0] if widths else "unknown",
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
