"""An MLP that predicts the next character of a name: one SGD step, float32.

The model is in `networks`; the BurTorch paper (arXiv 2503.13795) has it with 5 963 to 1 079 003
parameters. The step is x <- x - 0.1 g, and takes part in the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from experiments.bench import datasets, frameworks, networks
from experiments.bench.contest import Case, Contestant

HIDDEN = (4, 16, 64, 128, 256, 512, 1024)
BATCHES = (1, 16, 64)


def cases(quick: bool) -> Iterator[Case]:
    """Every width, every batch size."""
    for batch in BATCHES:
        for hidden in HIDDEN[:2] if quick else HIDDEN:
            yield case(hidden, batch)


def case(hidden: int, batch: int) -> Case:
    """One of them."""
    n_inputs = networks.MLP_CONTEXT * networks.MLP_WIDTH
    n_first, n_second = n_inputs * hidden, hidden * networks.MLP_VOCABULARY
    # The first layer's rows are those of the vocabulary, however many samples there are.
    n_rows = min(batch, networks.MLP_VOCABULARY)
    return Case(
        *("mlp", f"batch {batch}", f"hidden={hidden}"),
        {
            "buropt": partial(buropt, hidden, batch),
            **frameworks.each(partial(peer, hidden, batch), frameworks.OF_ARRAYS),
        },
        reference="torch",
        tolerance=2e-4,
        flops=6.0 * (n_first * n_rows + n_second * batch),
        bytes=8.0 * (n_first + n_second),  # weights are read and written
        dtype="float32",
        parameters={"hidden": hidden, "batch": batch},
        note="text: " + ("names.txt" if _names() else "random characters"),
    )


def _names() -> Any:
    return datasets.find("names.txt")


def buropt(hidden: int, batch: int, threads: int | None = None) -> Contestant:
    import buropt as bo
    from buropt.nn import models
    from experiments.bench import own

    data = networks.mlp_samples(batch, _names())
    params = networks.mlp_parameters(hidden)
    oracle = bo.compile(models.mlp_loss, params, data=data, threads=threads)
    return own.step(oracle, networks.MLP_STEP_SIZE)


def peer(hidden: int, batch: int, framework: frameworks.Framework) -> Contestant:
    data = [framework.array(part) for part in networks.mlp_samples(batch, _names())]
    params = networks.mlp_parameters(hidden)
    return framework.step(networks.mlp_loss, params, networks.MLP_STEP_SIZE, data)
