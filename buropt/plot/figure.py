"""Figures of a sweep for publication: readable in print, in grey, and with any colour vision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from buropt.axes import ALIASES, AXES
from buropt.palette import DASHES, LIGHT, MARKERS, RAMP_LIGHT
from buropt.picture import LARGEST
from buropt.results import Run, choices_hint
from buropt.series import Band, Series, curve_of, group, mean_of, require_key, text_of, top_of

FORMATS = (".pdf", ".png", ".svg", ".eps")
WIDTH, HEIGHT = 3.4, 2.5  # inches of a panel: a column of most journals
DPI = 300
MARKED = 8  # places on a curve
# Points that a letter of a legend takes, the line before its text, and a row.
LETTER, HANDLE, LINE = 4.0, 36.0, 12.5
STYLE: Any = {  # a dict of rcParams
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9,
    "axes.titlesize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 4),
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "ps.fonttype": 42,
    "svg.hashsalt": "buropt",
}


def column(name: str, kind: str) -> str:
    """The column that a name means: bits is bits_up.

    Raises
    ------
    ValueError
        If there is none; names the nearest.
    """
    found = ALIASES.get(name, name)
    if found not in AXES:
        raise ValueError(f"{kind} {name} is not a column: {choices_hint(name, [*AXES, *ALIASES])}")
    return found


def plot_runs(
    runs: Sequence[Run],
    path: str | PathLike[str],
    *,
    x: str = "bits",
    y: Sequence[str] = ("grad_norm_sq",),
    hue: str | None = None,
    panels: str | None = None,
    title: str = "",
    log_x: bool = False,
    log_y: bool = True,
    band: Band = "range",
    legend: bool = True,
    size: tuple[float, float] = (WIDTH, HEIGHT),
    dpi: int = DPI,
) -> None:
    """Draw runs into a .pdf, .png, .svg or .eps file: a panel for each y.

    Runs that differ in their seed alone are one curve, their mean, with a band; see
    `buropt.series`. Runs that diverged are thin lines that end in a cross.

    Parameters
    ----------
    runs : sequence of Run
        From `buropt.results.read_runs`.
    path : path
    x, y : str, sequence of str
        Columns of a record, or short names for them.
    hue : str, optional
        The setting that gives curves their colours; by default every series has its own.
    panels : str, optional
        A row of panels for each value of this setting, in place of one for all.
    title : str
    log_x, log_y : bool
    band : {"range", "deviation", "none"}
    legend : bool
    size : (float, float)
        Width and height of a panel in inches.
    dpi : int
        Dots an inch of a .png.

    Raises
    ------
    ValueError
        If the suffix, a column or the key is unknown, or there is nothing to draw.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path} must end in one of {', '.join(FORMATS)}")
    costs, measures = column(x, "x"), [column(name, "y") for name in y]
    if hue is not None:
        require_key(runs, hue)
    rows = _rows(runs, panels)
    styles = _styles([series for _, row in rows for series in row], hue)
    with rc_context(STYLE):
        shape = (len(rows), len(measures)) if len(measures) > 1 else _grid(len(rows))
        figure = Figure(figsize=(size[0] * shape[1], size[1] * shape[0]), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(*shape, squeeze=False).ravel()
        for unused in grid[len(rows) * len(measures) :]:
            unused.remove()
        for number, ((name, row), measure) in enumerate(product(rows, measures)):
            axes = grid[number]
            shown = [run for series in row for run in series.runs]
            top = min(top_of(shown, costs, measure, log_y), LARGEST)
            for series in row:
                _draw(axes, series, costs, measure, styles[series.label], log_y, band, top)
            if not axes.lines:
                raise ValueError(
                    f"there is nothing to draw: no run has {measure} known"
                    f"{' and positive' if log_y else ''} over {costs}"
                )
            _finish(axes, costs, measure, log_x, log_y)
            axes.set_title(name)
        if title:
            figure.suptitle(title)
        if legend:
            _legend(figure, list(grid[: len(rows) * len(measures)]))
        metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
        figure.savefig(path, dpi=dpi, metadata=metadata.get(path.suffix.lower(), {}))


def _rows(runs: Sequence[Run], key: str | None) -> list[tuple[str, list[Series]]]:
    """The series of each value of the setting, with its name; without a key, of all runs."""
    if key is None:
        return [("", group(runs))]
    require_key(runs, key)
    values = dict.fromkeys(text_of(run, key) for run in runs)
    return [
        (
            f"{key.rpartition('.')[2]} = {value}" if _is_number(value) else value,
            group([run for run in runs if text_of(run, key) == value]),
        )
        for value in values
    ]


def _grid(n: int) -> tuple[int, int]:
    """Rows and columns for n panels of one kind."""
    columns = min(n, 2 if n in (2, 4) else 3)
    return -(-n // columns), columns


def _styles(all_series: Sequence[Series], hue: str | None) -> dict[str, dict[str, Any]]:
    """By label, the same in all panels: colour by the hue's value, dash by what else differs."""
    first: dict[str, Series] = {}
    for series in all_series:
        first.setdefault(series.label, series)
    if hue is None:
        hues = list(range(len(first)))
    else:
        texts = [text_of(series.runs[0], hue) for series in first.values()]
        values = sorted(set(texts), key=_by_size)
        hues = [values.index(text) for text in texts]
    colours = _colours(max(hues, default=0) + 1)
    seen: dict[int, int] = {}
    styles = {}
    for number, (label, place) in enumerate(zip(first, hues, strict=True)):
        # Without a hue a dash of its own goes with each colour; else those of one colour differ.
        within = place if hue is None else seen.setdefault(place, 0)
        seen[place] = seen.get(place, 0) + 1
        dash = DASHES[within % len(DASHES)]
        styles[label] = {
            "color": colours[place],
            "linestyle": (0, dash) if dash else "-",
            "marker": MARKERS[number % len(MARKERS)],
            "offset": number % MARKED,  # so that marks of curves at one place stand apart
        }
    return styles


def _colours(n: int) -> Sequence[Any]:
    if n <= len(LIGHT):
        return LIGHT
    ramp = LinearSegmentedColormap.from_list("buropt", RAMP_LIGHT)
    return [ramp(k / (n - 1)) for k in range(n)]


def _is_number(text: str) -> bool:
    return _by_size(text)[0] < np.inf


def _by_size(text: str) -> tuple[float, str]:
    try:
        return float(text), text
    except ValueError:
        return np.inf, text


def _draw(
    axes: Axes,
    series: Series,
    x: str,
    y: str,
    style: dict[str, Any],
    log: bool,
    band: Band,
    top: float,
) -> None:
    steady = [run for run in series.runs if not run.diverged]
    lost = [curve_of(run, x, y, log) for run in series.runs if run.diverged]
    label = series.label
    if lost:
        label += f" ({len(lost)} of {len(series.runs)} diverged)"
    curve = mean_of(steady, x, y, log=log, band=band)
    if curve is not None:
        every = max(1, len(curve.x) // MARKED)
        axes.plot(
            *(curve.x, curve.y),
            label=label,
            linewidth=1.3,
            markersize=3.5,
            markevery=(min(style["offset"] * every // MARKED, len(curve.x) - 1), every),
            **{name: value for name, value in style.items() if name != "offset"},
        )
        if curve.low is not None and curve.high is not None:
            axes.fill_between(
                curve.x, curve.low, curve.high, color=style["color"], alpha=0.18, linewidth=0
            )
    for number, single in enumerate(lost):
        shown = single.y <= top
        ends: dict[str, Any] = {"marker": "x", "markersize": 5, "markevery": [-1]}
        axes.plot(
            *(single.x[shown], single.y[shown]),
            label=label if curve is None and number == 0 else None,
            linewidth=0.7,
            color=style["color"],
            linestyle=style["linestyle"],
            **(ends if shown.any() else {}),
        )


def _finish(axes: Axes, x: str, y: str, log_x: bool, log_y: bool) -> None:
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(AXES[x].tex)
    axes.set_ylabel(AXES[y].tex)
    axes.grid(True, which="major", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Inside of a single panel while it is short; else in rows below, for which there is room."""
    told = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if len(told) > 6 or len(panels) > 1:
        room = figure.get_figwidth() * 72 / (max(map(len, told)) * LETTER + HANDLE)
        columns = max(1, min(len(told), int(room)))
        lines = -(-len(told) // columns)
        figure.set_figheight(figure.get_figheight() + lines * LINE / 72)
        figure.legend(
            *(told.values(), told.keys()),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            handlelength=2.8,
        )
    elif len(told) > 1:
        panels[0].legend(frameon=False, handlelength=2.8)
