"""The command line: `python -m buropt.plot FOLDER --x bits --y grad_norm_sq --out fig.pdf`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from buropt.axes import ALIASES, COSTS, MEASURES
from buropt.plot.figure import DPI, HEIGHT, WIDTH, plot_runs
from buropt.results import read_runs
from buropt.series import select


def parser() -> argparse.ArgumentParser:
    """What the command line may hold."""
    short = ", ".join(f"{alias} = {name}" for alias, name in ALIASES.items())
    found = argparse.ArgumentParser(
        prog="python -m buropt.plot",
        description="A publication figure of a run or a sweep: mean and band over seeds.",
        epilog=f"Short names: {short}.",
    )
    found.add_argument("folder", help="of a run or a sweep, as under outputs/ and multirun/")
    found.add_argument("--out", required=True, help="file to write: .pdf, .png, .svg or .eps")
    found.add_argument("--x", default="bits", help=f"{', '.join(COSTS)} (default: bits)")
    found.add_argument(
        "--y",
        nargs="+",
        default=["grad_norm_sq"],
        help=f"{', '.join(MEASURES)}: one panel each (default: grad_norm_sq)",
    )
    found.add_argument("--hue", metavar="KEY", help="colour by this setting, e.g. optimizer")
    found.add_argument("--panels", metavar="KEY", help="a panel for each value of this setting")
    found.add_argument(
        "--filter",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="only runs with this setting; several values: compressor.k=1,5",
    )
    found.add_argument("--title", default="")
    found.add_argument("--logx", action="store_true", help="logarithmic x axis")
    found.add_argument("--liny", action="store_true", help="linear y axis, arithmetic mean")
    found.add_argument(
        "--band",
        choices=("range", "deviation", "none"),
        default="range",
        help="over seeds: least to largest, or one standard deviation (default: range)",
    )
    found.add_argument("--no-legend", action="store_true")
    found.add_argument(
        "--size",
        nargs=2,
        type=float,
        metavar=("WIDTH", "HEIGHT"),
        default=(WIDTH, HEIGHT),
        help=f"of a panel in inches (default: {WIDTH} {HEIGHT})",
    )
    found.add_argument("--dpi", type=int, default=DPI, help=f"of a .png (default: {DPI})")
    return found


def filters_of(words: Sequence[str]) -> dict[str, list[str]]:
    """KEY=VALUE,VALUE words by key.

    Raises
    ------
    ValueError
        For a word without =.
    """
    found: dict[str, list[str]] = {}
    for word in words:
        key, equals, values = word.partition("=")
        if not equals:
            raise ValueError(f"--filter {word}: write key=value, for example optimizer=marina")
        found.setdefault(key, []).extend(values.split(","))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw what the command line says; the exit code."""
    asked = parser().parse_args(arguments)
    try:
        runs = select(read_runs(asked.folder), filters_of(asked.filter))
        plot_runs(
            runs,
            asked.out,
            x=asked.x,
            y=asked.y,
            hue=asked.hue,
            panels=asked.panels,
            title=asked.title,
            log_x=asked.logx,
            log_y=not asked.liny,
            band=asked.band,
            legend=not asked.no_legend,
            size=tuple(asked.size),
            dpi=asked.dpi,
        )
    except (ValueError, OSError) as error:
        print(f"buropt.plot: {error}", file=sys.stderr)
        return 2
    print(asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
