"""The record of a run: columns, files, damage."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from buropt.history import History, Record

RECORD = Record(0, 0.5, 0.25, 1e-3, 1.0, 1, 1984.0, 0.0, 1e-05, 4.0)
KEYS = [
    "iteration",
    "f",
    "f_gap",
    "grad_norm_sq",
    "epochs",
    "oracle_calls",
    "bits_up",
    "bits_down",
    "seconds",
    "distance_sq",
]


def written(path: Path, records: list[Record]) -> Path:
    with History.create(path) as history:
        for record in records:
            history.append(record)
    return path


def test_lines_are_strict_json_with_exactly_these_keys(tmp_path: Path) -> None:
    records = [
        RECORD,
        Record(1, math.inf, None, math.nan, 2.0, 2, 1e300, 5e-324, 0.1 + 0.2),
        Record(10**12, -math.inf, -1e-17, 0.0, np.float64(0.1), 3, np.float32(0.5), 64, 3),  # type: ignore[arg-type]
    ]
    lines = written(tmp_path / "h.jsonl", records).read_text().splitlines()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [list(row) for row in rows] == [KEYS] * 3
    assert rows[0] == dict(zip(KEYS, RECORD, strict=True))
    assert rows[1]["f"] is None
    assert rows[1]["f_gap"] is None
    assert rows[1]["grad_norm_sq"] is None
    assert rows[1]["bits_up"] == 1e300
    assert rows[1]["bits_down"] == 5e-324
    assert rows[1]["seconds"] == 0.1 + 0.2
    assert rows[2]["epochs"] == 0.1
    assert rows[2]["iteration"] == 10**12


def test_a_line_is_in_the_file_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    with History.create(path) as history:
        assert path.read_text() == ""
        for number in range(1, 4):
            history.append(RECORD)
            assert path.read_text().count("\n") == number


def test_columns_come_back(tmp_path: Path) -> None:
    records = [RECORD, RECORD._replace(iteration=7, f_gap=None, f=math.inf, oracle_calls=9)]
    history = History.load(written(tmp_path / "h.jsonl", records))
    assert len(history) == 2
    assert next(iter(history)) == RECORD
    assert history["iteration"].tolist() == [0, 7]
    assert history["iteration"].dtype == history["oracle_calls"].dtype == np.int64
    assert history["f"].dtype == np.float64
    np.testing.assert_array_equal(history["f_gap"], [0.25, math.nan])
    np.testing.assert_array_equal(history["f"], [0.5, math.nan])
    assert history.records[1].f_gap is None
    with pytest.raises(
        KeyError, match="'loss' is not a column; the columns are iteration, f, f_gap"
    ):
        history["loss"]


def test_files_without_the_distance_are_read(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(RECORD.as_json().replace(', "distance_sq": 4.0', "") + "\n")
    assert History.load(path).records == [RECORD._replace(distance_sq=None)]


def test_history_without_a_file() -> None:
    history = History()
    history.append(RECORD)
    assert history["seconds"].tolist() == [1e-05]
    history.close()


def test_an_earlier_file_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    path = written(tmp_path / "h.jsonl", [RECORD])
    with pytest.raises(FileExistsError):
        History.create(path)
    assert len(History.load(path)) == 1
    History.create(path, overwrite=True).close()
    assert len(History.load(path)) == 0


@pytest.mark.parametrize("kept", range(0, 12, 3))
def test_a_half_written_last_line_is_dropped(tmp_path: Path, kept: int) -> None:
    path = written(tmp_path / "h.jsonl", [RECORD, RECORD])
    path.write_text(path.read_text() + RECORD.as_json()[:kept])
    assert len(History.load(path)) == 2


def test_a_last_line_that_only_lacks_its_newline_counts(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(RECORD.as_json() + "\n" + RECORD.as_json())
    assert len(History.load(path)) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (RECORD.as_json()[:40], "Unterminated|Expecting"),
        ("", "Expecting value"),
        ("[1, 2]", "expected an object with the keys iteration, f"),
        (RECORD.as_json().replace('"seconds"', '"second"'), "the key 'seconds' is missing"),
        (RECORD.as_json().replace("0.5", '"0.5"'), "'f' must be a number or null, got '0.5'"),
        (RECORD.as_json().replace("0.5", "true"), "'f' must be a number or null, got True"),
        (
            RECORD.as_json().replace('"iteration": 0', '"iteration": null'),
            "'iteration' must be a whole number, got None",
        ),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(f"{RECORD.as_json()}\n{line}\n{RECORD.as_json()}\n")
    with pytest.raises(ValueError, match=rf"h\.jsonl, line 2: not a history record: .*({reason})"):
        History.load(path)


def test_damage_in_the_last_whole_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(RECORD.as_json() + '\n{"iteration": 1\n')
    with pytest.raises(ValueError, match="line 2"):
        History.load(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_an_error_and_the_record_is_kept() -> None:
    history = History.create("/dev/full", overwrite=True)
    with pytest.raises(OSError, match="No space left"):
        history.append(RECORD)
    assert history.records == [RECORD]
    history.close()
