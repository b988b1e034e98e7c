"""The picture of one history."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

# Two of Okabe and Ito's colours, told apart with any colour vision; the line styles differ as well.
GAP_STYLE: dict[str, Any] = {"color": "#D55E00", "linestyle": "-", "linewidth": 1.8}
GRADIENT_STYLE: dict[str, Any] = {"color": "#0072B2", "linestyle": "--", "linewidth": 1.8}
LARGEST = 1e250  # matplotlib's logarithmic ticks overflow near the largest number
MARKED_POINTS = 20  # shorter histories also show where they were measured


class Picture(Figure):
    """A figure that notebooks show, whether or not they know Matplotlib's figures."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


class Columns(Protocol):
    """What is drawn of a `History`: its columns by name, each of shape (len(columns),)."""

    def __len__(self) -> int: ...
    def __getitem__(self, column: str, /) -> NDArray[Any]: ...


def picture_of(history: Columns, title: str = "") -> Picture:
    """Draw `f - f*` (where known) and `|grad f|^2`, log scale, against iterations and uplink bits.

    Nothing is shown on a screen, and matplotlib's global state is not touched.

    Parameters
    ----------
    history : History
        With at least one record; values that are not positive and finite leave gaps.
    title : str
    """
    figure = Picture(figsize=(10, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw(left, history["iteration"], history)
    _draw(right, history["bits_up"], history)
    left.set_xlabel("iteration")
    left.set_ylabel("distance from the solution")
    right.set_xlabel("uplink bits per worker")
    left.legend(frameon=False)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def set_backend(name: str) -> None:
    """Do what MPLBACKEND=name does for later use of pyplot, but ignore a name that is unknown."""
    with suppress(ValueError):
        rcParams["backend"] = name


def _draw(axes: Axes, x: NDArray[Any], history: Columns) -> None:
    marker = "o" if len(history) <= MARKED_POINTS else ""
    drawn = False
    for column, label, style in (
        ("f_gap", r"$f(x) - f^*$", GAP_STYLE),
        ("grad_norm_sq", r"$\|\nabla f(x)\|^2$", GRADIENT_STYLE),
    ):
        y = history[column]
        y = np.where((y > 0) & (y < LARGEST), y, np.nan)
        if not np.isnan(y).all():
            axes.plot(x, y, label=label, marker=marker, markersize=3, **style)
            drawn = True
    if drawn:  # a log scale without a positive value would be a warning and an empty axis
        axes.set_yscale("log")
    else:
        axes.plot([], [], label="no positive value")
    axes.grid(True, which="major", color="0.88", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
