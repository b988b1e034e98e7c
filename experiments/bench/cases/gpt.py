"""A GPT of 46 337 parameters over characters: one SGD step, float32.

The model is in `networks`; it is the one of the BurTorch paper (arXiv 2503.13795). The step is
x <- x - 3e-4 g, and takes part in the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from experiments.bench import datasets, frameworks, networks
from experiments.bench.contest import Case, Contestant

BATCHES = (1, 2, 4, 8, 16, 32, 64)
FLOPS_PER_TOKEN = 258_192.0  # forward, and both products of every backward one
N_PARAMETERS = 46_337


def cases(quick: bool) -> Iterator[Case]:
    """Every batch size."""
    for batch in BATCHES[:2] if quick else BATCHES:
        yield case(batch)


def case(batch: int) -> Case:
    """One of them."""
    return Case(
        *("gpt", "", f"batch={batch}"),
        {
            "buropt": partial(buropt, batch),
            **frameworks.each(partial(peer, batch), frameworks.OF_ARRAYS),
        },
        reference="torch",
        tolerance=2e-4,
        flops=FLOPS_PER_TOKEN * networks.GPT_CONTEXT * batch,
        bytes=8.0 * N_PARAMETERS,
        dtype="float32",
        parameters={"batch": batch},
        note="text: " + ("tiny Shakespeare" if _text() else "random characters"),
    )


def _text() -> Any:
    return datasets.find("input.txt")


def buropt(batch: int, threads: int | None = None) -> Contestant:
    import buropt as bo
    from buropt.nn import models
    from experiments.bench import own

    loss = partial(models.gpt_loss, n_heads=networks.GPT_HEADS)
    data = networks.gpt_samples(batch, _text())
    oracle = bo.compile(loss, networks.gpt_parameters(), data=data, threads=threads)
    return own.step(oracle, networks.GPT_STEP_SIZE)


def peer(batch: int, framework: frameworks.Framework) -> Contestant:
    data = [framework.array(part) for part in networks.gpt_samples(batch, _text())]
    params = networks.gpt_parameters()
    return framework.step(networks.gpt_loss, params, networks.GPT_STEP_SIZE, data)
