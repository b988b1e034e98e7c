"""A record's columns as axes: what they are called in figures, on pages and on the command line."""

from __future__ import annotations

from typing import NamedTuple


class Axis(NamedTuple):
    """One column.

    Attributes
    ----------
    text : str
        Its label on a page, with its unit.
    tex : str
        The same for Matplotlib.
    short : str
        Where there is little room.
    aliases : tuple of str
        Other names on the command line.
    """

    text: str
    tex: str
    short: str
    aliases: tuple[str, ...] = ()


COSTS = {
    "iteration": Axis("iterations", "iterations", "iterations", ("iterations",)),
    "oracle_calls": Axis("oracle calls", "oracle calls", "oracle calls", ("calls",)),
    "epochs": Axis("passes over the data", "passes over the data", "passes", ("passes",)),
    "bits_up": Axis("uplink bits per worker", "uplink bits per worker", "bits up", ("bits", "up")),
    "bits_down": Axis(
        "downlink bits to a worker", "downlink bits to a worker", "bits down", ("down",)
    ),
    "seconds": Axis("time of the method [s]", "time of the method [s]", "seconds", ("time",)),
}
MEASURES = {
    "f_gap": Axis("f(x) − f*", r"$f(x) - f^*$", "f(x) − f*", ("gap",)),
    "grad_norm_sq": Axis("‖∇f(x)‖²", r"$\|\nabla f(x)\|^2$", "‖∇f(x)‖²", ("grad", "gradient")),
    "distance_sq": Axis("‖x − x*‖²", r"$\|x - x^*\|^2$", "‖x − x*‖²", ("distance",)),
    "f": Axis("f(x)", "$f(x)$", "f(x)", ("value", "loss")),
}
AXES = COSTS | MEASURES
ALIASES = {alias: name for name, axis in AXES.items() for alias in axis.aliases}
