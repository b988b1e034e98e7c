"""The command line: `python -m buropt.report FOLDER`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from buropt.report.write import PAGE, write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page that the command line asks for; the exit code: 1 for damaged files."""
    parser = argparse.ArgumentParser(
        prog="python -m buropt.report",
        description="One HTML page, for any browser and without a network, about a run or a sweep.",
    )
    parser.add_argument("folder", help="of a run or a sweep, as under outputs/ and multirun/")
    parser.add_argument("--out", help=f"file to write (default: {PAGE} in the folder)")
    parser.add_argument("--title", default="", help="heading (default: from the folder's path)")
    asked = parser.parse_args(arguments)
    try:
        page = write_report(asked.folder, asked.out, asked.title)
    except (ValueError, OSError) as error:
        print(f"buropt.report: {error}", file=sys.stderr)
        return 1 if isinstance(error, ValueError) else 2
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
