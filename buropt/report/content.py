"""What a page about runs says, as plain data."""

from __future__ import annotations

import base64
import math
import shlex
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from buropt.axes import COSTS, MEASURES
from buropt.history import Record
from buropt.palette import DARK, DASHES, LIGHT, RAMP_DARK, RAMP_LIGHT
from buropt.report.thin import thin
from buropt.results import UNTOLD, Run, ends_of, plain, varying_keys
from buropt.series import is_seed, text_of

ALL_POINTS = 120_000  # on a page, so that it loads and draws in no time
FEWEST, MOST = 60, 1000  # of a run
ABOUT_MACHINE = ("cpu", "usable_cpus", "platform")  # not its name: pages are published


def content_of(runs: Sequence[Run], title: str) -> dict[str, Any]:
    """Everything but the points of the curves."""
    keys = varying_keys(runs)
    starts = sorted(str(run.about["started"]) for run in runs if "started" in run.about)
    ends = sorted(str(run.about["ended"]) for run in runs if "ended" in run.about)
    return {
        "title": title,
        "costs": {name: axis.text for name, axis in COSTS.items()},
        "short": {name: axis.short for name, axis in COSTS.items()},
        "measures": {
            name: axis.text
            for name, axis in MEASURES.items()
            if any(np.isfinite(run.columns[name]).any() for run in runs)
        },
        "keys": keys,
        "seeds": [key for key in keys if is_seed(key)],
        "runs": [_about(run, keys) for run in runs],
        "shared": _shared(runs, keys),
        "commands": _counted(command_of(run) for run in runs),
        "versions": _merged([run.about.get("versions") for run in runs]),
        "machine": _merged([run.about.get("machine") for run in runs], ABOUT_MACHINE),
        "started": starts[0] if starts else None,
        "ended": ends[-1] if ends else None,
        "palette": {
            "light": LIGHT,
            "dark": DARK,
            "rampLight": RAMP_LIGHT,
            "rampDark": RAMP_DARK,
            "dashes": DASHES,
        },
    }


def points_of(runs: Sequence[Run]) -> tuple[list[int], str]:
    """The points of all curves: how many each run has, and the columns one after the other.

    Returns
    -------
    (list of int, str)
        The numbers of points; for each run the columns of Record in their order, as little-endian
        float32: all first bytes, then all second ones and so on, by zlib, in base64.
    """
    most = min(MOST, max(FEWEST, ALL_POINTS // len(runs)))
    counts, parts = [], []
    with np.errstate(over="ignore"):
        for run in runs:
            kept = thin(run.columns, most) if run.n_points else np.arange(0)
            counts.append(len(kept))
            parts += [run.columns[name][kept].astype("<f4").tobytes() for name in Record._fields]
    planes = np.frombuffer(b"".join(parts), np.uint8).reshape(-1, 4).T  # which are alike inside
    return counts, base64.b64encode(zlib.compress(planes.tobytes())).decode()


def command_of(run: Run) -> str:
    """The command line of a run, as one would type it."""
    words = [str(word) for word in run.about.get("command", [])]
    if len(words) > 1 and words[1].endswith(("buropt/run.py", "bin/buropt")):
        words[:2] = ["python", "-m", "buropt.run"]
    return shlex.join(words)


def _about(run: Run, keys: Sequence[str]) -> dict[str, Any]:
    finite = np.isfinite(run.columns["f"]) & np.isfinite(run.columns["grad_norm_sq"])
    last = int(np.flatnonzero(finite)[-1]) if finite.any() else None
    return {
        "name": run.name,
        "status": run.status,
        "message": run.message,
        "diverged": run.diverged,
        "settings": [text_of(run, key) if key in run.settings else "–" for key in keys],
        "measured": run.n_points,
        "final": {
            name: None if last is None else _number(run.columns[name][last])
            for name in Record._fields
        },
    }


def _shared(runs: Sequence[Run], keys: Sequence[str]) -> dict[str, str]:
    """Settings that are the same in all runs."""
    first = runs[0].settings
    same = {
        key: plain(value)
        for key, value in first.items()
        if key not in UNTOLD and key not in keys and "${" not in str(value)
    }
    return {
        key: text_of(runs[0], key)
        for key, value in same.items()
        if value is not None
        and not any(same.get(end) == value for end in ends_of(key))
        and all(plain(run.settings.get(key)) == value for run in runs)
    }


def _merged(dicts: Iterable[Any], names: Sequence[str] | None = None) -> dict[str, str]:
    """What runs say under each name; several answers with a slash between."""
    found: dict[str, dict[str, None]] = {}
    for entry in dicts:
        for name, value in entry.items() if isinstance(entry, dict) else ():
            if names is None or name in names:
                found.setdefault(name, {})[str(value)] = None
    return {name: " / ".join(values) for name, values in found.items()}


def _counted(commands: Iterable[str]) -> list[tuple[str, int]]:
    return [pair for pair in Counter(commands).items() if pair[0]]


def _number(value: Any) -> float | int | None:
    """A number that JSON can say."""
    number = value.item()
    return number if math.isfinite(number) else None
