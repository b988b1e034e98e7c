"""What a person sees while a sweep goes: a bar for all jobs, and a line for each that is running.

The jobs, which may run in other processes or on other machines, are watched through the files in
their folders alone.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from buropt.budget import Budget
from buropt.folder import FAILED, HISTORY, OVERRIDES, REFUSED, RESULT, RUN
from buropt.history import Record, parse_record
from buropt.progress import format_bits, format_seconds

POLL_SECONDS = 0.5
MOST_OF_THE_TIME = 0.02  # that goes into looking
TAIL = 4096  # bytes at the end of a history that hold its last line
BAR = 20  # characters


class Job:
    """A job of a sweep, as far as its folder tells.

    Attributes
    ----------
    name : str
        Of its folder: the job's number, unless hydra.sweep.subdir says something else.
    result : dict or None
        Once it has ended.
    """

    def __init__(self, folder: Path, root: Path, constant: frozenset[str]) -> None:
        self.name = str(folder.relative_to(root))
        self.result: dict[str, Any] | None = None
        self._folder = folder
        self._constant = constant
        self._first: Record | None = None
        self._last: Record | None = None

    def look(self) -> None:
        """Read what is new."""
        refused, result = (read_object(self._folder / name) for name in (REFUSED, RESULT))
        self.result = result if refused is None else refused
        history = self._folder / HISTORY
        try:
            if self._first is None:
                with history.open(encoding="utf-8") as file:
                    self._first = parse_record(file.readline())
            self._last = last_record(history)
        except (OSError, ValueError):  # it has no whole line yet
            pass

    @property
    def failed(self) -> bool:
        """Whether it ended in another way than its budget says."""
        return self.result is not None and self.result.get("exit_code", 0) != 0

    @property
    def title(self) -> str:
        """The job's number and what of its configuration is swept."""
        path = self._folder / ".hydra" / OVERRIDES
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        words = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        swept = [word for word in words if word.partition("=")[0] not in self._constant]
        return " ".join([f"#{self.name}", *swept])

    def fraction(self) -> float:
        """How much of it is done."""
        if self.result is not None:
            return 1.0
        about = read_object(self._folder / RUN)
        if about is None or self._first is None or self._last is None:
            return 0.0
        names = [field.name for field in fields(Budget)]
        budget = Budget(**{name: about["config"].get(name) for name in names})
        return budget.fraction(self._first, self._last)

    def line(self) -> str:
        """The job in a line: where it stands, or how it ended."""
        if self.result is not None and self.result.get("status") == FAILED:
            return f"{self.title}: {self.result['message']}"
        parts = [self.title]
        if self.result is not None:
            parts[0] += f": {self.result['message']}"
        record = self._last
        if record is not None and not self.failed:
            gap = f"f {record.f:.6g}" if record.f_gap is None else f"f - f* {record.f_gap:.1e}"
            parts += [gap, format_bits(record.bits_up)]
        if record is not None and self.result is None:
            parts += [f"iter {record.iteration}", f"{100 * self.fraction():.0f} %"]
        return "  ".join(parts)


class Monitor:
    """Watches the jobs of a sweep and shows them; a context manager.

    On a terminal, bar and lines are redrawn; elsewhere there is a plain line for every job that
    has ended. Failures are told in any case, on the standard error stream.

    Parameters
    ----------
    folder : Path
        Of the sweep.
    total : int, optional
        Number of jobs, where it is known.
    constant : frozenset of str
        Keys that the command line sets to one value for all jobs.
    enabled : bool
        False: show nothing but failures, and those at the end.
    console, errors : Console, optional
    """

    def __init__(
        self,
        folder: Path,
        total: int | None,
        constant: frozenset[str],
        enabled: bool = True,
        console: Console | None = None,
        errors: Console | None = None,
    ) -> None:
        self._folder = folder.absolute()  # jobs may change the working directory
        self._total, self._constant = total, constant
        self._enabled = enabled
        self._console = Console() if console is None else console
        self._errors = Console(stderr=True) if errors is None else errors
        self._running: dict[Path, Job] = {}
        self._ended: dict[Path, Job] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._live: Live | None = None
        self._started = time.perf_counter()
        self._before: dict[Path, Any] = {}  # jobs that had ended, until they go on or are refused
        self._known = set[Path]()

    def __enter__(self) -> Monitor:
        self._look(tell=False)
        self._before = {folder: stamp(folder) for folder in self._ended}
        self._known = set(self._running)
        if self._enabled:
            if self._console.is_terminal and not self._console.is_dumb_terminal:
                self._live = Live(console=self._console, auto_refresh=False)
                self._live.start()
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self._stop.is_set():
            return
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._look(tell=True)
        none = self._running.keys() <= self._known and self._ended.keys() == self._before.keys()
        refused = error is not None and none
        if self._live is not None:
            self._live.transient = refused  # then the reason says it all
            self._live.update(self._picture(), refresh=True)
            self._live.stop()
        elif self._enabled and not refused:
            self._console.print(self._bar(), soft_wrap=True, highlight=False, markup=False)

    def _watch(self) -> None:
        pause = 0.0
        while not self._stop.wait(max(POLL_SECONDS, pause)):
            started = time.perf_counter()
            self._look(tell=True)
            if self._live is not None:
                self._live.update(self._picture(), refresh=True)
            pause = (time.perf_counter() - started) / MOST_OF_THE_TIME

    def _look(self, tell: bool) -> None:
        for folder in [path for path, then in self._before.items() if stamp(path) != then]:
            del self._before[folder], self._ended[folder]
        for folder in jobs_in(self._folder, self._ended):
            job = self._running.setdefault(folder, Job(folder, self._folder, self._constant))
            job.look()
            if job.result is None:
                continue
            self._ended[folder] = self._running.pop(folder)
            if tell and job.failed:
                self._errors.print(
                    f"buropt: job {job.line()}", soft_wrap=True, highlight=False, markup=False
                )
            elif tell and self._enabled and self._live is None:
                line = f"{self._bar()}  {job.line()}"
                self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    def _picture(self) -> Group:
        room = max(1, self._console.height - 3)
        running = list(self._running.values())
        lines = [job.line() for job in running[:room]]
        if len(running) > room:
            lines.append(f"and {len(running) - room} more")
        style = {"no_wrap": True, "overflow": "ellipsis"}
        return Group(*(Text(line, **style) for line in [*lines, self._bar()]))  # type: ignore[arg-type]

    def _bar(self) -> str:
        elapsed = time.perf_counter() - self._started
        ended, failed = len(self._ended), sum(job.failed for job in self._ended.values())
        parts = [f"{ended} jobs"]
        remaining = None
        if self._total is not None:
            total = max(self._total, ended)
            done = ended + sum(job.fraction() for job in self._running.values())
            full = round(BAR * done / total) if total else BAR
            parts = [f"[{'#' * full}{'-' * (BAR - full)}] {ended}/{total} jobs"]
            here = done - len(self._before)
            remaining = elapsed * (total - done) / here if here > 0 else None
        if self._running and not self._stop.is_set():
            parts.append(f"{len(self._running)} running")
        if failed:
            parts.append(f"{failed} failed")
        parts.append(format_seconds(elapsed))
        if remaining:
            parts.append(f"ETA {format_seconds(remaining)}")
        return "  ".join(parts)


def jobs_in(folder: Path, known: dict[Path, Job]) -> Iterator[Path]:
    """Folders of runs below `folder`, 2 before 10; those that are known aside."""
    places = [folder]
    while places:
        entries = os.scandir(places.pop())
        for entry in sorted(entries, key=lambda entry: (len(entry.name), entry.name)):
            if entry.name.startswith(".") or not entry.is_dir() or Path(entry.path) in known:
                continue
            path = Path(entry.path)
            if (path / RUN).exists() or (path / RESULT).exists():
                yield path
            else:
                places.append(path)


def stamp(folder: Path) -> list[int | None]:
    """What changes when a job that had ended goes on with a larger budget, or is refused."""
    times: list[int | None] = []
    for name in (RESULT, REFUSED):
        try:
            times.append((folder / name).stat().st_mtime_ns)
        except OSError:
            times.append(None)
    return times


def last_record(history: Path) -> Record:
    """The last whole line of a history.

    Raises
    ------
    ValueError
        If there is none.
    """
    with history.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        lines = file.read().split(b"\n")
    if len(lines) < 2:
        raise ValueError(f"{history} has no whole line")
    return parse_record(lines[-2].decode())


def read_object(path: Path) -> dict[str, Any] | None:
    """A JSON file that is replaced as a whole; None if it is not there, or something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
