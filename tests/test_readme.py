"""The README's examples run as they stand, and its commands are what other files take them for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import hydra
import numpy as np
import pytest
from omegaconf import OmegaConf

from buropt.build import build

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "getting-started.md"
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if "```python\n" in page.read_text()]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Every `buropt ...` command line of a page, split into words."""
    lines = [
        line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()
    ]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def test_readme_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(README, "python")
    names: dict = {}
    exec(compile(example, README.name, "exec"), names)
    assert names["result"].success
    assert np.linalg.norm(names["oracle"].grad(names["result"].x)) < 1e-4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_the_pages(page, tmp_path, monkeypatch):
    """A page's blocks are one program, cut into pieces."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for example in blocks(page, "python"):
        exec(compile(example, page.name, "exec"), names)


def test_the_two_commands():
    setups = [line for line in README.read_text().splitlines() if "pip install -" in line]
    assert len(setups) == 2
    assert all(
        line.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ") for line in setups
    )
    assert setups[0].endswith(" . && .venv/bin/python -m buropt.run optimizer=marina")
    assert setups[1].endswith(" '.[test]' && .venv/bin/pytest")


def links_of(page: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())


LINKED = [page for page in [README, *sorted((ROOT / "docs").rglob("*.md"))] if links_of(page)]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = links_of(page)
    assert [link for link in links if not (page.parent / link).exists()] == []


def runs() -> list[list[str]]:
    """The overrides of each `buropt` command line, of a sweep those of its first run."""
    found = [words for page in (README, GUIDE) for words in commands(page) if words[0] == "buropt"]
    return [[word.split(",")[0] for word in words[1:] if word != "-m"] for words in found]


@pytest.mark.parametrize("overrides", [run for run in runs() if run != ["--help"]], ids=" ".join)
def test_run_commands(overrides, tmp_path, monkeypatch):
    """Every run of the pages has a configuration that composes, and that can be built."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{1 - 2 * (j % 2)} {1 + j % 11}:1 {12 + j % 7}:0.5\n" for j in range(40)]
    Path("a9a").write_text("".join(rows))
    own = [word for word in overrides if not word.startswith("hydra.")]
    if {"data=a9a", "experiment=marina_vs_diana"} & set(own):
        own.append("data.path=a9a")  # in place of the download
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose("config", overrides=own)
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    assert build(plain).method.gamma > 0
