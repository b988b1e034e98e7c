"""Figures of a sweep for publication: readable in print, in grey, and with any colour vision."""

from __future__ import annotations

from collections.abc import Sequence
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
from buropt.plot.history import LARGEST
from buropt.results import Run, nearest
from buropt.series import Band, Series, curve_of, group, mean_of, require_key, text_of, top_of

FORMATS = (".pdf", ".png", ".svg", ".eps")
WIDTH, HEIGHT = 3.4, 2.5  # inches of a panel: a column of most journals
MARKED = 8  # places on a curve
LETTER, HANDLE = 4.0, 36.0  # points that a letter of a legend takes, and the line before its text
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
        raise ValueError(f"{kind} {name} is not a column: {nearest(name, [*AXES, *ALIASES])}")
    return found


def plot_runs(
    runs: Sequence[Run],
    path: str | PathLike[str],
    *,
    x: str = "bits",
    y: Sequence[str] = ("grad_norm_sq",),
    hue: str | None = None,
    title: str = "",
    log_x: bool = False,
    log_y: bool = True,
    band: Band = "range",
    legend: bool = True,
    size: tuple[float, float] = (WIDTH, HEIGHT),
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
    title : str
    log_x, log_y : bool
    band : {"range", "deviation", "none"}
    legend : bool
    size : (float, float)
        Width and height of a panel in inches.

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
    all_series = group(runs)
    styles = _styles(all_series, hue)
    with rc_context(STYLE):
        figure = Figure(figsize=(size[0] * len(measures), size[1]), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(measures), squeeze=False)[0]
        for axes, measure in zip(panels, measures, strict=True):
            top = min(top_of(runs, costs, measure, log_y), LARGEST)
            for series, style in zip(all_series, styles, strict=True):
                _draw(axes, series, costs, measure, style, log_y, band, top)
            if not axes.lines:
                raise ValueError(
                    f"there is nothing to draw: no run has {measure} known"
                    f"{' and positive' if log_y else ''} over {costs}"
                )
            _finish(axes, costs, measure, log_x, log_y)
        if title:
            figure.suptitle(title)
        if legend:
            _legend(figure, panels[0], len(measures) > 1)
        metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
        figure.savefig(path, dpi=300, metadata=metadata.get(path.suffix.lower(), {}))


def _styles(all_series: Sequence[Series], hue: str | None) -> list[dict[str, Any]]:
    """Colour by the hue's value, dash by what else a series differs in; marker by both."""
    if hue is None:
        hues = list(range(len(all_series)))
    else:
        texts = [text_of(series.runs[0], hue) for series in all_series]
        values = sorted(set(texts), key=_by_size)
        hues = [values.index(text) for text in texts]
    colours = _colours(max(hues, default=0) + 1)
    seen: dict[int, int] = {}
    styles = []
    for number, place in enumerate(hues):
        # Without a hue a dash of its own goes with each colour; else those of one colour differ.
        within = place if hue is None else seen.setdefault(place, 0)
        seen[place] = seen.get(place, 0) + 1
        dash = DASHES[within % len(DASHES)]
        styles.append(
            {
                "color": colours[place],
                "linestyle": (0, dash) if dash else "-",
                "marker": MARKERS[number % len(MARKERS)],
                "offset": number % MARKED,  # so that marks of curves at one place stand apart
            }
        )
    return styles


def _colours(n: int) -> Sequence[Any]:
    if n <= len(LIGHT):
        return LIGHT
    ramp = LinearSegmentedColormap.from_list("buropt", RAMP_LIGHT)
    return [ramp(k / (n - 1)) for k in range(n)]


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


def _legend(figure: Figure, axes: Axes, outside: bool) -> None:
    """Inside of a single panel while it is short; else in a row below all."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 6 or outside:
        room = figure.get_figwidth() * 72 / (max(map(len, labels)) * LETTER + HANDLE)
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=max(1, min(len(labels), int(room))),
            frameon=False,
        )
    elif len(labels) > 1:
        axes.legend(frameon=False, handlelength=2.8)
