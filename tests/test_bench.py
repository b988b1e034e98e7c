"""`experiments.bench`: answers agree, bars are judged, and reports can be read."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
contest = pytest.importorskip("experiments.bench.contest")

from experiments.bench import (  # noqa: E402
    bars,
    cases,
    child,
    datasets,
    external,
    limits,
    networks,
    page,
    picture,
    processes,
    report,
    tables,
)
from experiments.bench.cases import energy, glm  # noqa: E402


def contestant(answer, **options):
    return contest.Contestant(lambda: None, lambda: answer, **options)


def case(**answers):
    builds = {peer: lambda answer=answer: contestant(answer) for peer, answer in answers.items()}
    return contest.Case("test", "", "case", builds, tolerance=1e-6)


def result(benchmark="gpt", group="", name="batch=1", **times):
    return contest.Result(benchmark, group, name, times=times)


def test_quick_mode_compares_the_answers():
    peers = ["python", "numpy", "scipy", "scikit-learn", "autograd"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "experiments.bench", "--quick", "--peers", *peers],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in (
        "gpt batch=1",
        "glm CSR news20 batch=32",
        "worker MLP TopK round",
        "startup import",
    ):
        assert f"{name}: answers agree" in done.stdout
    for trouble in ("its answer differs", "fails"):
        assert trouble not in done.stdout


# A contest


def test_an_answer_of_buropt_that_differs_stops_the_benchmark():
    wrong = case(numpy=[1.0, 2.0], buropt=[1.0, 2.1])
    with pytest.raises(AssertionError, match="test case: the answers of buropt and numpy differ"):
        contest.run(wrong, None, 0, 0.01)
    contest.run(case(numpy=[1.0, 2.0], buropt=[1.0, 2.0000001]), None, 0, 0.01)


def test_a_peer_whose_answer_differs_does_not_take_part():
    one = contest.run(case(numpy=[1.0], buropt=[1.0], other=[1.1]), None, 1, 1e-4)
    assert set(one.times) == {"numpy", "buropt"}
    assert one.skipped["other"] == "its answer differs from numpy's by 1.0e-01 (relative)"


def test_answers_of_other_lengths_differ():
    assert contest.relative_error(np.ones(2), np.ones(3)) == math.inf


def test_a_peer_that_cannot_take_part_is_skipped_and_named():
    def missing():
        raise contest.NotInstalledError("not installed (No module named 'nowhere')")

    def broken():
        raise RuntimeError("first line\nsecond line")

    one = case(numpy=[1.0], buropt=[1.0])
    one.builds.update(nowhere=missing, broken=broken)
    done = contest.run(one, None, 3, 1e-4)
    assert set(done.times) == {"numpy", "buropt"}
    assert "nowhere" in done.skipped["nowhere"]
    assert done.skipped["broken"] == "fails: RuntimeError: first line"
    assert done.ratio("numpy") > 0
    assert math.isnan(done.ratio("nowhere"))
    assert tables.not_installed([done]) == ["nowhere"]
    one.builds["buropt"] = broken
    with pytest.raises(RuntimeError, match="first line"):
        contest.run(one, None, 0, 1e-4)


def test_contestants_may_measure_themselves():
    memory = iter([3.0, 1.0, 2.0])
    builds = {"buropt": lambda: contestant([1.0], measure=lambda: next(memory))}
    one = contest.Case("startup", "", "memory", builds, unit="B", turns=3)
    assert contest.run(one, None, 9, 0.01).times == {"buropt": 2.0}


def test_unknown_benchmarks_are_refused():
    with pytest.raises(SystemExit, match="there is no benchmark 'gtp'"):
        list(cases.select(["gtp"], True))


def test_external_programs_join_by_the_seconds_that_they_print():
    one = contest.Case("test", "", "case", {}, parameters={"batch": 4})
    joined = contest.Result("test", "", "case")
    python = sys.executable
    commands = {
        "fine": f"{python} -c 'print(\"time\", {{batch}} * 0.5)'",
        "other": f"{python} -c 'print({{hidden}})'",
        "broken": f"{python} -c 'raise SystemExit(\"no\")'",
        "silent": f"{python} -c ''",
        "nowhere": "/nowhere/program",
    }
    external.join(joined, one, commands)
    assert joined.times == {"fine": 2.0}
    assert "no parameter 'hidden'" in joined.skipped["other"]
    assert "failed: no" in joined.skipped["broken"]
    assert "does not print seconds" in joined.skipped["silent"]
    assert "cannot be run" in joined.skipped["nowhere"]
    memory = contest.Result("test", "", "memory", unit="B")
    external.join(memory, contest.Case("test", "", "memory", {}, unit="B"), commands)
    assert not memory.times


# Bars


def test_every_bar_has_cases_and_its_peer_takes_part_in_them():
    everything = list(cases.select([], False))
    for bar in bars.BARS:
        covered = [one for one in everything if bar.covers(one)]
        assert len(covered) >= len(bar.cases), bar
        if bar.peer != bars.BEST:
            assert all({"buropt", bar.peer} <= set(one.builds) for one in covered), bar


def test_the_worst_case_decides():
    bar = bars.Bar("all", "gpt", ("batch=1", "batch=2"), bars.BEST, 0.5, 0.2)
    one = result(buropt=1.0, jax=10.0, torch=5.0)
    two = result(name="batch=2", buropt=4.0, jax=10.0)
    other = result(name="batch=16", buropt=9.0, jax=1.0)
    assert [bar.covers(each) for each in (one, two, other)] == [True, True, False]
    outcome = max((bars._outcome(bar, each) for each in (one, two)), key=bars._rank)
    assert (outcome.ratio, outcome.worst, outcome.peer) == (0.4, "batch=2", "jax")
    assert outcome.is_met
    assert not outcome.is_aim_reached


def test_a_bar_below_the_roofline_is_impossible():
    slow = contest.Result(
        *("gpt", "", "batch=1"), flops=1e9, limit=0.5, times={"buropt": 1.0, "jax": 2.0}
    )
    (outcome,) = bars.outcomes([slow])
    assert not outcome.is_met
    assert not outcome.is_possible  # a tenth of JAX's 2 s is below 0.5 s
    roofline = tables.of_rooflines([outcome])
    assert roofline.rows[0][-1] == "NO"
    assert "50%" in roofline.rows[0]


def test_a_bar_without_its_peer_is_open():
    (outcome,) = bars.outcomes([result(buropt=1.0, torch=2.0)])
    assert outcome.is_met is None
    assert tables.of_bars([outcome]).rows[0][-1] == "-"
    json.dumps(outcome.record(), allow_nan=False)


def test_bars_of_threads_are_shown_as_speed_ups():
    one = contest.Result("threads", "", "gpt batch=64", times={"buropt": 1.0, "1 thread": 1.9})
    (row,) = tables.of_bars(bars.outcomes([one])).rows
    assert row[2:] == ["1.9x", "1.8x", "1.95x", "yes"]


# Reports


@pytest.fixture
def results():
    gpt = [result(name=f"batch={n}", buropt=1e-6 * n, jax=3e-6 * n, torch=1e-5) for n in range(9)]
    glm = contest.Result(
        *("glm", "CSR a9a", "full"), times={"buropt": 1e-3, "scipy": 3e-3}, note="a9a: made up"
    )
    glm.skipped = {"mlx": "no sparse matrices", "jax": "not installed (No module named 'jax')"}
    glm.flops, glm.bytes, glm.limit = 1e6, 1e6, 5e-4
    return [*gpt[1:], glm]


def test_tables_fit_into_a_terminal(results):
    for table in report.all_tables(results):
        assert max(len(line) for line in table.text().splitlines()) <= 80
    text = "".join(table.text() for table in report.all_tables(results))
    assert "- mlx: no sparse matrices." in text
    assert "machine's limit / buropt" in text
    assert "0.33x" in text
    assert next(report.closing(results)) == "not installed: jax"


def test_the_page_is_written_from_the_json(results, tmp_path, monkeypatch, capsys):
    peaks = limits.Limits({"float32": 2e11, "float64": 1e11}, [(2**20, 1e11), (2**29, 1e10)])
    content = report.record(results, peaks, {"turns": 9, "seconds": 0.03})
    report.write_json(content, tmp_path / "bench.json")
    monkeypatch.setattr(sys, "argv", ["page", str(tmp_path / "bench.json")])
    page.main()
    written = capsys.readouterr().out
    assert "| **buropt** | **1 us** | **2 us** |" not in written
    assert "| buropt | **1 us** | **2 us** |" in written
    assert "200 Gflop/s float32" in written
    assert "$" not in written


def test_the_picture_is_drawn(results, tmp_path):
    picture.draw(results, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.234e-5, "s", "12.3 us"),
        (0.1, "s", "100 ms"),
        (5e-11, "s", "0.05 ns"),
        (2e8, "B", "200 MB"),
    ],
)
def test_quantities_have_three_digits_and_a_unit(value, unit, text):
    assert tables.quantity(value, unit) == text


# Measuring


def test_limits_take_the_bandwidth_of_the_nearest_size():
    peaks = limits.Limits({"float64": 1e9}, [(1000, 1e10), (10**6, 1e9)])
    assert peaks.seconds(0, 2000, "float64") == 2e-7
    assert peaks.seconds(0, 10**7, "float64") == 1e-2
    assert peaks.seconds(10**9, 2000, "float64") == 1.0
    fast = contest.Result("gpt", "", "batch=1", flops=4e9, times={"buropt": 2.0, "jax": 4.0})
    assert peaks.raised([fast]).seconds(10**9, 2000, "float64") == 0.5


def test_energy_is_read_from_the_packages_counters(tmp_path):
    with pytest.raises(contest.NotApplicableError, match="no energy counters"):
        energy.Counters(tmp_path)
    for zone in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        (tmp_path / zone).mkdir()
        (tmp_path / zone / "energy_uj").write_text("900\n")
        (tmp_path / zone / "max_energy_range_uj").write_text("999\n")
    counters = energy.Counters(tmp_path)
    assert counters.read() == [900, 900]
    calls = itertools.count()

    def call():  # after the call that warms up, the first package's counter starts again
        if next(calls) == 1:
            (tmp_path / "intel-rapl:0" / "energy_uj").write_text("100\n")

    assert counters.joules(call, 1e-9) == pytest.approx(200e-6)


def test_memory_is_that_of_this_process_alone():
    assert 10_000_000 < child.peak_bytes() < 100_000_000_000


def test_a_failing_child_says_why():
    with pytest.raises(RuntimeError, match="KeyError: 'nobody'"):
        processes.run("start", "nobody", "none", 0)


# Data


def test_names_are_cut_into_windows_that_begin_at_a_name(tmp_path, monkeypatch):
    assert datasets.find("names.txt") is None
    (tmp_path / "names.txt").write_text("ab\n" * 20)
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    tokens, targets = networks.mlp_samples(50, datasets.find("names.txt"))
    assert tokens.shape == (50, 16)
    windows = {(*row[-3:], target) for row, target in zip(tokens.tolist(), targets, strict=True)}
    assert windows == {(0, 0, 0, 1), (0, 0, 1, 2), (0, 1, 2, 0)}
    assert not tokens[:, :-2].any()


def test_text_is_cut_into_characters_and_those_that_follow(tmp_path):
    (tmp_path / "input.txt").write_text("abcdefghijkl" * 3)
    tokens, targets = networks.gpt_samples(5, tmp_path / "input.txt")
    np.testing.assert_array_equal(targets[:, :-1], tokens[:, 1:])
    np.testing.assert_array_equal(targets, (tokens + 1) % 12)


def test_real_data_are_used_where_a_folder_has_them(tmp_path, monkeypatch):
    (tmp_path / "a9a").write_text("-1 1:1 3:0.5\n+1 2:1\n")
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    A, b, note = datasets.classification("a9a", False)
    np.testing.assert_array_equal(A.toarray(), [[1, 0, 0.5], [0, 1, 0]])
    assert list(b) == [-1, 1]
    assert note == "a9a: the real data"
    assert "made-up" in datasets.classification("w8a", True).note


def test_padded_rows_are_the_rows():
    values, columns = glm.padded("a9a", True)
    dense = np.zeros((len(values), 123))
    np.add.at(dense, (np.arange(len(values))[:, None], columns), values)
    np.testing.assert_array_equal(dense, glm.dense("a9a", True))
