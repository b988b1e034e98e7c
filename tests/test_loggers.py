"""Loggers: what they are told, what they write, and that they cannot break a run."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hydra
import pytest

from buropt import run as app
from buropt.history import History, Record
from buropt.loggers import Guarded, MLflow, TensorBoard
from buropt.loop import Outcome
from buropt.mistakes import UsageError

SMALL = ("problem=quadratic", "problem.dim=6", "optimizer=gd", "iterations=20", "verbose=false")
RECORDS = [Record(k, 1.0 / (k + 1), None, math.inf, k, k, 64.0 * k, 0.0, 0.1 * k) for k in range(3)]
DONE = Outcome("converged", None, RECORDS[-1])  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)  # takes longest


def execute(folder: Path, *overrides: str) -> app.Report:
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose("config", overrides=[*SMALL, *overrides])
    return app.run(config, folder)


class Spy:
    """A logger that keeps what it hears, and fails when told to."""

    heard: list[Any]

    def __init__(self, fails_in: str = "", interrupts_at: int = -1) -> None:
        self.fails_in, self.interrupts_at = fails_in, interrupts_at
        Spy.heard = []

    def start(self, config: Any, folder: Path) -> None:
        self._hear("start", (config["iterations"], folder))

    def log(self, record: Record) -> None:
        self._hear("log", record)
        if record.iteration == self.interrupts_at:
            os.kill(os.getpid(), signal.SIGINT)

    def finish(self, outcome: Outcome | None) -> None:
        self._hear("finish", outcome)

    def _hear(self, what: str, value: Any) -> None:
        Spy.heard.append((what, value))
        if what == self.fails_in:
            raise RuntimeError("no connection\nand more lines")


def run_with_spy(folder: Path, fails_in: str = "") -> app.Report:
    spy = (f"+logger._target_={__name__}.Spy", f"+logger.fails_in={fails_in}")
    return execute(folder, *spy)


def test_a_logger_of_ones_own_hears_everything(tmp_path: Path) -> None:
    report = run_with_spy(tmp_path)
    assert Spy.heard[0] == ("start", (20, tmp_path))
    assert Spy.heard[-1] == ("finish", report.outcome)
    records = [value for what, value in Spy.heard if what == "log"]
    assert records == History.load(tmp_path / "history.jsonl").records


@pytest.mark.parametrize("fails_in", ["start", "log", "finish"])
def test_a_logger_that_fails_is_left_out(
    fails_in: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "buropt"):
        report = run_with_spy(tmp_path, fails_in)
    assert report.exit_code == 0
    assert len(History.load(tmp_path / "history.jsonl")) == 21
    assert [record.getMessage() for record in caplog.records] == [
        "Spy failed and is left out from here on: RuntimeError: no connection"
    ]
    assert [what for what, _ in Spy.heard].count(fails_in) == 1
    assert Spy.heard[-1][0] == fails_in


def test_a_logger_hears_of_an_end_by_an_exception() -> None:
    with suppress(ZeroDivisionError), Guarded(Spy()) as logger:
        logger.start({"iterations": 1}, Path())
        _ = 1 / 0
    assert Spy.heard[-1] == ("finish", None)


def test_a_logger_goes_on_with_a_resumed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = (f"+logger._target_={__name__}.Spy", "+logger.interrupts_at=7")
    monkeypatch.setattr(sys, "argv", ["buropt", *SMALL, *spy, f"hydra.run.dir={tmp_path}/run"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 130
    monkeypatch.setattr(sys, "argv", ["buropt", f"resume={tmp_path}/run", "verbose=false"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 0
    assert [value.iteration for what, value in Spy.heard if what == "log"] == list(range(8, 21))


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_a_missing_package_is_told_before_anything_is_computed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None)
    sentence = (
        f"logger={name} needs the package {name}, which is not installed: "
        rf"pip install 'buropt\[{name}\]'"
    )
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        execute(tmp_path / "run", f"logger={name}", "problem.dim=3000000000")
    assert not (tmp_path / "run").exists()


# --- TensorBoard ---


def scalars_of(folder: Path) -> Any:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    return accumulator.EventAccumulator(str(folder)).Reload()


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    execute(tmp_path, "logger=tensorboard")
    history, events = History.load(tmp_path / "history.jsonl"), scalars_of(tmp_path)
    assert sorted(events.Tags()["scalars"]) == sorted(set(Record._fields) - {"iteration"})
    for column in ("f_gap", "distance_sq", "bits_up"):
        points = events.Scalars(column)
        assert [point.step for point in points] == history["iteration"].tolist()
        assert [point.value for point in points] == pytest.approx(history[column], rel=1e-6)
    (written,) = tmp_path.glob("events.out.tfevents.*")
    assert b"problem.dim" in written.read_bytes()  # among the hyperparameters


def test_tensorboard_when_a_run_goes_on(tmp_path: Path) -> None:
    """What a killed run logged after its checkpoint is replaced."""
    pytest.importorskip("tensorboard")
    for records in (RECORDS, [RECORDS[1]._replace(f=7.0)]):
        logger = TensorBoard()
        logger.start({}, tmp_path)
        for record in records:
            logger.log(record)
        logger.finish(None)
    points = scalars_of(tmp_path).Scalars("f")
    assert [(point.step, point.value) for point in points] == [(0, 1.0), (1, 7.0)]


def test_tensorboard_loads_no_tensorflow(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    code = f"""
import sys
from pathlib import Path
from buropt.loggers import TensorBoard
from buropt.history import Record
logger = TensorBoard()
print("tensorboard" in sys.modules, "mlflow" in sys.modules)
logger.start({{}}, Path({str(tmp_path)!r}))
logger.log(Record(0, 1.0, None, 1.0, 0, 0, 0, 0, 0))
logger.finish(None)
print("tensorflow" in sys.modules, "matplotlib" in sys.modules)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.split() == ["False"] * 4


# --- MLflow ---


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where the system has one: a new database waits for the disk often."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.filterwarnings("ignore")  # other people's deprecations
def test_mlflow(tmp_path: Path, memory: Path) -> None:
    """A run with its parameters; one that goes on; a second one in the same database."""
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    uri = f"sqlite:///{memory}/mlflow.db"
    folder = tmp_path / "run"
    folder.mkdir()
    config = {"seed": 3, "optimizer": {"_target_": "x", "step_size": None}} | {
        f"key{k}": k for k in range(150)
    }
    for records, outcome in ((RECORDS, None), (RECORDS[2:], DONE)):
        logger = MLflow(uri)
        logger.start(config, folder)
        for record in records:
            logger.log(record)
        logger.finish(outcome)
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("buropt")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.tags["buropt.status"] == "converged"
    assert run.data.tags["buropt.folder"] == str(folder)
    assert run.data.params["optimizer.step_size"] == "None"
    assert run.data.params["key149"] == "149"
    assert len(run.data.params) == 152
    points = client.get_metric_history(run.info.run_id, "f")
    assert {(point.step, point.value) for point in points} == {(r.iteration, r.f) for r in RECORDS}

    logger = MLflow(uri)
    logger.start(config, folder)
    logger.log(RECORDS[0])
    logger.finish(Outcome("non_finite", None, RECORDS[0]))  # type: ignore[arg-type]
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.status for run in runs) == ["FAILED", "FINISHED"]


def test_mlflow_whose_database_cannot_be_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    with caplog.at_level(logging.WARNING, "buropt"):
        report = execute(
            tmp_path / "run", "logger=mlflow", f"logger.tracking_uri=sqlite:///{tmp_path}/no/m.db"
        )
    assert report.exit_code == 0
    assert "MLflow failed and is left out from here on: FileNotFoundError" in caplog.text
