"""H02: what a wheel, a source distribution and a checkout install, started in an empty folder.

The wheels are made by the project's own build backend, without compiling: the core that is at hand
is put in. Everything else in them is what a user gets.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import buropt

CHECKOUT = Path(__file__).parents[1]


def build(project: Path, out: Path, kind: str) -> Path:
    """A distribution of the project, "wheel" or "sdist"."""
    pytest.importorskip("scikit_build_core", reason="pip install scikit-build-core")
    settings = "{'wheel.cmake': 'false'}"
    code = f"import scikit_build_core.build as b; b.build_{kind}({str(out)!r}, {settings})"
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, capture_output=True)
    (made,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module", params=["wheel", "sdist", "checkout"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, as site-packages would be; for the checkout, the checkout."""
    if request.param == "checkout":
        return CHECKOUT
    project, out = CHECKOUT, tmp_path_factory.mktemp("out")
    if request.param == "sdist":
        unpacked = tmp_path_factory.mktemp("unpacked")
        with tarfile.open(build(project, tmp_path_factory.mktemp("sdist"), "sdist")) as archive:
            archive.extractall(unpacked)
        (project,) = unpacked.iterdir()
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(build(project, out, "wheel")) as archive:
        archive.extractall(site)
    shutil.copy(buropt._core.__file__, site / "buropt")
    return site


def listing(folder: Path) -> set[Path]:
    """The files of the package there, but for what is compiled."""
    files = (path.relative_to(folder) for path in (folder / "buropt").rglob("*") if path.is_file())
    return {path for path in files if "__pycache__" not in path.parts and path.suffix != ".so"}


def run(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """From the site's package, and from no other that is installed."""
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from buropt.run import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_file_of_the_package_is_shipped(site: Path) -> None:
    """Folders of YAML and the files of the page, without a Python file in them, as well."""
    assert listing(site) == listing(CHECKOUT)
    assert Path("buropt/conf/experiment/marina_vs_diana.yaml") in listing(site)


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
    helped = run(site, tmp_path, "--help")
    assert "marina" in helped.stdout
    assert list(tmp_path.iterdir()) == []
