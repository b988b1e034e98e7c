"""`load_results`: one tidy table of whatever a folder holds."""

from __future__ import annotations

import builtins
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeps import COMMAND, config_of, records, write_run

import buropt as bo
from buropt.history import Record
from buropt.results import read_columns, read_runs, table_keys, varying_keys

pandas = pytest.importorskip("pandas")


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two methods, two seeds, of different lengths; job 10 comes after job 2."""
    jobs = [("gd", 0, 0.5, 21), ("gd", 1, 0.6, 21), ("marina", 0, 0.7, 31), ("marina", 1, 0.8, 5)]
    for number, (name, seed, rate, n) in zip((0, 1, 2, 10), jobs, strict=True):
        config = config_of(seed=seed)
        config["optimizer"] = {"_target_": f"buropt.optim.{name.upper()}", "step": 1.0}
        config["optimizer"] |= {"p": 0.1} if name == "marina" else {}
        write_run(tmp_path / str(number), config, records(rate, n), choices={"optimizer": name})
    return tmp_path


def test_a_row_for_each_measurement_and_a_column_for_each_swept_key(sweep: Path) -> None:
    table = bo.load_results(sweep)
    keys = ["problem", "data", "optimizer", "seed"]
    assert list(table.columns) == ["run", *keys, "status", *Record._fields]
    assert len(table) == 21 + 21 + 31 + 5
    assert list(dict.fromkeys(table["run"])) == ["0", "1", "2", "10"]
    assert table["iteration"].dtype == table["oracle_calls"].dtype == np.int64
    assert table["f_gap"].dtype == np.float64
    last = table[(table["optimizer"] == "marina") & (table["seed"] == 1)].iloc[-1]
    assert (last["iteration"], last["f_gap"], last["run"]) == (4, 0.8**4, "10")
    medians = table.groupby(["optimizer", "iteration"])["f_gap"].median()
    assert medians["gd", 3] == (0.5**3 + 0.6**3) / 2


def test_one_run(sweep: Path) -> None:
    table = bo.load_results(sweep / "2")
    assert set(table["run"]) == {"."}
    assert set(table["optimizer"]) == {"marina"}
    assert len(table) == 31


def test_folders_below_folders(tmp_path: Path) -> None:
    for day, seed in (("a/b", 0), ("c", 1)):
        write_run(tmp_path / day / "0", config_of(seed=seed), records(n=2))
    assert list(bo.load_results(tmp_path)["run"]) == ["a/b/0", "a/b/0", "c/0", "c/0"]


def test_keys_that_only_repeat_others_are_left_out(tmp_path: Path) -> None:
    for k in (1, 5):
        for seed in (0, 1):
            folder = tmp_path / f"{k}-{seed}"
            write_run(folder, config_of(seed=seed, k=k, verbose=seed == 1), records(n=2))
    assert varying_keys(read_runs(tmp_path)) == ["compressor.k", "seed"]
    assert table_keys(read_runs(tmp_path))[-2:] == ["compressor.k", "seed"]
    assert bo.load_results(tmp_path)["compressor.k"].dtype == np.int64


def test_settings_that_are_missing_or_lists(tmp_path: Path) -> None:
    write_run(tmp_path / "a", config_of(classes=[0, 1], p=None), records(n=1))
    write_run(tmp_path / "b", config_of(classes=[2, 3], p=0.5), records(n=1))
    table = bo.load_results(tmp_path)
    assert list(table["classes"]) == ["[0, 1]", "[2, 3]"]
    assert math.isnan(table["p"][0])
    assert table["p"][1] == 0.5


def test_unfinished_half_written_failed_and_damaged_runs(tmp_path: Path) -> None:
    killed = write_run(tmp_path / "0", config_of(), records(n=4), status=None)
    with (killed / "history.jsonl").open("a") as file:
        file.write('{"iteration": 4, "f": 0.')
    infinite = records(n=4)[3]._replace(f=math.inf, f_gap=None, grad_norm_sq=math.nan)
    diverged = [*records(n=3), infinite]
    write_run(tmp_path / "1", config_of(), diverged, status="non_finite")
    failed = write_run(tmp_path / "2", config_of(), [], status="failed", message="no such file")
    (failed / "history.jsonl").unlink()
    damaged = write_run(tmp_path / "3", config_of(), records(n=2))
    line = records()[0].as_json()
    (damaged / "history.jsonl").write_text(f"{line}\noops\n{line}\n")
    (write_run(tmp_path / "4", config_of(), records(n=2)) / "result.json").write_text("{")
    (tmp_path / "5").mkdir()  # a job that had no time to write anything

    runs = {run.name: run for run in read_runs(tmp_path)}
    assert {name: run.status for name, run in runs.items()} == {
        "0": "unfinished",
        "1": "non_finite",
        "2": "failed",
        "3": "damaged",
        "4": "damaged",
    }
    assert "line 2: not a history record" in runs["3"].message
    assert "result.json is damaged" in runs["4"].message
    assert runs["0"].settings["optimizer.step"] == 1.0
    with pytest.warns(UserWarning, match=r"2 of 5 runs .*, 2 for one \(failed: no such file\)"):
        table = bo.load_results(tmp_path)
    assert table.groupby("run").size().to_dict() == {"0": 4, "1": 4, "4": 2}
    assert math.isnan(table[table["status"] == "non_finite"]["f"].iloc[-1])


def test_a_run_without_configuration(tmp_path: Path) -> None:
    """As written from Python with `History.create`, or killed before run.json."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "history.jsonl").write_text(records()[0].as_json() + "\n")
    (tmp_path / "b" / ".hydra").mkdir(parents=True)
    (tmp_path / "b" / "history.jsonl").write_text(records()[0].as_json() + "\n")
    overrides = "- optimizer=gd\n- compressor.k=3\n- +data.path=a b\n"
    (tmp_path / "b" / ".hydra" / "overrides.yaml").write_text(overrides)
    table = bo.load_results(tmp_path)
    assert list(table.columns) == ["run", "optimizer", "status", *Record._fields]
    run = read_runs(tmp_path / "b")[0]
    assert run.settings == {"optimizer": "gd", "compressor.k": 3, "data.path": "a b"}


def test_a_job_has_the_command_of_its_sweep(sweep: Path) -> None:
    (sweep / "sweep.json").write_text(json.dumps({"command": ["buropt", "-m", "seed=0,1"]}))
    assert {tuple(run.about["command"]) for run in read_runs(sweep)} == {
        ("buropt", "-m", "seed=0,1")
    }
    assert read_runs(sweep / "0")[0].about["command"] == COMMAND


def test_where_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no run in .*: a run's folder has "):
        bo.load_results(tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a folder: name that of a run or a sweep"):
        bo.load_results(tmp_path / "none")


def test_without_pandas(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'buropt\[results\]'$"):
        bo.load_results(sweep)


def test_both_ways_of_reading_a_file_agree(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    rows = [*records(n=5), records(n=6)[5]._replace(f=math.nan, f_gap=None, distance_sq=None)]
    path.write_text("".join(row.as_json() + "\n" for row in rows))
    quick = read_columns(path)
    path.write_text(path.read_text() + '{"iter')
    slow = read_columns(path)
    for name in Record._fields:
        np.testing.assert_array_equal(quick[name], slow[name])
        assert quick[name].dtype == slow[name].dtype
    path.write_text('{"iteration": 1}\n')
    with pytest.raises(ValueError, match="line 1: not a history record: the key 'f' is missing"):
        read_columns(path)


def test_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the job writes is what is read."""
    import hydra

    from buropt import run as app

    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose(
            "config",
            overrides=["problem=quadratic", "optimizer=diana", "iterations=9", "verbose=false"],
        )
    app.run(config, tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = bo.load_results(tmp_path)
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    assert table.iloc[-1][list(Record._fields)].to_dict() == pytest.approx(result["final"])
    assert set(table["optimizer"]) == {"diana"}
    assert set(table["status"]) == {"budget:iterations"}
