"""The main job: budgets, measuring, files, interruption, reproducibility."""

from __future__ import annotations

import io
import json
import math
import signal
import threading
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import pytest
from methods import choices
from rich.console import Console

from buropt import run as app
from buropt.budget import Budget
from buropt.history import History, Record
from buropt.loop import Interruption, Outcome, minimize
from buropt.optim import GD
from buropt.problems import synthetic_quadratic
from buropt.progress import Progress
from buropt.result import fingerprint

PNG = b"\x89PNG\r\n\x1a\n"
SMALL = ("problem=quadratic", "problem.dim=10", "compressor.k=2", "verbose=false")


def execute(folder: Path, *overrides: str, console: Console | None = None) -> app.Report:
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose("config", overrides=list(overrides))
    return app.run(config, folder, console or Console(file=io.StringIO(), width=100))


def result_of(folder: Path) -> dict[str, Any]:
    content = json.loads((folder / "result.json").read_text())
    assert isinstance(content, dict)
    return content


# --- the whole job ---


def test_the_default_run(tmp_path: Path) -> None:
    """On real data, far enough, and with everything that one wants to know written down.

    A fifth of the default's iterations are enough for that.
    """
    screen = io.StringIO()
    console = Console(file=screen, width=100)
    report = execute(tmp_path / "run", "iterations=2000", console=console)
    assert report.exit_code == 0
    history = History.load(tmp_path / "run" / "history.jsonl")
    gradients = history["grad_norm_sq"]
    assert gradients[-1] * 1e4 <= gradients[0]
    assert history["iteration"].tolist() == list(range(len(history)))
    assert np.all(np.diff(history["seconds"]) > 0)
    assert (tmp_path / "run" / "curve.png").read_bytes()[:8] == PNG

    result = result_of(tmp_path / "run")
    assert result["status"] == "budget:iterations"
    assert result["seed"] == 0
    assert result["final"] == history.records[-1]._asdict()
    assert result["initial"] == history.records[0]._asdict()
    assert result["optimizer"]["name"] == "Marina"
    assert result["optimizer"]["p"] == pytest.approx(5 / 31)
    sent = {"name": "RandK", "k": 5, "scaled": True, "shared_seed": False}
    assert result["optimizer"]["compressor"] == sent
    assert len(result["constants"]["L_i"]) == 5
    assert result["config"]["iterations"] == result["final"]["iteration"]
    assert {"python", "numpy", "buropt", "hydra-core"} <= set(result["versions"])
    assert result["machine"]["cpus"] >= 1
    x = np.load(tmp_path / "run" / "x.npy")
    assert fingerprint(x) == result["x_sha256"]
    assert not list((tmp_path / "run").glob("*.tmp"))

    text = screen.getvalue()
    assert "Marina on logistic (breast_cancer), 5 workers" in text
    assert "iter 0  f - f*" in text
    assert "budget:iterations at iteration" in text


@pytest.mark.parametrize("optimizer", choices("optimizer"))
def test_every_method_runs(optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)  # takes longest
    report = execute(tmp_path, *SMALL, f"optimizer={optimizer}", "iterations=300")
    first = History.load(tmp_path / "history.jsonl").records[0]
    assert report.outcome.record.f < first.f


@pytest.mark.parametrize("prox", choices("prox"))
@pytest.mark.parametrize("schedule", choices("schedule"))
def test_every_prox_and_schedule(
    prox: str, schedule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)
    groups = ("optimizer=sgd", f"prox={prox}", f"schedule={schedule}")
    report = execute(tmp_path, *SMALL, *groups, "iterations=100")
    first = History.load(tmp_path / "history.jsonl").records[0]
    assert report.outcome.record.f < first.f


def test_the_same_bits_again_and_with_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)  # takes longest
    variants = {"a": [], "b": [], "one": ["threads=1"], "two": ["threads=2"]}
    lines = {}
    for name, extra in variants.items():
        execute(tmp_path / name, "iterations=300", "verbose=false", *extra)
        history = History.load(tmp_path / name / "history.jsonl")
        lines[name] = [record._replace(seconds=0.0) for record in history]
    assert lines["a"] == lines["b"] == lines["one"] == lines["two"]
    hashes = {result_of(tmp_path / name)["x_sha256"] for name in variants}
    assert len(hashes) == 1
    execute(tmp_path / "seed", "iterations=300", "verbose=false", "seed=1")
    assert result_of(tmp_path / "seed")["x_sha256"] not in hashes


# --- budgets ---


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (["iterations=7"], "budget:iterations"),
        (["iterations=0"], "budget:iterations"),
        (["iterations=null", "epochs=12.5"], "budget:epochs"),
        (["iterations=null", "bits=5000"], "budget:bits"),
        (["iterations=null", "seconds=0.02"], "budget:seconds"),
        (["iterations=null", "tolerance=1e-6"], "converged"),
        (["iterations=7", "epochs=100", "bits=1e12", "tolerance=1e-30"], "budget:iterations"),
        (["iterations=1000", "epochs=4", "bits=1e12", "seconds=100"], "budget:epochs"),
    ],
)
def test_whichever_limit_comes_first(limits: list[str], status: str, tmp_path: Path) -> None:
    report = execute(tmp_path, *SMALL, *limits)
    assert report.outcome.status == result_of(tmp_path)["status"] == status
    history = History.load(tmp_path / "history.jsonl")
    last = history.records[-1]
    assert last == report.outcome.record
    reached = {
        "budget:iterations": last.iteration == (0 if limits == ["iterations=0"] else 7),
        "budget:epochs": last.epochs == (13 if "epochs=12.5" in limits else 4),
        "budget:bits": 5000 <= last.bits_up < 5000 + 640,
        "budget:seconds": last.seconds >= 0.02,
        "converged": last.grad_norm_sq <= 1e-6 < history.records[-2].grad_norm_sq,
    }
    assert reached[status]


def test_budget_needs_a_limit() -> None:
    with pytest.raises(ValueError, match="give at least one of iterations, epochs, bits, seconds"):
        Budget()
    with pytest.raises(ValueError, match="seconds must be a number >= 0 or null, got nan"):
        Budget(seconds=math.nan)


def test_fraction_of_a_budget() -> None:
    def record(iteration: int, gradient: float) -> Record:
        return Record(iteration, 0.0, None, gradient, 0.0, 0, 0.0, 0.0, 0.0)

    first = record(0, 1.0)
    assert Budget(iterations=10).fraction(first, record(4, 1.0)) == 0.4
    assert Budget(tolerance=1e-8).fraction(first, record(4, 1e-2)) == pytest.approx(0.25)
    assert Budget(iterations=10, tolerance=1e-8).fraction(first, record(4, 1e-4)) == 0.5
    assert Budget(iterations=10).fraction(first, record(12, 1.0)) == 1.0
    assert Budget(tolerance=0).fraction(first, record(4, 0.5)) == 0.0


# --- bad ends ---


@pytest.mark.parametrize("log_every", [1, 7])
def test_values_that_are_not_finite(log_every: int, tmp_path: Path) -> None:
    report = execute(
        tmp_path,
        *SMALL,
        "optimizer=gd",
        "optimizer.step_size_factor=1e20",
        f"log_every={log_every}",
    )
    assert report.exit_code == 1
    assert "lower optimizer.step_size_factor" in report.message
    result = result_of(tmp_path)
    assert result["status"] == "non_finite"
    assert math.isfinite(result["final"]["f"])
    assert np.isfinite(np.load(tmp_path / "x.npy")).all()
    history = History.load(tmp_path / "history.jsonl")
    assert not history.records[-1].is_finite
    assert all(record.is_finite for record in history.records[:-1])
    assert result["final"] == history.records[-2]._asdict()
    assert (tmp_path / "curve.png").exists()


def test_interruption_ends_a_run_with_everything_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_ctrl_c(progress: Progress, record: Record) -> None:
        if record.iteration == 50:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Progress, "update", press_ctrl_c)
    report = execute(tmp_path, *SMALL, "iterations=1000000000")
    assert report.exit_code == 130
    assert report.message == "interrupted at iteration 51; everything up to there is written"
    result = result_of(tmp_path)
    assert result["status"] == "interrupted"
    history = History.load(tmp_path / "history.jsonl")
    assert result["final"] == history.records[-1]._asdict()
    assert (tmp_path / "curve.png").exists()


def test_the_second_interruption_is_not_held_back() -> None:
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_runs_outside_the_main_thread() -> None:
    outcomes: list[Outcome] = []

    def work() -> None:
        problem = synthetic_quadratic(3, 4)
        with Interruption() as interruption:
            outcomes.append(
                minimize(
                    problem,
                    GD().theory(problem),
                    Budget(iterations=3),
                    interruption=interruption,
                )
            )

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [outcome.status for outcome in outcomes] == ["budget:iterations"]


def test_an_earlier_run_is_not_written_over(tmp_path: Path) -> None:
    execute(tmp_path, *SMALL, "iterations=3")
    with pytest.raises(
        app.UsageError, match=r"already holds a run: choose another hydra\.run\.dir"
    ):
        execute(tmp_path, *SMALL, "iterations=5")
    assert result_of(tmp_path)["final"]["iteration"] == 3
    execute(tmp_path, *SMALL, "iterations=5", "overwrite=true")
    assert result_of(tmp_path)["final"]["iteration"] == 5


def test_a_replaced_run_leaves_nothing_behind(tmp_path: Path) -> None:
    execute(tmp_path, *SMALL, "iterations=3")

    def look() -> None:
        assert {file.name for file in tmp_path.iterdir()} == {"run.json", "history.jsonl"}

    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose("config", overrides=[*SMALL, "iterations=5", "overwrite=true"])
    app.run(config, tmp_path, on_start=look)
    assert result_of(tmp_path)["final"]["iteration"] == 5


def test_a_picture_that_fails_costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(history: Any, path: Path, title: str) -> None:
        path.touch()
        raise RuntimeError("no font\nat all")

    monkeypatch.setattr("buropt.history.History.plot", fail)
    assert execute(tmp_path, *SMALL, "iterations=3").exit_code == 0
    assert not (tmp_path / "curve.png").exists()
    assert [record.getMessage() for record in caplog.records] == [
        "curve.png could not be drawn: no font"
    ]
    assert {"result.json", "x.npy"} <= {file.name for file in tmp_path.iterdir()}


def test_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = History.append

    def disk_full(history: History, record: Record) -> None:
        append(history, record)
        if record.iteration == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(History, "append", disk_full)
    report = execute(tmp_path / "history", *SMALL, "iterations=10")
    assert report.exit_code == 1
    assert report.message.startswith("stopped at iteration 3: history.jsonl could not be written")
    assert result_of(tmp_path / "history")["status"] == "unwritable"
    assert (tmp_path / "history" / "x.npy").exists()

    monkeypatch.undo()

    def refuse(path: Path, x: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("buropt.result.write_array", refuse)
    report = execute(tmp_path / "array", *SMALL, "iterations=10")
    assert report.exit_code == 1
    assert "; but x.npy could not be written: [Errno 28]" in report.message
    assert result_of(tmp_path / "array")["status"] == "budget:iterations"


@pytest.mark.parametrize("at", ["write_json", "keep_configuration"])
def test_a_full_disk_at_the_start(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that names the folder and says what to do, exit code 1, and nothing is left."""

    def refuse(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    module = "buropt.result" if at == "write_json" else "buropt.run"
    monkeypatch.setattr(f"{module}.{at}", refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["buropt", *SMALL])
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 1
    message = screen.getvalue()
    assert message.startswith(f"buropt: cannot write to the folder {tmp_path}/outputs/")
    assert "(No space left on device): make room there, or choose another one with" in message
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

    monkeypatch.setattr("sys.argv", ["buropt", "-m", "seed=1,2", *SMALL, "hydra.sweep.dir=all"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 1
    message = screen.getvalue().removeprefix(message)
    assert message.startswith("buropt: cannot write to the folder ")
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_refused_run_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(app.UsageError, match="TopK"):
        execute(tmp_path / "run", *SMALL, "compressor=topk")
    assert not (tmp_path / "run").exists()
