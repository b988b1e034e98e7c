"""Curves from runs: one for all that differ in nothing but their seed, with a mean and a band.

On a logarithmic axis the mean is the geometric one, and a band of deviations is one of logarithms.
A run that diverged takes no part in the mean of its series: it is a curve of its own, so that
nobody overlooks it. The page of `buropt.report` does the same in the browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt.results import Run, choices_hint, table_keys, varying_keys

Floats = NDArray[np.float64]
Band = Literal["range", "deviation", "none"]
MOST_POINTS = 2000  # of a mean; more than can be seen
DIGITS, SHORT = 12, 4  # of a number in a setting, and in a label if that is enough
ALL = "all runs"


@dataclass(frozen=True)
class Series:
    """Runs that differ in nothing but their seed.

    Attributes
    ----------
    label : str
        Short and unique among the series: marina, k=5.
    runs : list of Run
    """

    label: str
    runs: list[Run]


class Curve(NamedTuple):
    """A mean with its band, all of shape (points,), or one run (`low` and `high` are None)."""

    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


def is_seed(key: str) -> bool:
    """Whether runs that differ in this setting are repetitions of one another."""
    return key.rpartition(".")[2] == "seed"


def group(runs: Sequence[Run]) -> list[Series]:
    """The series among runs, in the order of their first runs."""
    keys = [key for key in varying_keys(runs) if not is_seed(key)]
    members: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        members.setdefault(tuple(text_of(run, key) for key in keys), []).append(run)
    told = telling_keys(keys, list(members))

    def labels(digits: int) -> list[str]:
        return [
            ", ".join(_short(keys[k], values[k], digits) for k in told) or ALL for values in members
        ]

    short = labels(SHORT)
    if len(set(short)) < len(short):
        short = labels(DIGITS)
    if not told and "optimizer" in runs[0].settings:
        short = [text_of(runs[0], "optimizer")]
    return [Series(label, own) for label, own in zip(short, members.values(), strict=True)]


def telling_keys(keys: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Which keys are enough to tell the rows of their values apart; the optimizer stays.

    A compressor that each method has its own of need not be told, for example.
    """
    told = list(range(len(keys)))
    for k in [k for k, key in enumerate(keys) if key != "optimizer"]:
        rest = [j for j in told if j != k]
        if len({tuple(row[j] for j in rest) for row in rows}) == len(rows):
            told = rest
    return told


def select(runs: Sequence[Run], filters: Mapping[str, Sequence[str]]) -> list[Run]:
    """The runs whose settings have, for each key, one of the values, written as on a command line.

    Raises
    ------
    ValueError
        If a key is not one of the settings, or no run is left.
    """
    for key in filters:
        require_key(runs, key)
    chosen = list(runs)
    for key, values in filters.items():
        there = dict.fromkeys(text_of(run, key) for run in chosen)
        chosen = [run for run in chosen if text_of(run, key) in {_text(value) for value in values}]
        if not chosen:
            wanted = " or ".join(values)
            raise ValueError(f"no run has {key}={wanted}: there are {', '.join(there)}")
    return chosen


def require_key(runs: Sequence[Run], key: str) -> None:
    """Refuse a key that no run has."""
    if key != "status" and not any(key in run.settings for run in runs):
        hint = choices_hint(key, table_keys(runs))
        raise ValueError(f"{key} is not a setting of these runs: {hint}")


def text_of(run: Run, key: str) -> str:
    """A setting, or the status, as it is written on a command line."""
    return run.status if key == "status" else _text(run.settings.get(key))


def curve_of(run: Run, x: str, y: str, log: bool = True) -> Curve:
    """One run, without its points that are not finite; on a log axis, without those <= 0."""
    costs, values = run.columns[x].astype(np.float64), run.columns[y]
    shown = np.isfinite(costs) & np.isfinite(values)
    if log:
        shown &= values > 0
    return Curve(costs[shown], values[shown])


def mean_of(
    runs: Sequence[Run], x: str, y: str, *, log: bool = True, band: Band = "range"
) -> Curve | None:
    """The mean and the band of runs over the costs that all of them have reached.

    Runs are interpolated between their measurements, on a log axis in the logarithm.

    Parameters
    ----------
    runs : sequence of Run
        Those without a point to show are left out.
    x, y : str
        Columns.
    log : bool
        Whether y is a logarithmic axis.
    band : {"range", "deviation", "none"}
        From the least to the largest, or one standard deviation to either side.

    Returns
    -------
    Curve or None
        None if there is nothing to show.
    """
    curves = [curve for run in runs if len((curve := curve_of(run, x, y, log)).x)]
    if len(curves) < 2:
        return curves[0] if curves else None
    first, last = max(c.x[0] for c in curves), min(c.x[-1] for c in curves)
    if last < first:
        return None
    grid = np.unique(np.concatenate([c.x for c in curves]))
    grid = grid[(grid >= first) & (grid <= last)]
    if len(grid) > MOST_POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, MOST_POINTS).round().astype(np.intp)]
    rows = np.stack([np.interp(grid, c.x, np.log(c.y) if log else c.y) for c in curves])
    mean = rows.mean(axis=0)
    back = np.exp if log else np.asarray
    if band == "none":
        return Curve(grid, back(mean))
    low, high = rows.min(axis=0), rows.max(axis=0)
    if band == "deviation":
        spread = rows.std(axis=0, ddof=1)
        low, high = mean - spread, mean + spread
    return Curve(grid, back(mean), back(low), back(high))


def _short(key: str, text: str, digits: int) -> str:
    with suppress(ValueError):
        text = text if float(text).is_integer() else f"{float(text):.{digits}g}"
    return text if key in ("optimizer", "problem", "data") else f"{key.rpartition('.')[2]}={text}"


def top_of(runs: Sequence[Run], x: str, y: str, log: bool = True) -> float:
    """Where a y axis ends: diverged runs would leave no room for the others.

    Ten times (on a linear axis twice) what the others reach, and where the diverged ones start.
    """
    largest = 0.0
    for run in runs:
        values = curve_of(run, x, y, log).y
        if len(values):
            largest = max(largest, float(values[0] if run.diverged else values.max()))
    return largest * (10 if log else 2)


def _text(value: Any) -> str:
    """As on a command line, numbers in one way: 1e-3 and 0.001 are the same."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    try:
        return f"{float(value):.{DIGITS}g}"
    except (TypeError, ValueError):
        return str(value)
