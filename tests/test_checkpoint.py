"""Runs that are stopped and resumed: checkpoints, folders, and what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

from buropt import files
from buropt import run as app
from buropt.checkpoint import Checkpoint, Interval, Writer, identity, read
from buropt.compressors import RandK
from buropt.history import History, Record
from buropt.loop import Position
from buropt.mistakes import UsageError
from buropt.optim import GD, SGD, Marina
from buropt.optim.table import Table
from buropt.packing import pack, unpack
from buropt.problems import synthetic_quadratic
from buropt.problems.base import Counters
from buropt.progress import Progress
from buropt.runner import Report, run

# --- packing ---


class Inner(NamedTuple):
    a: Any
    b: Any = None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    numbers: tuple[Any, ...]


@dataclass
class Refused:
    value: Any


def through_a_file(value: Any, folder: Path) -> Any:
    members: dict[str, Any] = {}
    content = pack(value, members)
    files.write(folder / "file", "arrays", content, members)
    with files.reading(folder / "file", "arrays", "nothing") as contents:
        return unpack(contents.content, contents.array, {__name__})


def test_all_bits_of_a_state_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5, 3))
    value = Outer(
        Inner({"x": np.float32(0.1), 2: [np.int64(3), True, None]}, "text"),
        (-0.0, float("inf"), 0.3, 10**30, rows, np.asfortranarray(rows), rows[:, 1], rows[:0]),
    )
    again = through_a_file(value, tmp_path)
    assert type(again) is Outer
    assert repr(again) == repr(value)
    assert type(again.inner.a["x"]) is np.float32
    assert np.signbit(again.numbers[0])
    for one, other in zip(again.numbers[4:], value.numbers[4:], strict=True):
        assert one.tobytes(order="A") == other.tobytes(order="A")
        assert one.flags.f_contiguous >= other.flags.f_contiguous
    nan = through_a_file(float("nan"), tmp_path)
    assert nan != nan


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
def test_sparse_matrices_and_tables(kind: Any, tmp_path: Path) -> None:
    matrix = kind(np.arange(12.0).reshape(3, 4))
    again = through_a_file((matrix, Table(np.arange(6.0).reshape(3, 2))), tmp_path)
    assert type(again[0]) is kind
    np.testing.assert_array_equal(again[0].toarray(), matrix.toarray())
    assert type(again[1]) is Table
    np.testing.assert_array_equal(np.asarray(again[1]), np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 0, np.array(["a"]), 1j])
def test_what_cannot_be_packed(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be saved: make it"):
        pack(Inner(value), {})


@pytest.mark.parametrize(
    "content",
    [
        {"record": "os:system", "fields": {}},
        {"record": "buropt.files:write", "fields": {}},
        {"record": "buropt.history:Record", "fields": {"iteration": 1}},
        {"record": "nowhere:Nothing", "fields": {}},
        {"made_of": "numpy:ndarray", "array": "0"},
        {"sparse": "eval", "parts": ["0", "0", "0"], "shape": [1, 1]},
        {"float": "soon"},
        {"anything": "else"},
    ],
)
def test_reading_makes_records_and_nothing_else(content: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  one sentence about the file is made of it
        unpack(content, lambda name: np.zeros(1))


# --- files ---


def written(folder: Path, **changes: Any) -> Path:
    problem = synthetic_quadratic(3, 4)
    method = Marina(compressor=RandK(2)).theory(problem)
    x = problem.x0 + 1.0
    record = Record(3, 0.5, None, 0.25, 1.0, 3, 0.0, 0.0, 0.1)
    state = method.init(problem, x, hydra_key())
    position = Position(4, 0.1, 7.0, state, Counters(5, 2.5, 3.0, 4.0), x, (x, record))
    history = History.create(folder / "history.jsonl")
    for k in range(3):
        history.append(record._replace(iteration=k + 1))
    config = {"seed": 0, "optimizer": {"p": 0.5}}
    Writer(folder / "checkpoint", Interval(), config, method, problem, history).save(position)
    history.close()
    return folder / "checkpoint"


def hydra_key() -> Any:
    from buropt.random import Key

    return Key(0)


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    found = read(written(tmp_path), {"seed": 0, "optimizer": {"p": 0.5}}, Marina)
    assert isinstance(found, Checkpoint)
    assert found.records == 3
    assert found.position.counters == Counters(5, 2.5, 3.0, 4.0)
    assert found.method == Marina(compressor=RandK(2)).theory(synthetic_quadratic(3, 4))
    assert found.constants.f_star == synthetic_quadratic(3, 4).constants.f_star


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace_by_arrays(path: Path) -> None:
    files.write(path, "arrays", {}, {})


def age(path: Path) -> None:
    """Written by another version of the same length."""
    with files.reading(path, "checkpoint", "") as contents:
        content = contents.content | {"buropt": "9.9.9"}
    files.write(path, "checkpoint", content, {})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "truncated or damaged|is damaged"),
        (flip, "damaged"),
        (empty, "is not a file of buropt"),
        (replace_by_arrays, "holds arrays"),
        (age, r"was written by buropt 9\.9\.9, and this is .*: install that version"),
    ],
)
def test_a_damaged_checkpoint_is_refused(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    path = written(tmp_path)
    damage(path)
    with pytest.raises(ValueError, match=message) as caught:
        read(path, {"seed": 0, "optimizer": {"p": 0.5}}, Marina)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"buropt|damaged"):
            read(path, {"seed": 0, "optimizer": {"p": 0.5}}, Marina)


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(ValueError, match=r"it has optimizer\.p=0\.5, and the command says 0\.25"):
        read(path, {"seed": 0, "optimizer": {"p": 0.25}}, Marina)
    with pytest.raises(ValueError, match="it has seed=0, and the command says None"):
        read(path, {"optimizer": {"p": 0.5}}, Marina)
    with pytest.raises(ValueError, match="is of another method than SGD"):
        read(path, {"seed": 0, "optimizer": {"p": 0.5}}, SGD)


def test_what_changes_no_number_is_no_part_of_a_run() -> None:
    config = {"seed": 1, "threads": 4, "verbose": True, "problem": {"l2": 1.0, "threads": 4}}
    config |= {"iterations": 3, "epochs": None, "bits": 1.0, "seconds": 1.0, "tolerance": 0.1}
    assert identity(config) == {"seed": 1, "problem": {"l2": 1.0}}
    assert identity({"data": {"path": "/a", "cache": "/b", "n": 3}}) == {"data": {"n": 3}}


def test_how_often() -> None:
    with pytest.raises(ValueError, match=r"checkpoint\.seconds must be a number >= 0, got -1"):
        Interval(seconds=-1)
    with pytest.raises(ValueError, match=r"checkpoint\.iterations must be a whole number >= 1"):
        Interval(iterations=0)

    def due(seconds: float | None, iterations: int | None) -> list[int]:
        problem = synthetic_quadratic(2, 2)
        interval = Interval(seconds, iterations)
        writer = Writer(Path("unused"), interval, {}, GD(), problem, History())
        return [k for k in range(10) if writer.due(k)]

    assert due(None, None) == due(1000.0, None) == []
    assert due(None, 4) == [4, 8]
    assert due(0.0, None) == list(range(1, 10))


def test_a_checkpoint_that_cannot_be_written_ends_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    problem = synthetic_quadratic(2, 2)
    writer = Writer(tmp_path / "file" / "c", Interval(), {}, GD(), problem, History())
    position = Position(1, 0.0, 0.0, None, Counters(), None, None)
    writer.save(position)
    writer.save(position)
    assert [record.getMessage()[:36] for record in caplog.records] == [
        "the run goes on without checkpoints:"
    ]


# --- runs ---

SMALL = ("compressor.k=2", "verbose=false", "iterations=60", "checkpoint.iterations=20")
PROBLEM = ("problem=quadratic", "problem.dim=10")


class Killed(BaseException):
    """Stands for a signal that leaves no time."""


def execute(folder: Path, *overrides: str, resume: bool = False) -> Report:
    problem = () if "problem=logistic" in overrides else PROBLEM
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose("config", overrides=[*SMALL, *problem, *overrides])
    return run(config, folder, Console(file=io.StringIO()), resume=resume)


def killed_at(iteration: int, folder: Path, monkeypatch: pytest.MonkeyPatch, *more: Any) -> None:
    def update(progress: Progress, record: Record) -> None:
        if record.iteration == iteration:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "update", update)
        with pytest.raises(Killed):
            execute(folder, *more)


def numbers(folder: Path) -> tuple[list[Record], bytes]:
    history = History.load(folder / "history.jsonl")
    return [record._replace(seconds=0) for record in history], (folder / "x.npy").read_bytes()


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)  # takes longest


@pytest.mark.parametrize("iteration", [0, 19, 20, 47])
def test_a_killed_run_goes_on_as_if_it_had_not_been(
    iteration: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(tmp_path / "whole")
    killed_at(iteration, tmp_path / "killed", monkeypatch)
    with (tmp_path / "killed" / "history.jsonl").open("a") as file:
        file.write('{"iteration": 48, "f')  # half a line
    (tmp_path / "killed" / ".x.npy.0123.tmp").write_bytes(b"half a file")
    report = execute(tmp_path / "killed", resume=True)
    assert report.exit_code == 0
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
    result = json.loads((tmp_path / "killed" / "result.json").read_text())
    assert result["resumed_at"] == (iteration // 20 * 20 or None)
    names = {path.name for path in (tmp_path / "killed").iterdir()}
    assert names == {"run.json", "history.jsonl", "checkpoint.npz", "result.json", "x.npy"}


def test_a_finished_run_is_not_touched(tmp_path: Path) -> None:
    first = execute(tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    again = execute(tmp_path, resume=True)
    assert again.outcome.record == first.outcome.record
    assert "nothing left to do" in again.message
    assert before == {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in tmp_path.iterdir()}


def test_a_run_is_resumed_as_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at(30, tmp_path, monkeypatch)
    before = (tmp_path / "history.jsonl").read_bytes()
    with pytest.raises(UsageError, match="it has seed=0, and the command says 1"):
        execute(tmp_path, "seed=1", resume=True)
    with History.resume(tmp_path / "history.jsonl", 31) as history:
        with pytest.raises(UsageError, match="is being written by another process"):
            execute(tmp_path, resume=True)
        assert len(history) == 31
    lines = before.splitlines(keepends=True)
    (tmp_path / "history.jsonl").write_bytes(b"".join(lines[:10]))
    with pytest.raises(UsageError, match="has 10 records, and 20 are needed"):
        execute(tmp_path, resume=True)
    (tmp_path / "history.jsonl").write_bytes(b"".join([*lines[:19], lines[20], *lines[20:]]))
    with pytest.raises(UsageError, match="is of another run: its record 20 is not"):
        execute(tmp_path, resume=True)
    (tmp_path / "history.jsonl").write_bytes(before)
    flip(tmp_path / "checkpoint.npz")
    with pytest.raises(UsageError, match="damaged"):
        execute(tmp_path, resume=True)
    assert (tmp_path / "history.jsonl").read_bytes() == before
    (tmp_path / "run.json").unlink()
    with pytest.raises(UsageError, match=r"cannot be resumed: it has no run\.json"):
        execute(tmp_path, resume=True)


def test_data_that_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{-1 if j % 3 else 1} 1:{j} {2 + j % 7}:1\n" for j in range(1, 30))
    (tmp_path / "data").write_text(text)
    config = ("problem=logistic", "data=libsvm", f"data.path={tmp_path / 'data'}")
    killed_at(30, tmp_path / "run", monkeypatch, *config)
    (tmp_path / "data").write_text(text.replace("3:1", "3:2"))
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UsageError, match=r"of another problem: .* have the data changed"):
        execute(tmp_path / "run", *config, resume=True)
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}


# --- more of a finished run ---


@pytest.mark.parametrize(
    "words",
    [
        ["optimizer=marina"],
        ["optimizer=ef21", "compressor=topk", "log_every=7"],
        ["optimizer=svrg", "problem=logistic", "checkpoint.iterations=null"],
        ["optimizer=saga", "problem=logistic"],
        ["optimizer=scipy_cg"],
    ],
)
def test_a_prolonged_run_is_the_long_one(words: list[str], tmp_path: Path) -> None:
    """Bit for bit, also where the short one measured its end, and the long one that place not."""
    end = "iterations=500" if "problem=logistic" in words else "iterations=60"
    execute(tmp_path / "long", *words, end)
    for limit in ("iterations=11", "iterations=34", end):
        report = execute(tmp_path / "run", *words, limit, resume=True)
        assert report.message.startswith("the budget of iterations is used up at iteration ")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "long")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["resumed_at"] == 34
    run_json = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run_json["config"]["iterations"] == int(end.partition("=")[2])


@pytest.mark.parametrize("limits", [("epochs=2.5", "epochs=9"), ("bits=700", "bits=5000")])
def test_other_limits_than_iterations(limits: tuple[str, str], tmp_path: Path) -> None:
    words = ["optimizer=marina", "iterations=null"]
    execute(tmp_path / "long", *words, limits[1])
    for limit in limits:
        execute(tmp_path / "run", *words, limit, resume=True)
    assert numbers(tmp_path / "run") == numbers(tmp_path / "long")


def test_a_smaller_tolerance(tmp_path: Path) -> None:
    words = ["optimizer=gd", "iterations=5000", "checkpoint.iterations=null"]
    execute(tmp_path / "long", *words, "tolerance=1e-8")
    for tolerance in ("1e-3", "1e-8"):
        report = execute(tmp_path / "run", *words, f"tolerance={tolerance}", resume=True)
        assert report.outcome.status == "converged"
    assert numbers(tmp_path / "run") == numbers(tmp_path / "long")
    with pytest.raises(UsageError, match=r"has gone past tolerance=0\.001, which it reached at"):
        execute(tmp_path / "run", *words, "tolerance=1e-3", resume=True)


def test_what_a_run_cannot_be_prolonged_with(tmp_path: Path) -> None:
    words = ["optimizer=sgd", "schedule=cosine"]
    execute(tmp_path / "cosine", *words, "iterations=30")
    execute(tmp_path / "run", "iterations=30")
    execute(tmp_path / "none", "iterations=30", "checkpoint.keep=false")
    assert not (tmp_path / "none" / "checkpoint.npz").exists()
    for folder, more, message in (
        ("cosine", [*words], r"has schedule\.iterations=30, and the command says 60; only iterat"),
        ("run", ["seed=1"], "it has seed=0, and the command says 1; only iterations, epochs, bits"),
        ("run", ["iterations=20"], "iterations=20 is used up by the run in .* iteration 30: give"),
        ("run", ["tolerance=1e9"], "gone past tolerance=1e.09, which it reached at iteration 0: g"),
        ("none", [], "has ended without a checkpoint to go on from, as with checkpoint.keep=false"),
    ):
        before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in tmp_path.glob("*/*")}
        with pytest.raises(UsageError, match=message):
            execute(tmp_path / folder, *more, resume=True)
        assert before == {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in tmp_path.glob("*/*")}


def test_what_is_not_given_of_a_prolonged_run_is_taken_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def main(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["buropt", *words])
        with pytest.raises(SystemExit) as caught:
            app.main()
        return int(str(caught.value.code))

    monkeypatch.chdir(tmp_path)
    place = "hydra.run.dir=run"
    assert main(*SMALL, *PROBLEM, "optimizer=gd", "iterations=10", place) == 0
    assert main("resume=run", "iterations=20") == 0
    assert main("resume=run", "tolerance=1e-30") == 2  # all of the 20 are used up
    assert main("resume=run", "tolerance=1e-30", "iterations=25") == 0
    assert len(History.load("run/history.jsonl")) == 26
    before = Path("run/result.json").read_bytes()
    assert main("resume=run") == 0
    assert Path("run/result.json").read_bytes() == before
