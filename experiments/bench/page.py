"""Writes docs/performance.md from the JSON of a run.

python -m experiments.bench.page bench.json > docs/performance.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.bench import report
from experiments.bench.contest import Result


def tables(results: Sequence[Result]) -> str:
    """All tables, in Markdown."""
    return "\n".join(table.markdown() for table in report.all_tables(results))


def main() -> None:
    content, results = report.read_json(Path(sys.argv[1]))
    print(tables(results))


if __name__ == "__main__":
    main()
