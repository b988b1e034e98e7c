"""The layers of the project, read from C++ includes and Python imports.

Every rule has a table here and a paragraph in docs/design.md, section "Layers".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CPP = sorted(path for suffix in ("*.h", "*.cpp") for path in (ROOT / "cpp").rglob(suffix))
PACKAGE = sorted((ROOT / "buropt").rglob("*.py"))
EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.py"))
MAX_LINES = 450

# Folder of cpp/ -> the folders that it may include.
CPP_LAYERS = {
    "base": {"base"},
    "math": {"base", "math"},
    "ops": {"base", "math", "ops"},
    "graph": {"base", "math", "ops", "graph"},
    "exec": {"base", "math", "ops", "graph", "exec"},
    "inner": {"base", "math", "ops", "graph", "exec", "compress", "inner"},
    "compress": {"base", "math", "compress"},
    "eager": {"base", "math", "eager"},
    "data": {"base", "data"},
    "bind": {
        *{"base", "math", "ops", "graph", "exec", "inner", "compress", "data", "eager"},
        "bind",
    },
}

# Module or package of buropt -> what it may import of buropt when it runs. (Imports for the type
# checker alone are free here, but close no circle of modules either.)
PYTHON_LAYERS = {
    "_core": set(),
    "tree": set(),
    "trace": {"_core", "tree"},
    "autodiff": {"_core", "tree", "trace"},
    "oracle": {
        *{"_core", "files", "html", "nodes", "saving", "trace", "tree"},
        *{"tree_json", "triangle"},
    },
    "inner": {"_core", "nodes", "oracle"},
    "nodes": {"_core"},
    "triangle": {"_core"},
    "files": set(),
    "tree_json": {"tree"},
    "saving": {"files"},
    "scipy": {"_core", "autodiff", "nodes", "oracle", "trace", "tree"},
    "nn": {"trace"},
    "data": {"_core", "names"},
    "checks": set(),
    "prox": {"checks"},
    "problems": {"compressors", "html", "inner", "names", "oracle", "data", "random", "tree"},
    "random": {"_core"},
    "notes": set(),
    "compressors": {"_core", "notes", "random"},
    "optim": {"budget", "checks", "compressors", "html", "inner", "notes", "random", "triangle"},
    "html": set(),
    "picture": set(),
    "history": {"html", "picture"},
    "budget": set(),
    "loop": {"history", "random"},
    "names": set(),
    "results": {"history", "names", "result"},
    "loggers": {"result"},
    "result": {"files"},
    "packing": set(),
    "checkpoint": {"budget", "files", "history", "loop", "packing", "result"},
    "folder": {"checkpoint", "history", "loop", "result"},
    "axes": set(),
    "palette": set(),
    "series": {"results"},
    "plot": {"axes", "palette", "picture", "results", "series"},
    "report": {"axes", "history", "palette", "results", "series"},
    "drawing": {"_core"},
    "progress": set(),
    "build": {"budget", "data", "history", "names"},
    "conf": set(),
    "screen": set(),
    "mistakes": {"build", "names"},
    "ending": {
        *{"build", "folder", "history", "loop", "mistakes", "optim", "picture", "progress"},
        "result",
    },
    "runner": {
        *{"build", "checkpoint", "ending", "folder", "history", "loggers", "loop", "mistakes"},
        "progress",
    },
    "monitor": {"budget", "folder", "history", "progress"},
    "hydra_files": {"folder"},
    "processes": {"folder", "hydra_files"},
    "sweep": {"_interrupt", "checkpoint", "data", "folder", "monitor", "processes", "result"},
    "run": {
        *{"checkpoint", "folder", "hydra_files", "loop", "mistakes", "result", "runner", "screen"},
        "sweep",
    },
    "_interrupt": set(),
    "__init__": {
        *{"_core", "_interrupt", "autodiff", "nn", "oracle", "results", "saving"},
        "trace",
    },
}

# Packages that only some modules may import.
GUARDED = {
    "hydra": {"run", "sweep", "mistakes", "processes"},
    "omegaconf": {"hydra_files", "run", "runner", "sweep", "mistakes", "processes"},
    "rich": {"run", "runner", "monitor", "progress"},
    "matplotlib": {"picture", "plot", "drawing"},
    "sklearn": {"data"},
    "pandas": {"results"},
    "pooch": {"data"},
    "tensorboard": {"loggers"},
    "mlflow": {"loggers"},
    "experiments": set(),
    "tests": set(),
    "pytest": set(),
    "autograd": set(),
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def includes(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", CPP, ids=name)
def test_cpp_includes(path):
    layer = path.relative_to(ROOT / "cpp").parts[0]
    own = {included.split("/")[0] for included in includes(path) if "/" in included}
    assert own & CPP_LAYERS.keys() <= CPP_LAYERS[layer]
    if layer != "bind":
        assert not own & {"nanobind"}
        assert "Python.h" not in includes(path)


def test_cpp_includes_within_the_project_are_quoted_paths_from_its_root():
    for path in CPP:
        for quoted in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
            assert (ROOT / "cpp" / quoted).is_file(), f"{name(path)} includes {quoted}"


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a module imports when it runs, also inside of functions."""
    for node in _run_time(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            if node.module == "buropt":
                yield from (f"buropt.{alias.name}" for alias in node.names)
            else:
                yield str(node.module)


def _run_time(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below `node` outside of `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        checking = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if checking:
            continue
        yield child
        yield from _run_time(child)


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT / "buropt").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", PACKAGE, ids=name)
def test_python_imports(path):
    layer = layer_of(path)
    modules = list(imports(path))
    own = {module.split(".")[1] for module in modules if module.startswith("buropt.")}
    assert own - {layer} <= PYTHON_LAYERS[layer]
    assert "buropt" not in modules, "import the module that has the name"
    guarded = {module.split(".")[0] for module in modules} & GUARDED.keys()
    assert {package for package in guarded if layer not in GUARDED[package]} == set()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_circles():
    """Also counting imports inside of functions, and those for the type checker alone."""
    modules = {module_of(path): path for path in (*PACKAGE, *EXPERIMENTS)}
    needs: dict[str, set[str]] = {}
    for module, path in modules.items():
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= {name if name in modules else str(node.module) for name in inner}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        needs[module] = names & modules.keys() - {module, "buropt"}  # which nobody imports
    TopologicalSorter(needs).prepare()  # raises an error that lists the circle


def test_every_layer_exists():
    assert {layer_of(path) for path in PACKAGE} == PYTHON_LAYERS.keys() - {"_core"}
    assert {path.relative_to(ROOT / "cpp").parts[0] for path in CPP} == CPP_LAYERS.keys()


def sources() -> list[Path]:
    """What people write: source, tests, configs and documentation."""
    folders = [ROOT / folder for folder in ("buropt", "cpp", "tests", "experiments", "docs")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.is_file()]
    kinds = {".py", ".js", ".css", ".html", ".h", ".cpp", ".yaml", ".toml", ".txt", ".md"}
    return sorted(path for path in files if path.suffix in kinds)


def test_files_are_short():
    code = [path for path in sources() if path.suffix in {".py", ".h", ".cpp", ".js", ".css"}]
    lengths = {name(path): len(path.read_text().splitlines()) for path in code}
    assert {path: n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_floating_point_keeps_its_meaning():
    forbidden = ["fast-" + "math", "unsafe-math-" + "optimizations", "finite-math-" + "only"]
    for path in sources():
        text = path.read_text() if path.suffix != ".md" else ""
        assert [word for word in forbidden if f"-f{word}" in text] == [], name(path)
