"""From a cold start: import, function to first gradient, and memory of a whole training process.

Every contestant runs in a process of its own. A first gradient begins when the peer is imported and
ends with the numbers: tracing, compiling, the first call. Memory is the peak of a process that
imports the peer and takes 100 steps of the GPT with batch 64; that of NumPy imports NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

from experiments.bench import datasets, frameworks, networks, processes
from experiments.bench.cases import gpt, mlp, tiny
from experiments.bench.contest import Build, Case, Contestant

BATCH, HIDDEN = 64, 1024
TURNS = 3


def builds(model: str) -> Mapping[str, Build]:
    """Contestants, as the child process builds them."""
    if model == "gpt":
        return gpt.case(BATCH).builds
    if model == "mlp":
        return mlp.case(HIDDEN, BATCH).builds
    return {
        "buropt": tiny.buropt,
        **frameworks.each(lambda peer: peer.value_and_grad(tiny.of_vector, tiny.POINT)),
    }


def read_data(model: str) -> None:
    """Read what the contestants of a model are given; it is kept."""
    if model == "gpt":
        networks.gpt_samples(BATCH, datasets.find("input.txt"))
    if model == "mlp":
        networks.mlp_samples(BATCH, datasets.find("names.txt"))


def cases(quick: bool) -> Iterator[Case]:
    """Import, three first gradients, memory."""
    yield _case("import", "import", "none", ("numpy", "buropt", *frameworks.FRAMEWORKS))
    yield _case("tiny gradient", "first", "tiny", ("buropt", *frameworks.FRAMEWORKS))
    for model in () if quick else ("mlp", "gpt"):
        yield _case(f"{model} gradient", "first", model, ("buropt", *frameworks.OF_ARRAYS))
    if not quick:
        yield _case(
            *("gpt memory", "peak_bytes", "gpt"), ("numpy", "buropt", *frameworks.OF_ARRAYS), "B"
        )


def _case(name: str, key: str, model: str, peers: tuple[str, ...], unit: str = "s") -> Case:
    return Case(
        *("startup", "", name),
        {
            peer: partial(_contestant, peer, "none" if peer == "numpy" else model, key)
            for peer in peers
        },
        reference="buropt",
        tolerance=1e-3,
        unit=unit,
        turns=TURNS,
        note="torch.compile finds its own compiled code on disk from the second process on",
    )


def _contestant(peer: str, model: str, key: str) -> Contestant:
    repeats = count()

    def run(repeat: int) -> dict[str, Any]:
        return processes.run("start", peer, model, repeat)

    def answer() -> Any:
        result = run(0)
        return result["answer"] if key == "first" else 0.0

    measure: Callable[[], float] = lambda: run(next(repeats))[key]  # noqa: E731
    return Contestant(lambda: None, answer, measure)
