"""`experiments.bench`: in quick mode all contestants that are installed give the same answers."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
contest = pytest.importorskip("experiments.bench.contest")


def contestant(answer):
    return contest.Contestant(lambda: None, lambda: answer)


def case(**answers):
    builds = {peer: lambda answer=answer: contestant(answer) for peer, answer in answers.items()}
    return contest.Case("test", "case", builds, tolerance=1e-6)


def test_quick_mode_compares_the_answers():
    done = subprocess.run(
        [sys.executable, "-m", "experiments.bench", "--quick", "--peers", "numpy", "autograd"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "gpt batch=1: answers agree" in done.stdout


def test_an_answer_that_differs_stops_the_benchmark():
    wrong = case(numpy=[1.0, 2.0], buropt=[1.0, 2.1])
    with pytest.raises(AssertionError, match="the answers of buropt and numpy differ by 4"):
        contest.run(wrong, None, 0, 0.01)
    contest.run(case(numpy=[1.0, 2.0], buropt=[1.0, 2.0000001]), None, 0, 0.01)


def test_answers_of_other_lengths_differ():
    assert contest.relative_error(np.ones(2), np.ones(3)) == math.inf


def test_a_peer_that_is_not_installed_is_skipped_and_named():
    def build():
        raise contest.NotInstalledError("not installed (No module named 'nowhere')")

    one = case(numpy=[1.0], buropt=[1.0])
    one.builds["nowhere"] = build
    result = contest.run(one, None, 3, 1e-4)
    assert set(result.times) == {"numpy", "buropt"}
    assert "nowhere" in result.skipped["nowhere"]
    assert result.ratio("numpy") > 0
    assert math.isnan(result.ratio("nowhere"))


def test_unknown_benchmarks_are_refused():
    cases = pytest.importorskip("experiments.bench.cases")
    with pytest.raises(SystemExit, match="there is no benchmark 'gtp'"):
        list(cases.select(["gtp"], True))


def test_external_programs_join_by_the_seconds_that_they_print():
    external = pytest.importorskip("experiments.bench.external")
    one = contest.Case("test", "case", {}, parameters={"batch": 4})
    result = contest.Result("test", "case")
    python = sys.executable
    commands = {
        "fine": f"{python} -c 'print(\"time\", {{batch}} * 0.5)'",
        "other": f"{python} -c 'print({{hidden}})'",
        "broken": f"{python} -c 'raise SystemExit(\"no\")'",
        "silent": f"{python} -c ''",
        "nowhere": "/nowhere/program",
    }
    external.join(result, one, commands)
    assert result.times == {"fine": 2.0}
    assert "no parameter 'hidden'" in result.skipped["other"]
    assert "failed: no" in result.skipped["broken"]
    assert "does not print seconds" in result.skipped["silent"]
    assert "cannot be run" in result.skipped["nowhere"]
