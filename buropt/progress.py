"""What a person sees while a run goes: one live line, or a few plain ones off a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from buropt.budget import Budget
    from buropt.history import Record

REFRESH_SECONDS = 0.1


class Progress:
    """Shows records as they come; use as a context manager around the loop and pass `update` to it.

    On a terminal, and below the cell of a notebook, the line is redrawn at most ten times a second.
    Elsewhere (a file, a pipe, a batch job) a plain line is printed at the start and then after 1,
    2, 4, 8, ... seconds, so a log stays short.

    Parameters
    ----------
    budget : Budget
        What is left of it gives the time that remains.
    console : Console, optional
        Standard output by default.
    enabled : bool
    """

    def __init__(
        self, budget: Budget, console: Console | None = None, enabled: bool = True
    ) -> None:
        self._budget = budget
        self._console = Console() if console is None else console
        self._enabled = enabled
        self._live: Live | None = None
        self._cell: Any = None  # a notebook's display
        self._first: Record | None = None
        self._last: Record | None = None
        self._started = time.perf_counter()
        self._due = 0.0

    def __enter__(self) -> Progress:
        self._started = time.perf_counter()
        console = self._console
        if self._enabled and console.is_terminal and not console.is_dumb_terminal:
            self._live = Live(console=console, auto_refresh=False, transient=False)
            self._live.start()
        elif self._enabled and console.is_jupyter:
            from IPython.display import display

            self._cell = display(_mime(Text("")), raw=True, display_id=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            if self._last is not None:
                self._live.update(self._line(self._last), refresh=True)
            self._live.stop()
            self._live = None
        if self._cell is not None and self._last is not None:
            self._cell.update(_mime(self._line(self._last)), raw=True)
            self._cell = None

    def update(self, record: Record) -> None:
        """Take note of a record; draws only when it is time to, so a call is cheap."""
        if not self._enabled:
            return
        if self._first is None:
            self._first = record
        self._last = record
        elapsed = time.perf_counter() - self._started
        if elapsed < self._due:
            return
        if self._live is not None:
            self._live.update(self._line(record), refresh=True)
            self._due = elapsed + REFRESH_SECONDS
        elif self._cell is not None:
            self._cell.update(_mime(self._line(record)), raw=True)
            self._due = elapsed + REFRESH_SECONDS
        else:
            self._console.print(self._line(record), soft_wrap=True)
            self._due = max(1.0, 2 * elapsed)

    def _line(self, record: Record) -> Text:
        """Fits 80 columns up to a million iterations."""
        elapsed = time.perf_counter() - self._started
        gap = f"f - f* {record.f_gap:.1e}" if record.f_gap is not None else f"f {record.f:.6g}"
        parts = [
            f"iter {record.iteration}",
            gap,
            f"|grad|^2 {record.grad_norm_sq:.1e}",
            format_bits(record.bits_up),
            format_seconds(elapsed),
        ]
        remaining = self._remaining(record, elapsed)
        if remaining is not None:
            parts.append(f"ETA {format_seconds(remaining)}")
        return Text("  ".join(parts), no_wrap=True, overflow="ellipsis")

    def _remaining(self, record: Record, elapsed: float) -> float | None:
        if self._first is None or record.iteration == self._first.iteration:
            return None
        fraction = self._budget.fraction(self._first, record)
        return elapsed * (1 - fraction) / fraction if fraction > 0 else None


def _mime(line: Text) -> dict[str, str]:
    """What IPython displays."""
    return {"text/plain": line.plain}


def summary_table(rows: list[tuple[str, str]], title: str) -> Table:
    """The short table at the end of a run."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def format_bits(bits: float) -> str:
    """Bits for people, in decimal units: 12.3 Mbit."""
    for unit in ("bit", "kbit", "Mbit", "Gbit", "Tbit"):
        if bits < 1000 or unit == "Tbit":
            break
        bits /= 1000
    return f"{bits:.0f} {unit}" if unit == "bit" else f"{bits:.3g} {unit}"


def format_seconds(seconds: float) -> str:
    """A duration for people: 8.3 s, 3:20 (minutes), 2:05:00 (hours)."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
