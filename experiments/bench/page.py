"""Writes docs/performance.md from the JSON of a run; the text around the tables is in page.md.

python -m experiments.bench.page bench.json > docs/performance.md

Of several files the later ones replace cases of the earlier ones; they must be of one machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from experiments.bench import bars, cases, report, tables
from experiments.bench.contest import Result


def all_tables(results: Sequence[Result]) -> str:
    """In Markdown."""
    return "\n".join(table.markdown() for table in report.all_tables(results))


def page(content: dict[str, Any], results: Sequence[Result]) -> str:
    """The whole page."""
    outcomes = bars.outcomes(results)
    rooflines = tables.of_rooflines(outcomes)
    parts = {
        "machine": _machine(content),
        "bars": tables.of_bars(outcomes).markdown(),
        "rooflines": rooflines.markdown() if rooflines else "",
        "tables": "\n".join(table.markdown() for table in tables.of_benchmarks(results)),
        "closing": "\n".join(f"- {sentence}." for sentence in report.closing(results)),
    }
    return Template(Path(__file__).with_name("page.md").read_text()).substitute(parts)


def _machine(content: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {each}" for name, each in content["versions"].items())
    rows = {
        "date": content["date"],
        **content["machine"],
        "packages": versions,
        "measured peaks, one thread": report.peaks_text(content["limits"]),
        "turns": f"{content['options']['turns']} of {content['options']['seconds']} s",
    }
    lines = [f"| {key} | {value} |" for key, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines, ""])


def merged(paths: Sequence[Path]) -> tuple[dict[str, Any], list[Result]]:
    """The last record, and the results of all, each case from the last file that has it."""
    found: dict[str, Result] = {}
    content: dict[str, Any] = {}
    for path in paths:
        content, results = report.read_json(path)
        found.update({result.title: result for result in results})
    order = {name: k for k, name in enumerate(cases.NAMES)}
    return content, sorted(found.values(), key=lambda result: order[result.benchmark])


def main() -> None:
    """Print the page of JSON files."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m experiments.bench.page bench.json ...")
    print(page(*merged([Path(name) for name in sys.argv[1:]])), end="")


if __name__ == "__main__":
    main()
