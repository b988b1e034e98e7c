"""One HTML file from a folder of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path

from buropt.history import Record
from buropt.report.content import content_of, points_of
from buropt.results import DAMAGED, Run, read_runs

PAGE = "report.html"
STYLES = ("page.css",)
SCRIPTS = ("data.js", "series.js", "scales.js", "chart.js", "table.js", "controls.js", "main.js")


def write_report(
    folder: str | PathLike[str], path: str | PathLike[str] | None = None, title: str = ""
) -> Path:
    """Write a page about a run or a sweep.

    Parameters
    ----------
    folder : path
        Of a run, or of a sweep with all its runs.
    path : path, optional
        Of the page; report.html in the folder by default.
    title : str
        The last two parts of the folder's path by default.

    Returns
    -------
    Path
        Of the page. It needs no other file and no network.

    Raises
    ------
    FileNotFoundError
        If there is no run in the folder.
    ValueError
        If all runs in it are damaged.
    """
    folder = Path(folder)
    runs = read_runs(folder)
    if all(run.status == DAMAGED for run in runs):
        raise ValueError(f"nothing in {folder} can be read: {'; '.join(r.message for r in runs)}")
    page = page_of(runs, title or "/".join(folder.resolve().parts[-2:]))
    out = folder / PAGE if path is None else Path(path)
    out.write_text(page, encoding="utf-8")
    return out


def page_of(runs: Sequence[Run], title: str) -> str:
    """The page as text."""
    counts, points = points_of(runs)
    content = content_of(runs, title) | {"counts": counts, "columns": Record._fields}
    data = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    parts = {
        "title": escape(title),
        "style": "\n".join(map(_asset, STYLES)),
        "data": data.replace("<", "\\u003c"),  # so that no text can end the script element
        "points": points,
        "script": "\n".join(map(_asset, SCRIPTS)),
    }
    return re.sub(r"{{(\w+)}}", lambda mark: parts[mark[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (files("buropt.report") / "page" / name).read_text(encoding="utf-8")
