"""The results of a run or a sweep, read from its folder.

    table = bo.load_results("multirun/2025-01-31/12-00-00")
    table.groupby(["optimizer", "compressor.k", "iteration"])["f_gap"].median()

`read_runs` needs no pandas and is what pages and figures are made from.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buropt.history import COUNTS, History, Record
from buropt.names import nearest
from buropt.result import flat

if TYPE_CHECKING:
    import pandas

HISTORY, RESULT, RUN, SWEEP = "history.jsonl", "result.json", "run.json", "sweep.json"
UNFINISHED = "unfinished"  # killed, or still going
DAMAGED = "damaged"
FAR_ABOVE = 1e3
ALWAYS = ("problem", "data", "optimizer", "seed")  # keys of every table
UNTOLD = {"verbose", "overwrite", "resume"}  # settings that say nothing about a run

# What Hydra writes: "  runtime:" and, below, "    choices:" with a line for each group.
_CHOICES = re.compile(r"^  runtime:\n(?:    .*\n)*?    choices:\n((?:      \S.*\n?)+)", re.M)


@dataclass(frozen=True)
class Run:
    """What a folder says of its run.

    Attributes
    ----------
    name : str
        The folder, relative to the one that was read.
    status : str
        As in result.json; "unfinished" without one; "damaged" if a file cannot be read.
    message : str
        How it ended, in words.
    settings : dict
        The configuration by dotted keys, and the chosen name of each group: optimizer.
    columns : dict of ndarray, each of shape (points,)
        The history: int64 for counts, float64 with nan for what is unknown or not finite.
    about : dict
        result.json, or what was known when the run began; of a job, the command of its sweep.
    """

    name: str
    status: str
    message: str
    settings: dict[str, Any]
    columns: dict[str, NDArray[Any]] = field(repr=False)
    about: dict[str, Any] = field(repr=False)

    @property
    def n_points(self) -> int:
        """Number of measurements."""
        return len(self.columns["iteration"])

    @property
    def diverged(self) -> bool:
        """Whether it ended at numbers that are not finite, or a thousand times above its start."""
        f, gap = self.columns["f"], self.columns["f_gap"]
        if self.status == "non_finite" or not len(f):
            return self.status == "non_finite"
        scale = gap[0] if gap[0] > 0 else max(abs(f[0]), 1.0)
        return not bool(f[-1] - f[0] <= FAR_ABOVE * scale)  # nor if it is not a number


def read_runs(folder: str | PathLike[str]) -> list[Run]:
    """All runs in a folder and the folders below, in the order of their names, 2 before 10.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no run in it.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a folder: name that of a run or a sweep")
    found: list[Path] = []
    sweeps: dict[Path, Any] = {}
    for place, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".hydra"]
        if not {HISTORY, RESULT, RUN}.isdisjoint(files):
            found.append(Path(place))
        if SWEEP in files:
            with suppress(ValueError):
                sweeps[Path(place)] = _object(Path(place) / SWEEP).get("command")
    if not found:
        raise FileNotFoundError(
            f"there is no run in {root}: a run's folder has a {HISTORY}; name that of a run or a "
            "sweep, as under outputs/ and multirun/"
        )
    runs = []
    for own in sorted(found, key=_natural):
        run = read_run(own, root)
        # A job that another process ran, or another machine, does not know what was typed.
        typed = next((sweeps[parent] for parent in own.parents if sweeps.get(parent)), None)
        runs.append(replace(run, about=run.about | {"command": typed}) if typed else run)
    return runs


def read_run(folder: Path, root: Path | None = None) -> Run:
    """The run of one folder; what cannot be read makes it "damaged", and is no error."""
    name = str(folder.relative_to(folder if root is None else root))
    problems, contents = [], []
    for file in (RESULT, RUN):
        try:
            contents.append(_object(folder / file))
        except ValueError as error:
            problems.append(str(error))
    result = contents[0] if contents else {}
    about = next((content for content in contents if content), {})
    columns = _columns_of([])
    try:
        columns = read_columns(folder / HISTORY)
    except FileNotFoundError:
        if not about:
            problems.append(f"{folder} has no {HISTORY}")
    except ValueError as error:
        problems.append(str(error))
    status = DAMAGED if problems else str(result.get("status", UNFINISHED))
    message = "; ".join(problems) or str(result.get("message", ""))
    return Run(name, status, message, _settings(folder, about), columns, about)


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """The columns of a history file. A half-written last line is dropped.

    Raises
    ------
    ValueError
        If another line is not a record; the message gives the file, the line and the reason.
    """
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) == len(content):
        try:  # one call for all lines: ten times as fast as one for each
            rows = json.loads(b"[" + b",".join(whole.splitlines()) + b"]")
            return _columns_of([[row[name] for name in Record._fields] for row in rows])
        except (ValueError, TypeError, KeyError):
            pass  # found again below, with its line
    return _columns_of(History.load(path).records)


def varying_keys(runs: Sequence[Run]) -> list[str]:
    """The keys of the settings in which runs differ, in the configuration's order.

    A key that only some runs have counts by those. Of two keys with equal values everywhere, where
    one is the end of the other (`compressor.k`, `optimizer.compressor.k`), the longer is left out.
    """
    values: dict[str, list[tuple[int, str]]] = {}
    for number, run in enumerate(runs):
        for key, value in run.settings.items():
            if key not in UNTOLD and not _is_reference(value):
                values.setdefault(key, []).append((number, repr(value)))
    varying = {
        key: dict(pairs)
        for key, pairs in values.items()
        if any(value != pairs[0][1] for _, value in pairs)
    }

    def repeats(key: str) -> bool:
        return any(
            end in varying and varying[key].items() <= varying[end].items() for end in ends_of(key)
        )

    return [key for key in varying if not repeats(key)]


def ends_of(key: str) -> list[str]:
    """The shorter keys that a key ends in: of a.b.c, b.c and c."""
    return [key.split(".", n)[-1] for n in range(1, key.count(".") + 1)]


def table_keys(runs: Sequence[Run]) -> list[str]:
    """The keys that tables show: problem, data, optimizer and seed where known, and all varying."""
    varying = varying_keys(runs)
    usual = [key for key in ALWAYS if any(key in run.settings for run in runs)]
    return [*(key for key in usual if key not in varying and key != "seed"), *varying] + [
        key for key in ("seed",) if key in usual and key not in varying
    ]


def load_results(folder: str | PathLike[str]) -> pandas.DataFrame:
    """One tidy table of a run or of all runs of a sweep: a row for each measurement.

    Parameters
    ----------
    folder : path
        Searched with all folders below it.

    Returns
    -------
    pandas.DataFrame
        The columns `run` (the folder, relative), the settings in which the runs differ by their
        dotted keys (and always `problem`, `data`, `optimizer`, `seed`), `status`, and those of
        `buropt.history.Record`; nan for what is unknown or was not finite. `status` is that of
        result.json, or "unfinished" for a run that goes on or was killed.

    Raises
    ------
    ImportError
        If pandas is missing.
    FileNotFoundError
        If there is no run in the folder.

    Warns
    -----
    UserWarning
        For runs without a single measurement, which no row can show.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "load_results needs pandas, which is not installed: pip install 'buropt[results]'"
        ) from None
    runs = read_runs(folder)
    empty = [run for run in runs if run.n_points == 0]
    if empty:
        first = empty[0]
        said = f"{first.status}: {first.message}" if first.message else first.status
        warnings.warn(
            f"{len(empty)} of {len(runs)} runs have no measurement, {first.name} for one ({said})",
            stacklevel=2,
        )
    keys = table_keys(runs)
    about = {"run": [run.name for run in runs]}
    about |= {key: [plain(run.settings.get(key)) for run in runs] for key in keys}
    about["status"] = [run.status for run in runs]
    repeated = np.repeat(np.arange(len(runs)), [run.n_points for run in runs])
    table = pandas.DataFrame(about).iloc[repeated].reset_index(drop=True)
    for name in Record._fields:
        table[name] = np.concatenate([run.columns[name] for run in runs])
    return table


def plain(value: Any) -> Any:
    """A setting as one cell: numbers, texts, None and truth values as they are, lists as text."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def choices_hint(name: str, choices: Iterable[str]) -> str:
    """What to say of a name that is not among the choices: the nearest ones, then all."""
    choices = list(choices)
    near = nearest(name, choices)
    hint = f"did you mean {near}? " if near else ""
    return f"{hint}The choices are {', '.join(choices)}."


def _columns_of(rows: Sequence[Sequence[Any]]) -> dict[str, NDArray[Any]]:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(Record._fields)
    return {
        name: np.array(column, dtype=np.int64 if name in COUNTS else np.float64)
        for name, column in zip(Record._fields, values, strict=True)
    }


def _object(path: Path) -> dict[str, Any]:
    """A file's JSON object; empty if there is no file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it holds no object")
    return content


def _settings(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """The choices of groups, by what they are made of where Hydra's file is missing; the rest."""
    config = about.get("config")
    config = config if isinstance(config, dict) else {}
    targets = {
        group: node["_target_"].rpartition(".")[2].lower()
        for group, node in config.items()
        if isinstance(node, dict) and isinstance(node.get("_target_"), str)
    }
    return {**targets, **_choices(folder), **(flat(config) or _overrides(folder))}


def _choices(folder: Path) -> dict[str, str]:
    try:
        text = (folder / ".hydra" / "hydra.yaml").read_text(encoding="utf-8")
    except OSError:
        return {}
    found = _CHOICES.search(text)
    pairs = [line.split(": ", 1) for line in found.group(1).splitlines()] if found else []
    return {
        pair[0].strip(): pair[-1].strip("'\"")
        for pair in pairs
        if "/" not in pair[0] and pair[-1] != "null"  # Hydra's own groups; nothing chosen
    }


def _overrides(folder: Path) -> dict[str, Any]:
    """The command line's part of a configuration, for a run that left nothing else."""
    try:
        lines = (folder / ".hydra" / "overrides.yaml").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = [line.removeprefix("- ").strip("'\"").lstrip("+~").partition("=") for line in lines]
    return {key: _number(value) for key, equals, value in pairs if equals}


def _number(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_reference(value: Any) -> bool:
    """Whether a value only repeats another one, in a configuration that was never resolved."""
    return isinstance(value, str) and "${" in value


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sorts numbers in names by their size."""
    parts = re.split(r"(\d+)", str(path))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
