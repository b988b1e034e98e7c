"""`python -m buropt.run` as a program: mistakes, help, folders, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from methods import choices

from buropt import run as app


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["optimizer=marinna"],
            "optimizer=marinna is not a choice; did you mean optimizer=marina? The choices are ada",
        ),
        (
            ["optimizer=sgd", "optimizer.batch_sise=3"],
            "optimizer.batch_sise is not a setting; did you mean optimizer.batch_size? The",
        ),
        (["iteratons=3"], "iteratons is not a setting; did you mean iterations?"),
        (["compresor=topk"], "compresor is not a setting; did you mean compressor?"),
        (["seed=1,2"], "seed=1,2 has several values, which makes a sweep: add -m"),
        (
            ["sweep=joblib", "hydra.launcher.n_job=1", "seed=1,2"],
            "hydra.launcher.n_job is not a setting; did you mean hydra.launcher.n_jobs?",
        ),
        (["seed=range(3)"], "seed=range(3) has several values, which makes a sweep: add -m"),
        (["budget=epoch"], "budget=epoch is not a choice; did you mean budget=epochs? The choices"),
        (["budget=tol"], "budget=tol is not a choice; did you mean budget=tolerance? The choices"),
        (
            ["-m", "hydra.sweep.dirr=a", "optimizer=gd,marina"],
            "hydra.sweep.dirr is not a setting; did you mean hydra.sweep.dir? The settings",
        ),
        (["compresor.k=3"], "compresor is not a setting; did you mean compressor? The settings"),
        (["-m", "compresor.k=1,2"], "compresor is not a setting; did you mean compressor?"),
        (["iterations=[1"], "cannot read 'iterations=[1' on the command line"),
        (
            ["data.path=~/x"],
            "cannot read 'data.path=~/x' on the command line: quote the value, twice for the "
            "shell: \"data.path='~/x'\"",
        ),
        (
            ["optimizer=null"],
            "optimizer=null names no choice: write optimizer=NAME, where NAME is one of adagrad,",
        ),
        (["optimizer"], "cannot read 'optimizer' on the command line: write optimizer=value"),
        (
            ["data={a:1}"],
            "data={a:1} names no choice: write data=NAME, where NAME is one of a1a, a9a, "
            "breast_cancer, digits, libsvm, mushrooms, news20, none, phishing, synthetic, w8a; a "
            "setting of the choice is written data.a=...",
        ),
        (["budget={bits:3}"], "budget={bits:3} names no choice: write budget=NAME, where NAME is"),
        (["-m", "data={a:1},a9a"], "data={a:1},a9a names no choice: write data=NAME, where NAME"),
        (["compressor=[1,2]"], "compressor=[1,2] names no choice: write compressor=NAME, where"),
        (["problem=[a]"], "problem=[a] names no choice: write problem=NAME, where NAME is one of"),
        (["checkpoint={minutes:1}"], "checkpoint.minutes is not a setting. The settings here are"),
        (["seed.x=1"], "seed has no settings below it: write seed=..."),
        (["optimizer=scipy_cg", "optimizer.options.a=1"], "optimizer.options has no settings of"),
        (["optimizer@x=gd"], "Could not override 'optimizer@x'. Did you mean to override"),
        (["hydra.run.dir=null"], "hydra.run.dir=null cannot be: field 'hydra.run.dir' is not"),
        (
            ["logger=tensorboard", "logger.a=1"],
            "logger.a is not a setting. The settings here are n",
        ),
        (
            ["hydra.run.dir=it's"],
            'cannot read "hydra.run.dir=it\'s" on the command line: quote the',
        ),
        (["hydra.run.dir=${a}"], "hydra.run.dir: Interpolation key 'a' not found"),
        (["hydra.run.dir=/dev/null/a"], "the folder /dev/null/a cannot be made: /dev/null is in"),
        (["hydra.verbose=3"], "Hydra cannot use this command line (AssertionError in configure_l"),
    ],
)
def test_mistakes_on_the_command_line(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["buropt", *arguments])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"buropt: {message}")
    assert errors.count("\n") == 1


def test_what_is_named_may_lie_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module beside the command, and choices of groups in a folder of YAML files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", os.getcwd())])
    Path("own_losses.py").write_text("def squares(x, a, y):\n    return (a @ x - y) ** 2\n")
    Path("own/problem").mkdir(parents=True)
    Path("own/problem/squares.yaml").write_text(
        "_target_: buropt.problems.compiled\nloss: own_losses.squares\n"
    )
    command = ["buropt", "--config-dir", "own", "problem=squares", "optimizer=gd", "iterations=2"]
    command += ["verbose=false", "curve=false", "hydra.run.dir=run"]
    monkeypatch.setattr(sys, "argv", [*command])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 0
    assert json.loads(Path("run/result.json").read_text())["status"] == "budget:iterations"
    monkeypatch.setattr(sys, "argv", [*command, "problem.loss=own.squares", "overwrite=true"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 2
    assert "module 'own' has no attribute 'squares'" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*command, "problem.loss=owm.squares", "overwrite=true"])
    with pytest.raises(SystemExit):
        app.main()
    assert "a module is looked for in the current folder" in capsys.readouterr().err


def test_mistakes_in_configurations_of_one_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, content, message in (
        (
            "--config-name=own",
            "{a: 1, hydra: {output_subdir: null}}",
            "this is no configuration of",
        ),
        ("data=own", "[1, 2]", "data must be settings with a _target_, got [1, 2]"),
        ("data=own", "a: {b", "while parsing a flow mapping"),
        ("experiment=own", "seed: 3", "the file of experiment=... must begin with the line '# @p"),
        ("optimizer=own", "_target_: os.getcwd", "optimizer._target_=os.getcwd gives no optimizer"),
    ):
        file = tmp_path / words.rpartition("=")[0].replace("--config-name", "") / "own.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
        monkeypatch.setattr(sys, "argv", ["buropt", "seed=1", f"--config-dir={tmp_path}", words])
        if "name" in words:
            sys.argv.remove("seed=1")
        with pytest.raises(SystemExit) as caught:
            app.main()
        assert caught.value.code == 2
        assert capsys.readouterr().err.startswith(f"buropt: {message}")


def test_slurm_without_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["buropt", "sweep=slurm", "seed=1,2", "verbose=false"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"{app.NO_SLURM}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["iterations=null"], 2, "the run would never end: give at least one of iterations"),
        (["compressor=topk"], 2, "Marina needs an unbiased compressor"),
        (
            ["optimizer=gd", "optimizer.step_size_factor=1e20"],
            1,
            "the value or the gradient stopped",
        ),
        (
            ["-m", "optimizer=dcgd,gd", "compressor=topk", "iterations=3"],
            2,
            "job #0 optimizer=dcgd: DCGD needs an unbiased",
        ),
    ],
)
def test_exit_codes(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One bad job of a sweep does not keep the others from running, and shows in the exit code."""
    quiet = ["verbose=false", "hydra/job_logging=none", "hydra/hydra_logging=none"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["buropt", *arguments, "problem=quadratic", *quiet])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == code
    errors = capsys.readouterr().err
    assert errors.startswith(f"buropt: {message}")
    assert errors.count("\n") == 1
    results = [json.loads(path.read_text()) for path in tmp_path.rglob("result.json")]
    codes = sorted(result["exit_code"] for result in results)
    assert codes or list(tmp_path.iterdir()) == []  # a run that is refused leaves no folder
    assert codes == ([0, 2] if "-m" in arguments else [1] if code == 1 else [])


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--version", ["buropt 0", "NumPy 2", "Hydra 1"]),
        ("--help", ["optimizer: ada", "step_size_factor"]),
        ("--cfg=job", ["_target_: buropt"]),
    ],
)
def test_help(
    argument: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["buropt", *argument.split("=")])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert all(word in text for word in words)


def test_help_lists_every_choice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["buropt", "--help"])
    with pytest.raises(SystemExit):
        app.main()
    lines = capsys.readouterr().out.splitlines()
    for group in ("optimizer", "problem", "data", "compressor", "budget", "sweep"):
        (line,) = [line for line in lines if line.startswith(f"{group}: ")]
        assert line == f"{group}: {', '.join(choices(group))}"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("buropt optimizer=mari", ["optimizer=marina"]),
        ("buropt budget=", [f"budget={name}" for name in choices("budget")]),
        ("buropt checkpoint.se", ["checkpoint.seconds="]),
    ],
)
def test_completion_in_the_shell(
    typed: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["buropt", "-sc", "query=bash"])
    monkeypatch.setenv("COMP_LINE", typed)
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 0
    assert capsys.readouterr().out.split() == words


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "buropt.run", *arguments]


def test_as_a_program_in_an_empty_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        command("optimizer=marina", "iterations=50"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "budget:iterations at iteration 50" in done.stdout
    (folder,) = tmp_path.glob("outputs/*/*")
    written = {file.name for file in folder.iterdir()}
    assert {".hydra", "history.jsonl", "result.json", "curve.png", "x.npy"} <= written
    assert (folder / ".hydra" / "config.yaml").exists()
    assert os.listdir(tmp_path) == ["outputs"]


def test_as_a_program_that_is_interrupted(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(
            "problem=quadratic", "verbose=false", "iterations=1000000000", "hydra.run.dir=here"
        ),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    history = tmp_path / "here" / "history.jsonl"
    deadline = time.monotonic() + 60
    while not (history.exists() and history.stat().st_size > 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.startswith("buropt: interrupted at iteration ")
    result = json.loads((history.parent / "result.json").read_text())
    assert result["status"] == "interrupted"


QUICK = ("problem=quadratic", "problem.dim=10", "compressor.k=2", "iterations=5")


def test_a_refused_run_leaves_the_folder_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["buropt", *QUICK, f"hydra.run.dir={tmp_path}/a"])
        sys.argv.extend(arguments)
        with pytest.raises(SystemExit) as caught:
            app.main()
        assert isinstance(caught.value.code, int)
        return caught.value.code

    def content() -> dict[Path, tuple[int, bytes]]:
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}

    assert main("seed=3") == 0
    before = content()
    hydra_files = {file.name for file in (tmp_path / "a" / ".hydra").iterdir()}
    assert hydra_files == {"config.yaml", "hydra.yaml", "overrides.yaml"}
    assert main("seed=4") == 2
    assert main("seed=-1", "overwrite=true") == 2
    assert "already holds a run" in capsys.readouterr().err
    assert content() == before
    assert main("seed=5", "overwrite=true") == 0
    assert "- seed=5" in (tmp_path / "a" / ".hydra" / "overrides.yaml").read_text()


WEB = ["data.url=http://example.org/tiny", "data.cache=cache"]


@pytest.mark.parametrize("words", [["data.path=tiny"], ["data.path='~/tiny'"], WEB])
def test_data_are_looked_for_where_the_command_was_run(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (tmp_path / "tiny", tmp_path / "cache" / "example.org" / "tiny"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("-1 1:1 2:3\n1 1:2 2:1\n" * 5)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    data = ["data=libsvm", *words, "compressor.k=1", "iterations=3", "verbose=false"]
    monkeypatch.setattr(sys, "argv", ["buropt", *data, "hydra.job.chdir=true", "hydra.run.dir=o"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_console_that_fails_and_an_unknown_backend_do_not_end_a_run(tmp_path: Path) -> None:
    with open("/dev/full", "w") as console:
        done = subprocess.run(
            command(*QUICK, "hydra.run.dir=o"),
            cwd=tmp_path,
            stdout=console,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "MPLBACKEND": "nonsense"},
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    written = {file.name for file in (tmp_path / "o").iterdir()}
    assert {"history.jsonl", "result.json", "curve.png", "x.npy"} <= written


def test_an_interruption_during_the_imports_is_one_line(tmp_path: Path) -> None:
    """A module of that name in the folder stands for the moment at which the key is pressed."""
    (tmp_path / "hydra.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    done = subprocess.run(
        command(), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "buropt: interrupted\n")


@pytest.mark.parametrize(
    ("words", "sent"), [([], signal.SIGINT), (["-m", "seed=1,2"], signal.SIGTERM)]
)
def test_one_before_the_start_leaves_no_folder(
    words: list[str], sent: signal.Signals, tmp_path: Path
) -> None:
    """A method of one's own stands for the moment at which the key is pressed."""
    (tmp_path / "own" / "optimizer").mkdir(parents=True)
    (tmp_path / "own" / "optimizer" / "slow.yaml").write_text("_target_: slow.method\n")
    (tmp_path / "slow.py").write_text(
        f"import signal\ndef method():\n    signal.raise_signal(signal.{sent.name})\n"
    )
    done = subprocess.run(
        command("--config-dir=own", "optimizer=slow", *words),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stderr) == (128 + sent, "buropt: interrupted\n")
    assert sorted(os.listdir(tmp_path)) == ["own", "slow.py"]
