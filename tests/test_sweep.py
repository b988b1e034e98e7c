"""Sweeps: folders, failures, exit codes, resuming, launchers; what is killed loses nothing."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from rich.console import Console

from buropt import run as app
from buropt import sweep
from buropt.history import Record
from buropt.monitor import Monitor

QUICK = ("problem=quadratic", "problem.dim=10", "iterations=20", "compressor.k=2")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)  # takes longest
    monkeypatch.chdir(tmp_path)
    return tmp_path


def main(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["buropt", *QUICK, *words])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


def results(folder: Path) -> dict[str, dict[str, Any]]:
    paths = sorted(folder.glob("multirun/*/*/*/result.json"))
    return {path.parent.name: json.loads(path.read_text()) for path in paths}


def content(folder: Path) -> dict[Path, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


# --- one process ---


def test_a_job_that_fails_or_diverges_stops_no_other(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["optimizer=dcgd,gd", "compressor=topk", "optimizer.step_size=0.1,1e30"]
    assert main(monkeypatch, "verbose=false", *command, "-m") == 2
    found = results(place)
    assert [found[k]["exit_code"] for k in "0123"] == [2, 2, 0, 1]
    assert [found[k]["status"] for k in "0123"] == [
        *("failed", "failed", "budget:iterations", "non_finite")
    ]
    assert "DCGD needs an unbiased compressor" in found["0"]["message"]
    (error,) = place.glob("multirun/*/*/0/error.txt")
    assert "ValueError: DCGD needs" in error.read_text()
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("buropt: job #0 optimizer=dcgd optimizer.step_size=0.1: DCGD needs")
    assert lines[2].startswith("buropt: job #3 optimizer=gd optimizer.step_size=1e+30: the value")


def test_a_number_is_a_number_in_a_sweep_as_well(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["optimizer=gd", "optimizer.step_size=1e-3,1E-3,.001", "iterations=1e0"]
    assert main(monkeypatch, "-m", *words, "verbose=false") == 0
    steps = [result["optimizer"]["step_size"] for result in results(place).values()]
    assert steps == [1e-3] * 3


def test_a_misspelled_choice_is_refused_before_any_job_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "mine" / "empty").mkdir(parents=True)
    folders = ("multirun", "mine", "mine/empty", "mine/new/new")
    for folder in folders:
        words = [f"hydra.sweep.dir={folder}"] if folder != "multirun" else []
        assert main(monkeypatch, "-m", "optimizer=gd,marinna", *words) == 2
        output = capsys.readouterr()
        assert "did you mean optimizer=marina?" in output.err
        assert output.out == ""  # no bar of jobs
    assert sorted(place.rglob("*")) == [place / "mine", place / "mine" / "empty"]


def test_a_bug_in_a_job_stops_no_other(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = app.run

    def run(config: Any, *arguments: Any, **more: Any) -> Any:
        if config.seed == 1:
            raise ZeroDivisionError("a bug")
        return real(config, *arguments, **more)

    monkeypatch.setattr(app, "run", run)
    assert main(monkeypatch, "-m", "seed=1,2") == 1
    found = results(place)
    assert (found["0"]["message"], found["1"]["exit_code"]) == ("a bug", 0)
    (error,) = place.glob("multirun/*/*/0/error.txt")
    assert error.read_text().endswith("ZeroDivisionError: a bug\n")
    assert "buropt: job #0 seed=1: a bug" in capsys.readouterr().err


def test_the_same_command_with_resume(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished jobs stay as they are, the others go on."""
    command = ["-m", "seed=range(2)", "verbose=false", "compressor.k=2,20"]
    assert main(monkeypatch, *command) == 2
    (folder,) = place.glob("multirun/*/*")
    assert main(monkeypatch, *command[:-1]) == 0  # another sweep, which is later
    before = content(folder)
    assert main(monkeypatch, *command, "resume=true", "threads=1") == 2
    after = content(folder)
    assert before.keys() == after.keys()
    changed = {path.parent.name for path in before if before[path] != after[path]}
    assert changed == {"2", "3", folder.name}  # there is Hydra's own multirun.yaml
    # With other seeds, these are not the jobs that have finished.
    words = ["-m", "seed=7,8", "verbose=false", "compressor.k=2,20", f"resume={folder}"]
    assert main(monkeypatch, *words) == 2
    again = content(folder)
    assert {path.parent.name for path in after if again[path] != after[path]} == changed
    assert {path.parent.name for path in again.keys() - after.keys()} == {"0", "1"}
    refused = json.loads((folder / "1" / "refused.json").read_text())
    assert "is of another run: it has seed=1, and the command says 8" in refused["message"]


def test_a_sweep_goes_on_with_a_larger_budget(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And tells which finished jobs went on, and which were refused."""
    assert main(monkeypatch, "-m", "seed=1,2", "verbose=false") == 0
    (folder,) = place.glob("multirun/*/*")
    capsys.readouterr()
    assert main(monkeypatch, "-m", "seed=1,2", "iterations=30", f"resume={folder}") == 0
    assert [result["final"]["iteration"] for result in results(place).values()] == [30, 30]
    assert "#1 seed=2 verbose=False: the budget of iterations is" in capsys.readouterr().out
    assert main(monkeypatch, "-m", "seed=1", "iterations=5", f"resume={folder}") == 2
    errors = capsys.readouterr().err
    assert errors.startswith("buropt: job #0 ")
    assert ": iterations=5 is used up by the run in " in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "seed=1,2", "resume=true"], "no sweep under multirun was started with these"),
        (["-m", "seed=1,2", "resume=nowhere"], "there is no sweep in nowhere: name the folder"),
        (["resume=true"], "resume=true is for sweeps; of a single run name the folder"),
        (["resume=nowhere"], "there is no run in nowhere: name the folder that has its run.json"),
    ],
)
def test_there_is_nothing_to_resume(
    words: list[str],
    message: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(monkeypatch, *words) == 2
    assert f"buropt: {message}" in capsys.readouterr().err.replace("resume=true: no", "no")
    assert list(place.iterdir()) == []


def test_a_single_run_is_resumed_by_its_folder(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(monkeypatch, "hydra.run.dir=here", "seed=3", "verbose=false") == 0
    Path("here/result.json").unlink()  # as if it had been killed at its very end
    monkeypatch.setattr(sys, "argv", ["buropt", "resume=here", "verbose=false"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 0
    result = json.loads(Path("here/result.json").read_text())
    assert (result["seed"], result["final"]["iteration"]) == (3, 20)
    assert "seed=3" in Path("here/.hydra/overrides.yaml").read_text()
    for word, difference in (
        ("seed=3", "nothing left to do"),
        ("seed=4", "it has seed=3, and the command says 4"),
        ("tolerance=1e-3", "iterations=20 is used up by the run in"),
        ("optimizer.step_size_factor=2", "it has optimizer.step_size_factor=1.0, and the command"),
    ):  # what is not given is the run's
        monkeypatch.setattr(sys, "argv", ["buropt", "resume=here", word])
        with pytest.raises(SystemExit) as caught:
            app.main()
        assert caught.value.code == (0 if word == "seed=3" else 2)
        assert difference in "".join(capsys.readouterr())


def test_two_sweeps_of_one_moment_have_a_folder_each(place: Path) -> None:
    folders = [sweep._new(Path("time")) for _ in range(3)]
    assert [str(folder) for folder in folders] == ["time", "time-2", "time-3"]


def test_jobs_in_processes_of_their_own_have_a_thread_each_and_may_be_started_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for name in ("BUROPT_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    overrides: dict[str, list[str]] = {"task": ["seed=1,2"], "hydra": []}
    hydra = {
        "launcher": {"_target_": "another", "cpus_per_task": 2},
        "sweeper": {},
        "sweep": {"dir": "multirun/day/time"},
        "overrides": overrides,
    }
    config = OmegaConf.create({"verbose": False, "resume": None, "hydra": hydra})
    folders = sweep.Folders()
    folders.on_multirun_start(config)
    names = ("BUROPT_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    assert [os.environ.get(name) for name in names] == ["2", "2", "3"]
    assert config.hydra.overrides.task == ["seed=1,2", "resume=true"]
    assert config.hydra.overrides.hydra == ["hydra.sweep.dir='multirun/day/time'"]
    assert json.loads(Path("multirun/day/time/sweep.json").read_text())["overrides"] == ["seed=1,2"]
    with pytest.raises(KeyboardInterrupt), folders.at_the_end:
        raise KeyboardInterrupt
    assert [os.environ.get(name) for name in names] == [None, None, "3"]
    assert list(place.iterdir()) == []


def test_how_many_jobs_there_will_be() -> None:
    def count(*words: str, **sweeper: Any) -> Any:
        overrides = {"task": list(words), "hydra": []}
        return sweep.swept(
            OmegaConf.create({"hydra": {"sweeper": sweeper, "overrides": overrides}})
        )

    assert count("a=1,2,3", "b=4", "seed=range(5)") == (15, frozenset({"b"}))
    assert count("b=4", params={"a": "1,2"}) == (2, frozenset({"b"}))
    assert count("a=4", params={"a": "1,2", "b": "1,2,3"}) == (3, frozenset({"a"}))
    assert count("b=4", params={"a": "interval(1,2)"}, n_trials=7) == (7, frozenset({"b"}))
    assert count("a=interval(1,2)", "b=4", "c=5,6") == (None, frozenset({"b"}))


def test_what_is_shown_of_a_sweep(tmp_path: Path) -> None:
    record = Record(10, 0.5, 0.25, 0.1, 1.0, 1, 100.0, 0.0, 0.0)
    for k in "01":
        (tmp_path / k / ".hydra").mkdir(parents=True)
        (tmp_path / k / "run.json").write_text(json.dumps({"config": {"iterations": 40}}))
        (tmp_path / k / ".hydra" / "overrides.yaml").write_text(f"- seed={k}\n- a=1\n")
        lines = [record._replace(iteration=0).as_json(), record.as_json(), '{"half']
        (tmp_path / k / "history.jsonl").write_text("\n".join(lines))
    screen, errors = io.StringIO(), io.StringIO()
    consoles = [Console(file=file, width=80) for file in (screen, errors)]
    monitor = Monitor(tmp_path, 4, frozenset({"a"}), True, *consoles)
    with monitor:
        picture = [str(text) for text in monitor._picture().renderables]
        assert picture[:2] == [
            f"#{k} seed={k}  f - f* 2.5e-01  100 bit  iter 10  25 %" for k in "01"
        ]
        assert picture[2].startswith("[##------------------] 0/4 jobs  2 running")
        for k, code in (("0", 0), ("1", 2)):
            result = {"status": "failed", "message": "it is over", "exit_code": code}
            (tmp_path / k / "result.json").write_text(json.dumps(result))
    assert errors.getvalue() == "buropt: job #1 seed=1: it is over\n"
    assert "#0 seed=0: it is over" in screen.getvalue()
    assert "[##########----------] 2/4 jobs  1 failed" in screen.getvalue().splitlines()[-1]


# --- several processes ---

PROGRAM = [sys.executable, "-m", "buropt.run", *QUICK, "curve=false"]


def needs(package: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(f"hydra_plugins.{package}") is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


@needs("hydra_optuna_sweeper")
def test_optuna_finds_a_step_size(place: Path) -> None:
    words = ["sweep=optuna_step_size", "optimizer=gd", "hydra.sweeper.n_trials=3"]
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = results(place)
    assert len(found) == 3
    (best,) = place.glob("multirun/*/*/optimization_results.yaml")
    value = OmegaConf.load(best).best_value
    assert value == min(result["final"]["f"] for result in found.values())


@needs("hydra_submitit_launcher")
def test_slurm_s_launcher_on_this_machine(place: Path) -> None:
    words = ["sweep=submitit_local", "compressor=topk,randk", "checkpoint.iterations=5"]
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("buropt: job #0 compressor=topk: Marina needs an unbiased")
    assert [result["exit_code"] for result in results(place).values()] == [2, 0]


@needs("hydra_joblib_launcher")
def test_a_sweep_that_is_killed_and_resumed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own, at a random moment, against the same sweep undisturbed in one."""
    words = ["seed=1,2", "iterations=3000", "log_every=50", "checkpoint.iterations=250"]
    joblib = ["sweep=joblib", "hydra.sweep.dir=killed", "hydra.launcher.n_jobs=2"]
    process = subprocess.Popen([*PROGRAM, *words, *joblib], start_new_session=True)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if any(place.glob("killed/*/checkpoint.npz")):
            break
        time.sleep(0.005)
    time.sleep(random.SystemRandom().uniform(0, 0.2))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = subprocess.run([*PROGRAM, *words, *joblib, "resume=true"], check=False)
    assert done.returncode == 0
    assert main(monkeypatch, "-m", *words, "hydra.sweep.dir=whole") == 0
    for k in "01":
        for name in ("history.jsonl", "x.npy"):
            whole, killed = (place / d / k / name for d in ("whole", "killed"))
            assert numbers(whole) == numbers(killed)


@needs("hydra_joblib_launcher")
def test_a_process_that_is_killed_takes_no_other_job_with_it(place: Path) -> None:
    """Job 0 dies whenever it is tried; the others end, whether or not it took them down."""
    (place / "data.py").write_text(
        "import os, signal\n"
        "from buropt.data import synthetic_classification\n"
        "def load(seed):\n"
        "    if seed == 1:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return synthetic_classification(9, 3)\n"
    )
    (place / "c" / "data").mkdir(parents=True)
    (place / "c" / "data" / "ours.yaml").write_text("_target_: data.load\nseed: ${seed}\n")
    words = ["sweep=joblib", "hydra.launcher.n_jobs=2", "seed=1,2", "data=ours", "n_workers=2"]
    program = [*PROGRAM[:3], "iterations=3", "curve=false", "compressor.k=1", "--config-dir=c"]
    done = subprocess.run([*program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = results(place)
    assert [found[k]["status"] for k in "01"] == ["killed", "budget:iterations"]
    assert "a process of the sweep was killed; the jobs that were running then (" in done.stderr
    assert "buropt: job #0 seed=1: its process was killed, and was again when" in done.stderr


def numbers(path: Path) -> Any:
    if path.suffix == ".npy":
        return path.read_bytes()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line | {"seconds": 0} for line in lines]
