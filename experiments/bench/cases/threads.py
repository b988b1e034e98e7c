"""Two threads against one: buropt alone, each number of threads in a process of its own.

The answers are compared to the last bit: the number of threads changes none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

from experiments.bench import processes
from experiments.bench.cases import glm, gpt, mlp
from experiments.bench.contest import Build, Case, Contestant, NotApplicableError

TURNS = 5
NAMES = ("gpt batch=64", "mlp hidden=1024 batch=64", "glm full CSR a9a", "glm full dense a9a")


def builds(threads: int) -> dict[str, Build]:
    """Contestants, as the child process builds them."""
    makers: tuple[Build, ...] = (
        partial(gpt.buropt, 64, threads),
        partial(mlp.buropt, 1024, 64, threads),
        partial(glm.buropt, "a9a", True, None, threads),
        partial(glm.buropt, "a9a", False, None, threads),
    )
    return dict(zip(NAMES, makers, strict=True))


def cases(quick: bool) -> Iterator[Case]:
    """The contestant "buropt" has two threads, its peer one."""
    for name in () if quick else NAMES:
        yield Case(
            *("threads", "", name),
            {"buropt": partial(_contestant, name, 2), "1 thread": partial(_contestant, name, 1)},
            reference="1 thread",
            tolerance=0.0,
            turns=TURNS,
            note="buropt: with 2 threads",
        )


def _contestant(name: str, threads: int) -> Contestant:
    cores = os.environ.get(processes.CORES, "").count(",") + 1
    if cores < threads:
        raise NotApplicableError(f"no {threads} cores for this process")
    repeats = count()

    def run(repeat: int) -> dict[str, Any]:
        return processes.run("threads", name, str(threads), repeat)

    return Contestant(
        lambda: None, lambda: run(0)["answer"], lambda: float(run(next(repeats))["seconds"])
    )
