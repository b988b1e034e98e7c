"""H02: the package where it is installed, started in an empty folder: configurations, help, output.

What a wheel would put into site-packages is copied to a folder of its own, so that no checkout is
near.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import buropt


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like site-packages."""
    site = tmp_path_factory.mktemp("site")
    source = Path(buropt.__file__).parent
    shutil.copytree(source, site / "buropt", ignore=shutil.ignore_patterns("__pycache__"))
    return site


def listing(site: Path) -> set[Path]:
    return {path for path in site.rglob("*") if "__pycache__" not in path.parts}


def run(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """From the site's copy of the package, and not from a checkout that is installed."""
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from buropt.run import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_in_an_empty_folder(site: Path, tmp_path: Path) -> None:
    """Configurations are found in the package, output is here, and nothing is written there."""
    before = listing(site)
    words = ("optimizer=marina", "data=synthetic", "iterations=3", "compressor.k=2")
    done = run(site, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("outputs/*/*")
    assert {path.name for path in folder.iterdir()} >= {"result.json", "history.jsonl", "x.npy"}
    assert [path.name for path in tmp_path.iterdir()] == ["outputs"]
    assert listing(site) == before


def test_help_and_configuration(site: Path, tmp_path: Path) -> None:
    searched = run(site, tmp_path, "--info", "searchpath")
    assert "pkg://buropt.conf" in searched.stdout
    printed = run(site, tmp_path, "--cfg", "job", "optimizer=gd")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "_target_: buropt.optim.GD" in printed.stdout
    assert list(tmp_path.iterdir()) == []


def test_every_configuration_is_in_the_package() -> None:
    """Folders of YAML without a Python file in them are shipped as well."""
    source = Path(buropt.__file__).parent / "conf"
    groups = {path.name for path in source.iterdir() if path.is_dir()} - {"__pycache__"}
    assert {"budget", "compressor", "data", "experiment", "logger", "optimizer"} < groups
    assert {"problem", "prox", "schedule", "sweep", "hydra"} < groups
