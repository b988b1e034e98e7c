"""The benchmarks: one file each, with what is computed and buropt's code for it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

from experiments.bench.contest import Case

NAMES = (
    *("tiny", "tiny_batch", "small", "rosen", "mlp", "gpt", "glm", "worker"),
    *("io", "startup", "energy", "threads"),
)


def select(names: Sequence[str], quick: bool) -> Iterator[Case]:
    """Cases of the named benchmarks, of all if none is named.

    Raises
    ------
    SystemExit
        For a name that there is not.
    """
    for name in names or NAMES:
        if name not in NAMES:
            raise SystemExit(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}")
        module = importlib.import_module(f"experiments.bench.cases.{name}")
        yield from module.cases(quick)
