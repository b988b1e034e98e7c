"""What a run shows and writes: progress lines, the curve, result.json."""

from __future__ import annotations

import io
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from buropt.budget import Budget
from buropt.history import History, Record
from buropt.optim import GD
from buropt.progress import Progress, format_bits, format_seconds
from buropt.result import jsonable, write_json
from buropt.screen import surviving_streams

PNG = b"\x89PNG\r\n\x1a\n"


# --- progress ---


def records(count: int) -> list[Record]:
    return [Record(k, 1.0, 0.5, 1.0 / (k + 1), k, k, 1e6 * k, 0.0, 1e-3 * k) for k in range(count)]


def test_a_pipe_gets_few_lines() -> None:
    screen = io.StringIO()
    with Progress(Budget(iterations=1000), Console(file=screen, width=80)) as progress:
        for record in records(1000):
            progress.update(record)
    assert screen.getvalue().count("\n") <= 2
    assert "\x1b" not in screen.getvalue()


def test_a_terminal_gets_one_line_redrawn_at_most_ten_times_a_second() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, color_system=None)
    started = time.perf_counter()
    with Progress(Budget(iterations=10**6), console) as progress:
        for record in records(1000):
            progress.update(record)
        progress.update(Record(999_999, 1.0, 1e-10, 1e-10, 1.0, 1, 1.23e12, 0.0, 1.0))
    elapsed = time.perf_counter() - started
    assert screen.getvalue().count("iter ") <= 10 * elapsed + 4
    last = screen.getvalue().rsplit("iter ", 1)[-1]
    for part in ("999999", "f - f* 1.0e-10", "|grad|^2 1.0e-10", "1.23 Tbit", "ETA"):
        assert part in last
    assert "…" not in last


def test_silence() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True)
    with Progress(Budget(iterations=9), console, enabled=False) as progress:
        progress.update(records(1)[0])
    assert screen.getvalue() == ""


def test_units() -> None:
    assert [format_bits(b) for b in (0, 999, 1984, 2.5e6, 3e15)] == [
        "0 bit",
        "999 bit",
        "1.98 kbit",
        "2.5 Mbit",
        "3e+03 Tbit",
    ]
    assert [format_seconds(s) for s in (0.04, 8.26, 59.99, 200, 7500)] == [
        "0.0 s",
        "8.3 s",
        "1:00",
        "3:20",
        "2:05:00",
    ]


# --- files ---


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 1.0, 1e-310, 1e300])
def test_a_curve_of_anything(value: float, tmp_path: Path) -> None:
    history = History()
    for number in range(3):
        history.append(Record(number, value, value, value, 1.0, 1, 0.0, 0.0, 0.0))
    history.plot(tmp_path / "curve.png", "title")
    assert (tmp_path / "curve.png").read_bytes()[:8] == PNG


def test_json_is_strict_and_complete(tmp_path: Path) -> None:
    content = {
        "nan": math.nan,
        "numbers": np.array([1.0, np.inf]),
        "scalar": np.float32(0.5),
        "count": np.int64(3),
        "record": records(1)[0],
        "method": GD(step_size=0.5),
        "path": Path("x"),
    }
    write_json(tmp_path / "r.json", content)
    back = json.loads((tmp_path / "r.json").read_text())
    assert back["nan"] is None
    assert back["numbers"] == [1.0, None]
    assert back["scalar"] == 0.5
    assert back["count"] == 3
    assert back["record"]["f"] == 1.0
    assert back["method"] == {"name": "GD", "step_size": 0.5, "step_size_factor": 1.0}
    assert back["path"] == "x"
    assert jsonable(True) is True


def test_a_result_is_replaced_at_once(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", {"a": 1})

    class Bomb:
        def __str__(self) -> str:
            raise RuntimeError("while writing")

    with pytest.raises(RuntimeError):
        write_json(tmp_path / "r.json", {"a": Bomb()})
    assert json.loads((tmp_path / "r.json").read_text()) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


# --- a console that fails ---


class Broken(io.StringIO):
    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_stream_that_fails_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Broken()
    monkeypatch.setattr(sys, "stdout", stream)
    with surviving_streams():
        console = Console()
        console.print("one")
        console.print("two")
    assert stream.getvalue() == "one\n"
    assert sys.stdout is stream


def test_a_stream_without_the_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    with surviving_streams():
        print("2 µs")
    assert stream.buffer.getvalue() == b"2 ?s\n"  # type: ignore[attr-defined]
