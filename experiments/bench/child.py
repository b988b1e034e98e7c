"""The program of a process of its own: one peer from a cold start, or a step on several threads.

    python -m experiments.bench.child start PEER MODEL
    python -m experiments.bench.child threads BENCHMARK THREADS

Prints one JSON object; `processes.py` starts it and reads that. Modules are imported late here,
because their import is measured.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.bench.processes import CORES

# What a user of a peer imports.
MODULES = {
    **{"numpy": "numpy", "buropt": "buropt", "jax": "jax.numpy", "torch": "torch"},
    **{"torch.compile": "torch", "tf.function": "tensorflow", "tf.eager": "tensorflow"},
    **{"mlx": "mlx.core", "autograd": "autograd", "casadi": "casadi", "heyoka": "heyoka"},
    "micrograd": "micrograd.engine",
}
STEPS = 100  # of training, before memory is read
TURNS, TURN_SECONDS = 7, 0.1


def start(peer: str, model: str) -> dict[str, Any]:
    """Import, first gradient, and memory of a short training, all of it in this process."""
    begin = time.perf_counter()
    import_module(MODULES[peer])
    result: dict[str, Any] = {"import": time.perf_counter() - begin}
    if model != "none":
        contestant, answer, result["first"] = _first_gradient(peer, model)
        result["answer"] = [float(abs(answer).sum()), float((answer**2).sum())]
        for _ in range(STEPS):
            contestant.call()
    result["peak_bytes"] = peak_bytes()
    return result


def _first_gradient(peer: str, model: str) -> tuple[Any, Any, float]:
    import numpy as np

    from experiments.bench import frameworks
    from experiments.bench.cases import startup

    if peer in frameworks.FRAMEWORKS:
        frameworks.get(peer)  # what it imports besides is no part of the gradient
    startup.read_data(model)
    build = startup.builds(model)[peer]
    begin = time.perf_counter()
    contestant = build()
    answer = np.asarray(contestant.answer(), np.float64).ravel()
    return contestant, answer, time.perf_counter() - begin


def peak_bytes() -> int:
    """The most memory that this process has had resident.

    `getrusage` would count the parent's memory, which a child shares before it starts its program.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def threads(benchmark: str, n: int) -> dict[str, Any]:
    """Seconds of buropt's call with n threads, each on a core of its own."""
    cores = [int(core) for core in os.environ.get(CORES, "").split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores[-n:])
    from experiments.bench import contest
    from experiments.bench.cases import threads

    contestant = threads.builds(n)[benchmark]()
    answer = contestant.answer()
    seconds = contest.median_seconds(contestant.call, TURNS, TURN_SECONDS)
    return {"seconds": seconds, "answer": [float(abs(answer).sum()), float(answer[0])]}


def main() -> None:
    task, name, detail = sys.argv[1:]
    result = start(name, detail) if task == "start" else threads(name, int(detail))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
