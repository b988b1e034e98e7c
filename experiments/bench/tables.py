"""Results as tables: contestants as rows, cases as columns; bars; rooflines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from experiments.bench.bars import Outcome
from experiments.bench.contest import Result, geometric_mean

WIDTH = 80  # columns of a terminal
_UNITS = {
    "s": (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
    "J": (("J", 1.0), ("mJ", 1e-3), ("uJ", 1e-6), ("nJ", 1e-9)),
    "flop": (("Gflop", 1e9), ("Mflop", 1e6), ("kflop", 1e3), ("flop", 1.0)),
}


def quantity(value: float, unit: str = "s") -> str:
    """Three digits and a unit: 12.3 us."""
    units = _UNITS[unit]
    name, size = next((each for each in units if value >= each[1]), units[-1])
    number = value / size
    return f"{number:.0f} {name}" if number >= 100 else f"{number:.3g} {name}"


@dataclass
class Table:
    """Headers and cells; the first column is text, the others are numbers.

    Attributes
    ----------
    best : set of (row, column)
        Cells to stress.
    """

    title: str
    headers: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    best: set[tuple[int, int]] = field(default_factory=set)

    def markdown(self) -> str:
        """GitHub's kind of table, notes below."""
        lines = [_row(self.headers), _row(["---"] + ["--:"] * (len(self.headers) - 1))]
        for number, row in enumerate(self.rows):
            cells = [
                f"**{cell}**" if (number, column) in self.best else cell
                for column, cell in enumerate(row)
            ]
            lines.append(_row(cells))
        return "\n".join([f"**{self.title}**", "", *lines, "", *self.notes]).rstrip() + "\n"

    def text(self) -> str:
        """For a terminal of 80 columns: too many columns go below one another, headers wrap."""
        head = max(len(cell) for cell in [self.headers[0], *(row[0] for row in self.rows)])
        if len(self.rows[0]) > 1:
            head = min(head, 36)
        parts = [self.title]
        for columns in self._that_fit(WIDTH - head):
            widths = [head, *(self._width(column) for column in columns)]
            parts += ["", *_lines(self._cells(self.headers, columns), widths)]
            parts.append("-" * (sum(widths) + 2 * len(columns)))
            for row in self.rows:
                parts += _lines(self._cells(row, columns), widths)
        notes = [line for note in self.notes for line in textwrap.wrap(note, WIDTH)]
        return "\n".join([*parts, *notes]) + "\n"

    def _cells(self, row: Sequence[str], columns: Iterable[int]) -> list[str]:
        return [row[0], *(row[column] for column in columns)]

    def _width(self, column: int) -> int:
        cells = [row[column] for row in self.rows]
        words = self.headers[column].split()
        return max(len(text) for text in [*cells, *words])

    def _that_fit(self, space: int) -> list[list[int]]:
        groups: list[list[int]] = []
        left = -1
        for column in range(1, len(self.headers)):
            needed = self._width(column) + 2
            if needed > left:
                groups.append([])
                left = space
            groups[-1].append(column)
            left -= needed
        return groups


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _lines(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """One row of a table; a cell that is too long takes several lines."""
    wrapped = [
        textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)
    ]
    height = max(len(lines) for lines in wrapped)
    rows = []
    for number in range(height):
        texts = [lines[number] if number < len(lines) else "" for lines in wrapped]
        numbers = [f"{text:>{width}}" for text, width in zip(texts[1:], widths[1:], strict=True)]
        rows.append("  ".join([f"{texts[0]:<{widths[0]}}", *numbers]).rstrip())
    return rows


def of_benchmarks(results: Sequence[Result]) -> list[Table]:
    """A table for each benchmark and group."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.times:
            groups.setdefault((result.benchmark, result.group), []).append(result)
    return [_of_group(*key, group) for key, group in groups.items()]


def peers_of(results: Iterable[Result]) -> list[str]:
    """Contestants besides buropt that have times, in the order of their first case."""
    seen: dict[str, None] = {}
    for result in results:
        seen.update(dict.fromkeys(peer for peer in result.times if peer != "buropt"))
    return list(seen)


def _of_group(benchmark: str, group: str, results: list[Result]) -> Table:
    names = ["buropt", *peers_of(results)]
    rows, best = [], set()
    for number, name in enumerate(names):
        rows.append([name, *(_cell(result, name) for result in results)])
        for column, result in enumerate(results):
            if result.times and min(result.times, key=result.times.__getitem__) == name:
                best.add((number, column + 1))
    ratios = [result.ratio(result.best_peer or "") for result in results]
    if any(ratio == ratio for ratio in ratios):
        rows.append(["buropt / best peer", *(factor(ratio) for ratio in ratios)])
    if any(result.limit for result in results):
        rows.append(["machine's limit / buropt", *(_share(result) for result in results)])
    title = f"{benchmark}, {group}" if group else benchmark
    headers = [_measured(results), *(result.name for result in results)]
    return Table(title, headers, rows, _notes(results), best)


def _measured(results: Sequence[Result]) -> str:
    units = {result.unit for result in results}
    return {"s": "time", "J": "energy"}.get(units.pop(), "") if len(units) == 1 else ""


def _cell(result: Result, name: str) -> str:
    if name in result.times:
        return quantity(result.times[name] / result.points, result.unit)
    return "-" if name in result.skipped else ""


def factor(ratio: float) -> str:
    """0.12x; nothing for NaN."""
    if ratio != ratio:
        return ""
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def _share(result: Result) -> str:
    own = result.times.get("buropt")
    return f"{result.limit / own:.0%}" if own and result.limit else ""


def _notes(results: Sequence[Result]) -> list[str]:
    notes = list(dict.fromkeys(result.note for result in results if result.note))
    reasons: dict[str, list[str]] = {}
    for result in results:
        for reason in excluded(result):
            reasons.setdefault(reason, []).append(result.name)
    for reason, names in reasons.items():
        notes.append(reason if len(names) == len(results) else f"{', '.join(names)}: {reason}")
    return [f"- {note}." for note in notes]


def excluded(result: Result) -> list[str]:
    """Peers that are installed and did not take part, with reasons: "a, b: why"."""
    peers: dict[str, list[str]] = {}
    for peer, why in result.skipped.items():
        if not why.startswith("not installed"):
            peers.setdefault(why, []).append(peer)
    return [f"{', '.join(names)}: {why}" for why, names in peers.items()]


def of_bars(outcomes: Sequence[Outcome]) -> Table:
    """Every bar: what was measured, the limit, the aim, and whether they are met."""
    rows = []
    for outcome in outcomes:
        bar = outcome.bar
        text = bar.text
        if len(bar.cases) > 1 and outcome.worst:
            text += f" (worst: {outcome.worst})"
        against = outcome.peer or bar.peer
        aim = quantity(bar.aim_seconds) if bar.aim_seconds else _bound(bar.aim, bar.is_speedup)
        rows.append(
            [
                text,
                against,
                _bound(outcome.ratio, bar.is_speedup),
                _bound(bar.limit, bar.is_speedup),
                aim,
                _verdict(outcome),
            ]
        )
    headers = ["buropt's time / peer's time", "peer", "measured", "bar", "aim", "met"]
    notes = ["Threads: how many times faster two are than one, at least."]
    shown = notes if any(outcome.bar.is_speedup for outcome in outcomes) else []
    return Table("Bars", headers, rows, shown)


def _bound(ratio: float, is_speedup: bool) -> str:
    if not ratio or ratio != ratio:
        return "-"
    return f"{1 / ratio:.3g}x" if is_speedup else factor(ratio)


def _verdict(outcome: Outcome) -> str:
    if outcome.is_met is None:
        return "-"
    if outcome.is_aim_reached:
        return "aim"
    return "yes" if outcome.is_met else "NO"


def of_rooflines(outcomes: Sequence[Outcome]) -> Table | None:
    """For bars with known arithmetic and traffic: the machine's least time beside the bar's."""
    rows = []
    for outcome in outcomes:
        if not outcome.least:
            continue
        rows.append(
            [
                f"{outcome.bar.benchmark} {outcome.worst}",
                quantity(outcome.flops, "flop"),
                quantity(outcome.bytes, "B"),
                quantity(outcome.least),
                quantity(outcome.seconds),
                f"{outcome.least / outcome.seconds:.0%}",
                quantity(outcome.bar.limit * outcome.peer_seconds),
                "yes" if outcome.is_possible else "NO",
            ]
        )
    if not rows:
        return None
    headers = ["case of a bar", "work", "traffic", "least", "buropt", "share", "bar's", "possible"]
    notes = [
        "Least: the time that work or traffic takes at the measured peaks, whichever is longer. "
        "Possible: the least time is below the bar's."
    ]
    return Table("Rooflines", headers, rows, notes)


def means(results: Sequence[Result]) -> list[str]:
    """The geometric mean of the ratios to each peer, over the cases that both have."""
    lines = []
    timed = [result for result in results if result.unit == "s" and result.benchmark != "threads"]
    for peer in peers_of(timed):
        if peer.startswith("buropt"):
            continue
        ratios = [ratio for result in timed if (ratio := result.ratio(peer)) == ratio]
        if ratios:
            lines.append(f"{peer}: {geometric_mean(ratios):.3g}x over {len(ratios)} cases")
    return lines


def not_installed(results: Sequence[Result]) -> list[str]:
    """Peers that are missing here."""
    return sorted(
        {
            peer
            for result in results
            for peer, why in result.skipped.items()
            if why.startswith("not installed")
        }
    )
