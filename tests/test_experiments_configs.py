"""Every `experiment=` overlay composes, its axes are valid, and its runs run."""

from __future__ import annotations

import functools
import math
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from methods import choices
from omegaconf import DictConfig, OmegaConf

from buropt import run as app
from buropt.build import Experiment, build
from buropt.history import History
from buropt.loop import CONVERGED, ENDED, minimize
from buropt.optim.base import FixedStep
from buropt.plot.__main__ import parser
from buropt.results import read_runs

PAGES = Path(__file__).parents[1] / "docs" / "experiments"


def compose(*overrides: str, hydra_too: bool = False) -> DictConfig:
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        return hydra.compose("config", list(overrides), return_hydra_config=hydra_too)


@functools.cache
def axes(experiment: str) -> dict[str, list[str]]:
    """What is swept over, and its values in order."""
    params = compose(f"experiment={experiment}", hydra_too=True).hydra.sweeper.params
    parsed = OverridesParser.create().parse_overrides([f"{k}={v}" for k, v in params.items()])
    return {
        str(axis.key_or_group): [str(value) for value in axis.sweep_string_iterator()]
        if axis.is_sweep_override()
        else [str(axis.value())]
        for axis in parsed
    }


def first_run(experiment: str, **chosen: str) -> list[str]:
    """The overrides of the first job, but for what is chosen."""
    found = {key: values[0] for key, values in axes(experiment).items()} | chosen
    return [f"experiment={experiment}", *(f"{key}={value}" for key, value in found.items())]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels and 5 of 68 features a sample, which fits into every data set of an overlay."""
    draw = np.random.Generator(np.random.Philox(0))
    path = tmp_path_factory.mktemp("data") / "small"
    rows = [np.sort(draw.choice(68, 5, replace=False)) + 1 for _ in range(200)]
    path.write_text(
        "".join(
            f"{1 - 2 * (j % 3 == 0)} {' '.join(f'{k}:0.4' for k in row)}\n"
            for j, row in enumerate(rows)
        )
    )
    return path


def built(overrides: list[str], data: Path) -> Experiment:
    plain: Any = OmegaConf.to_container(compose(*overrides, f"data.path={data}"), resolve=True)
    return build(plain)


def test_there_are_overlays():
    assert {"marina_vs_diana", "ef21_vs_ef14", "page_vs_sgd"} <= set(choices("experiment"))


@pytest.mark.parametrize("experiment", choices("experiment"))
def test_an_overlay_sweeps_with_one_command(experiment):
    assert "optimizer" in axes(experiment)
    assert math.prod(len(values) for values in axes(experiment).values()) > 2


@pytest.mark.parametrize("experiment", choices("experiment"))
def test_the_values_of_every_axis_are_valid(experiment, data):
    """Each data set, and then the last value of everything."""
    for name in axes(experiment).get("data", [])[:-1]:
        assert compose(*first_run(experiment, data=name)).data.url.endswith(f"/{name}")
    last = {key: values[-1] for key, values in axes(experiment).items()}
    method = built(first_run(experiment, **last), data).method
    assert not isinstance(method, FixedStep) or method.gamma > 0


@pytest.mark.parametrize("experiment", choices("experiment"))
def test_a_short_run_of_every_method(experiment, data):
    short = ["iterations=5", "log_every=1"]
    for optimizer in axes(experiment)["optimizer"]:
        chosen = built([*first_run(experiment, optimizer=optimizer), *short], data)
        history = History()
        outcome = minimize(
            chosen.problem, chosen.method, chosen.budget, log_every=1, history=history
        )
        assert outcome.status.startswith("budget:") or outcome.status in (CONVERGED, ENDED)
        assert np.isfinite(history["grad_norm_sq"]).all()
        assert (history["bits_up"] > 0).any()


def test_a_sweep_from_the_command_line(data, tmp_path, monkeypatch):
    """All axes of the overlay but those that the command line narrows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("buropt.history.History.plot", lambda *arguments: None)  # takes longest
    words = ["compressor.k=5", "data=w8a,phishing", "iterations=3", "verbose=false"]
    sweep = ["-m", "experiment=marina_vs_diana", f"data.path={data}", "hydra.sweep.dir=sweep"]
    monkeypatch.setattr(sys, "argv", ["buropt", *sweep, *words])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 0
    runs = read_runs("sweep")
    found = [(run.settings["data"], run.settings["optimizer"]) for run in runs]
    assert found == [(d, o) for d in ("w8a", "phishing") for o in ("marina", "diana")]
    assert {run.settings["compressor.k"] for run in runs} == {5}
    assert {run.status for run in runs} == {"budget:iterations"}


def test_what_the_command_line_says_wins_over_the_overlay():
    config = compose("experiment=marina_vs_diana", "iterations=7", "optimizer=gd", "data=w8a")
    assert config.iterations == 7
    assert config.optimizer._target_ == "buropt.optim.GD"
    assert config.data.n_features == 300
    assert config.problem._target_ == "buropt.problems.nonconvex_logistic"


@pytest.mark.parametrize("experiment", choices("experiment"))
def test_a_page_describes_every_overlay(experiment):
    told = [
        page for page in PAGES.glob("*.md") if f"-m experiment={experiment} " in page.read_text()
    ]
    (page,) = [page for page in told if page.name != "README.md"]
    assert f"]({page.name})" in (PAGES / "README.md").read_text()


@pytest.mark.parametrize("page", sorted(PAGES.glob("[a-z]*.md")), ids=lambda page: page.stem)
def test_a_page_has_the_figures_that_its_commands_draw(page):
    text = page.read_text()
    (block,) = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line) for line in block.replace("\\\n", " ").splitlines()]
    plots = [words[3:] for words in commands if words[:3] == ["python", "-m", "buropt.plot"]]
    assert all(words[:2] == ["buropt", "-m"] for words in commands if words[0] != "python")
    drawn = {parser().parse_args(words).out for words in plots}
    assert drawn == set(re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE)) != set()
    sizes = {name: (page.parent / name).stat().st_size for name in drawn}
    assert {name: size for name, size in sizes.items() if size > 150_000} == {}
