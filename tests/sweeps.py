"""Tests read folders of runs as `buropt.run` writes them; these are made up in a moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buropt.history import Record

COMMAND = ["python", "-m", "buropt.run", "-m", "optimizer=gd,marina", "seed=0,1,2"]


def records(rate: float = 0.5, n: int = 21, bits: float = 64.0) -> list[Record]:
    """Linear convergence: f - f* = rate^k."""
    found = []
    for k in range(n):
        gap, time = rate**k, 0.01 * k
        found.append(Record(k, 1 + gap, gap, gap**2, k, k, bits * k, 32.0 * k, time, gap))
    return found


def write_run(
    folder: Path,
    config: Mapping[str, Any],
    history: list[Record],
    *,
    status: str | None = "budget:iterations",
    choices: Mapping[str, str] | None = None,
    message: str = "the budget is used up",
) -> Path:
    """A run's folder; `status=None` is one that was killed."""
    (folder / ".hydra").mkdir(parents=True)
    chosen = {"optimizer": "gd", "problem": "logistic", "data": "digits", "hydra/env": "default"}
    chosen |= choices or {}
    lines = [f"      {group}: {name}\n" for group, name in chosen.items()]
    (folder / ".hydra" / "hydra.yaml").write_text(
        "hydra:\n  help:\n    template: 'choices:\n\n      a: b'\n  runtime:\n    version: 1.3.2\n"
        f"    choices:\n{''.join(lines)}  verbose: false\n"
    )
    text = "".join(record.as_json() + "\n" for record in history)
    (folder / "history.jsonl").write_text(text)
    about = {"config": config, "command": COMMAND, "versions": {"buropt": "1"}}
    if status is None:
        (folder / "run.json").write_text(json.dumps({"format": "buropt run", **about}))
    else:
        content = {"status": status, "message": message, "started": "2025-01-31T12:00:00", **about}
        (folder / "result.json").write_text(json.dumps(content))
    return folder


def config_of(step: float = 1.0, seed: int = 0, **more: Any) -> dict[str, Any]:
    """A small resolved configuration, with references that repeat values."""
    k = more.pop("k", 5)
    compressor = {"_target_": "buropt.compressors.RandK", "k": k}
    return {
        "problem": {"_target_": "buropt.problems.logistic", "seed": seed},
        "compressor": compressor,
        "optimizer": {"_target_": "buropt.optim.GD", "step": step, "compressor": compressor},
        "prox": {},
        "seed": seed,
        "verbose": False,
        **more,
    }
