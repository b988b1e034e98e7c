"""The picture: a panel for each benchmark, a row for each case, a mark for each contestant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.bench.contest import Result
from experiments.bench.tables import peers_of

_MARKS = "os^Dv<>PX*phd"


def draw(results: Sequence[Result], path: Path) -> None:
    """Write a PNG: how many times as long as buropt every peer takes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    rows = [r for r in results if r.best_peer and "buropt" in r.times and r.benchmark != "threads"]
    if not rows:
        return
    peers = [peer for peer in peers_of(rows) if not peer.startswith("buropt")]
    styles = {
        peer: (f"C{k % 10}" if k < 10 else "black", _MARKS[k % len(_MARKS)])
        for k, peer in enumerate(peers)
    }
    columns = _columns(rows)
    height = 2.2 + 0.23 * max(sum(len(panel) + 3 for panel in column) for column in columns)
    figure = plt.figure(figsize=(6.5 * len(columns), height), layout="constrained")
    for parent, panels in zip(
        figure.subfigures(1, len(columns), squeeze=False)[0], columns, strict=True
    ):
        ratios = [len(panel) + 2 for panel in panels]
        axes = parent.subplots(len(panels), 1, squeeze=False, height_ratios=ratios)[:, 0]
        for axis, panel in zip(axes, panels, strict=True):
            _panel(axis, panel, styles)
    marks = [
        Line2D([], [], color=color, marker=mark, linestyle="", label=peer)
        for peer, (color, mark) in styles.items()
    ]
    figure.legend(
        handles=marks,
        loc="outside upper center",
        ncols=min(7, len(marks)),
        fontsize="small",
        title="time / buropt's time (right of the line: slower than buropt)",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _columns(rows: list[Result]) -> list[list[list[Result]]]:
    """Benchmarks in two columns of about the same height, in one if there are few."""
    panels: dict[str, list[Result]] = {}
    for row in rows:
        panels.setdefault(row.benchmark, []).append(row)
    if len(panels) < 3:
        return [list(panels.values())]
    columns: list[list[list[Result]]] = [[], []]
    sizes = [0, 0]
    for panel in sorted(panels.values(), key=len, reverse=True):
        shorter = sizes.index(min(sizes))
        columns[shorter].append(panel)
        sizes[shorter] += len(panel) + 3
    return columns


def _panel(axis: Any, rows: list[Result], styles: dict[str, tuple[str, str]]) -> None:
    for peer, (color, mark) in styles.items():
        points = [
            (1 / row.ratio(peer), y) for y, row in enumerate(rows) if math.isfinite(row.ratio(peer))
        ]
        if points:
            axis.plot(*zip(*points, strict=True), mark, color=color, markersize=5, alpha=0.85)
    axis.axvline(1, color="black", linewidth=1)
    axis.set_xscale("log")
    names = [f"{row.group} {row.name}".strip() for row in rows]
    axis.set_yticks(range(len(rows)), names, fontsize="x-small")
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.tick_params(axis="x", labelsize="x-small")
    axis.set_title(rows[0].benchmark, fontsize="small", loc="left", pad=3)
    axis.grid(alpha=0.3)
