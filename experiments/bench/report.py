"""The report: tables on the screen and in Markdown, and the JSON file they come from."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.bench import bars, limits, tables
from experiments.bench.contest import Result
from experiments.bench.tables import Table, quantity


def lines(result: Result) -> Iterator[str]:
    """A case, as soon as it is done, and who cannot take part though installed."""
    own = result.times.get("buropt")
    if own is not None:
        ratio = tables.factor(result.ratio(result.best_peer or ""))
        best = f"; {ratio} {result.best_peer}" if ratio else ""
        yield f"{result.title}: {quantity(own / result.points, result.unit)}{best}"
    elif "buropt" not in result.skipped:
        yield f"{result.title}: answers agree"
    else:
        yield f"{result.title}: {result.skipped['buropt']}"
        return
    for reason in tables.excluded(result):
        yield f"{result.title}: without {reason}"


def all_tables(results: Sequence[Result]) -> Iterator[Table]:
    """Bars first, then the benchmarks, then rooflines."""
    outcomes = bars.outcomes(results)
    if outcomes:
        yield tables.of_bars(outcomes)
    yield from tables.of_benchmarks(results)
    roofline = tables.of_rooflines(outcomes)
    if roofline:
        yield roofline


def closing(results: Sequence[Result]) -> Iterator[str]:
    """Who was not there, and means."""
    missing = tables.not_installed(results)
    if missing:
        yield f"not installed: {', '.join(missing)}"
    not_measured = {
        f"{result.benchmark} is not measured: {result.skipped['buropt']}"
        for result in results
        if "buropt" in result.skipped
    }
    yield from sorted(not_measured)
    means = tables.means(results)
    if means:
        yield "geometric mean of buropt's time / the peer's: " + "; ".join(means)


def record(
    results: Sequence[Result], peaks: limits.Limits, options: dict[str, Any]
) -> dict[str, Any]:
    """Everything that was measured, for JSON."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": limits.machine(),
        "versions": limits.versions(),
        "limits": asdict(peaks),
        "options": {key: str(value) for key, value in options.items()},
        "bars": [outcome.record() for outcome in bars.outcomes(results)],
        "results": [asdict(result) for result in results],
    }


def write_json(content: dict[str, Any], path: Path) -> None:
    """As text that `read_json` reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def read_json(path: Path) -> tuple[dict[str, Any], list[Result]]:
    """The record, and its results."""
    content = json.loads(path.read_text())
    return content, [Result(**each) for each in content["results"]]


def peaks_text(peaks: dict[str, Any]) -> str:
    """The measured limits in one sentence."""
    flops = ", ".join(
        f"{speed / 1e9:.0f} Gflop/s {dtype}" for dtype, speed in peaks["flops"].items()
    )
    streams = ", ".join(
        f"{speed / 1e9:.0f} GB/s from {size / 2**20:.0f} MB" for size, speed in peaks["bandwidths"]
    )
    return f"{flops}; {streams}"
