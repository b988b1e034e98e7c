"""The table on the screen, the JSON file and the picture."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import buropt as bo
from experiments.bench import limits
from experiments.bench.contest import Result, geometric_mean

_CONSOLE = Console()


def duration(seconds: float) -> str:
    """Three digits and a unit: 12.3 us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def line(result: Result) -> None:
    """Report a case as soon as it is done."""
    own = result.times.get("buropt")
    text = "answers agree" if own is None else duration(own / result.points)
    _CONSOLE.print(f"{result.benchmark} {result.name}: {text}", highlight=False)


def table(results: Sequence[Result]) -> None:
    """Times, the ratio to the best peer, and the share of the machine's limit."""
    peers = _peers(results)
    grid = Table(box=SIMPLE_HEAD, title="time of a call; x: buropt's time / the peer's")
    for header in ("benchmark", "case", "buropt", "limit", *peers, "best peer"):
        grid.add_column(header, justify="left" if header in ("benchmark", "case") else "right")
    for result in results:
        grid.add_row(
            result.benchmark,
            result.name,
            _own(result),
            _share(result),
            *(_cell(result, peer) for peer in peers),
            _best(result),
        )
    _CONSOLE.print(grid)
    for reason in sorted({f"{peer}: {why}" for r in results for peer, why in r.skipped.items()}):
        _CONSOLE.print(f"skipped {reason}", highlight=False)
    ratios = [r.ratio(r.best_peer) for r in results if r.best_peer is not None]
    ratios = [ratio for ratio in ratios if math.isfinite(ratio)]
    if ratios:
        _CONSOLE.print(
            f"geometric mean of the ratios to the best peer: {geometric_mean(ratios):.3g}x"
        )


def write(
    results: Sequence[Result], peaks: limits.Limits | None, options: dict[str, Any], folder: Path
) -> None:
    """Write bench.json and bench.png."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "machine": limits.machine(),
        "buropt": bo.__version__,
        "limits": None if peaks is None else peaks._asdict(),
        "options": {key: str(value) for key, value in options.items()},
        "results": [asdict(result) for result in results],
    }
    (folder / "bench.json").write_text(json.dumps(record, indent=1))
    _draw(results, folder / "bench.png")


def _peers(results: Sequence[Result]) -> list[str]:
    seen: dict[str, None] = {}
    for result in results:
        seen.update(dict.fromkeys(peer for peer in result.times if peer != "buropt"))
    return list(seen)


def _own(result: Result) -> str:
    own = result.times.get("buropt")
    return "" if own is None else duration(own / result.points)


def _share(result: Result) -> str:
    own = result.times.get("buropt")
    return f"{result.limit / own:.0%}" if own and result.limit else ""


def _cell(result: Result, peer: str) -> str:
    if peer not in result.times:
        return "-" if peer in result.skipped else ""
    return f"{duration(result.times[peer] / result.points)} ({result.ratio(peer):.2g}x)"


def _best(result: Result) -> str:
    peer = result.best_peer
    return "" if peer is None else f"{result.ratio(peer):.2g}x {peer}"


def _draw(results: Sequence[Result], path: Path) -> None:
    """Each case a row: the time of every contestant as a multiple of buropt's."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [result for result in results if "buropt" in result.times]
    figure, axes = plt.subplots(figsize=(8, 1 + 0.28 * len(rows)), layout="constrained")
    for number, peer in enumerate(_peers(rows)):
        points = [
            (1 / row.ratio(peer), y) for y, row in enumerate(rows) if math.isfinite(row.ratio(peer))
        ]
        axes.plot(*zip(*points, strict=True), "o", label=peer, color=f"C{number % 10}")
    axes.axvline(1, color="black", linewidth=1, label="buropt")
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [f"{row.benchmark} {row.name}" for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time / buropt's time (right of the line: slower)")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="best", fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)
