"""Measurements in processes of their own, which run the program `child.py`.

NumPy is not imported here: it reads the number of threads when it starts, and the program measures
how long its import takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import Any

CORES = "BUROPT_BENCH_CORES"  # a variable of the environment: those the benchmark was started with


@cache
def run(task: str, name: str, detail: str, repeat: int) -> dict[str, Any]:
    """What a child process measures; the same `repeat` gives the same process.

    Raises
    ------
    NotInstalledError
        If the peer cannot be imported there.
    RuntimeError
        If the process fails otherwise.
    """
    from experiments.bench.contest import NotInstalledError

    command = [sys.executable, "-W", "ignore", "-m", "experiments.bench.child", task, name, detail]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if "ModuleNotFoundError" in reason or "NotInstalledError" in reason:
            raise NotInstalledError(f"not installed ({reason.partition(': ')[2]})")
        raise RuntimeError(reason)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
