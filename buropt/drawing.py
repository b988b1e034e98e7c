"""Pictures of graphs: `to_dot` and `draw`, which are `Graph.to_dot` and `Graph.draw`.

Graphviz's `dot` draws where it is installed, otherwise a small layered layout on Matplotlib, which
is imported only then. Inputs are ovals, constants are grey, outputs are bold.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from buropt import _core

LARGEST = 2000  # nodes; a larger picture cannot be read, and its layout takes minutes
FORMATS = ("png", "svg", "pdf")
_PATIENCE = 60.0  # seconds for Graphviz

_STYLES = {
    "input": 'shape=oval, fillcolor="#cfe3f5"',
    "constant": 'fillcolor="#e6e6e6"',
    "output": 'fillcolor="#fbe3c0", penwidth=2',
    "operation": 'fillcolor="#ffffff"',
}
# The same for Matplotlib: box style, colour, width of the border.
_BOXES = {
    "input": ("round,pad=0.35,rounding_size=0.8", "#cfe3f5", 0.8),
    "constant": ("square,pad=0.35", "#e6e6e6", 0.8),
    "output": ("square,pad=0.35", "#fbe3c0", 1.8),
    "operation": ("square,pad=0.35", "#ffffff", 0.8),
}


class _Box(NamedTuple):
    """What is drawn for a node or an output."""

    kind: str  # a key of _STYLES
    lines: list[str]
    inputs: list[int]  # numbers of boxes


def to_dot(graph: _core.Graph) -> str:
    """The graph in Graphviz's DOT language; equal graphs give equal text."""
    lines = [
        "digraph buropt {",
        '  node [shape=box, style=filled, fontname="Helvetica", fontsize=10];',
        "  edge [arrowsize=0.6];",
    ]
    boxes = _boxes(graph)
    for k, box in enumerate(boxes):
        label = "\\n".join(_escape(line) for line in box.lines)
        lines.append(f'  n{k} [label="{label}", {_STYLES[box.kind]}];')
    lines += [f"  n{source} -> n{k};" for k, box in enumerate(boxes) for source in box.inputs]
    return "\n".join([*lines, "}", ""])


def draw(graph: _core.Graph, path: str | PathLike[str]) -> None:
    """Draw the graph into a .png, .svg or .pdf file.

    Raises
    ------
    ValueError
        If the file has another suffix, or the graph more than 2000 nodes.
    """
    suffix = Path(path).suffix.lstrip(".").lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"Graph.draw: the file must end in .png, .svg or .pdf, got {str(path)!r}. For other "
            "formats write graph.to_dot() to a file and run Graphviz on it."
        )
    if graph.n_nodes > LARGEST:
        raise ValueError(
            f"Graph.draw: the graph has {graph.n_nodes} nodes, and a picture shows at most "
            f"{LARGEST}. Read print(graph), or draw a smaller case of the function."
        )
    if not _draw_with_graphviz(graph, path, suffix):
        _draw_with_matplotlib(_boxes(graph), path, suffix)


def _boxes(graph: _core.Graph) -> list[_Box]:
    boxes = []
    for node in graph.nodes:
        shape = ("batched " if node["batched"] else "") + str(node["shape"])
        kind = node["op"] if node["op"] in ("input", "constant") else "operation"
        if kind == "input":
            title = node["name"] + (" (sparse)" if node["sparse"] else "")
        elif kind == "constant":
            title = "constant" if node["value"] is None else f"{node['value']:.6g}"
        else:
            title = node["op"]
        attributes = [f"{name}={_short(values)}" for name, values in node["attributes"].items()]
        boxes.append(_Box(kind, [title, *attributes, shape], node["inputs"]))
    boxes += [_Box("output", [name], [node]) for name, node in graph.outputs]
    return boxes


def _short(values: Sequence[int], limit: int = 6) -> str:
    if len(values) == 1:
        return str(values[0])
    shown = ", ".join(map(str, values[:limit]))
    return f"({shown}{', ...' if len(values) > limit else ''})"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _draw_with_graphviz(graph: _core.Graph, path: str | PathLike[str], suffix: str) -> bool:
    """Whether Graphviz is there and has drawn."""
    dot = shutil.which("dot")
    if dot is None:
        return False
    try:
        result = subprocess.run(
            [dot, f"-T{suffix}"],
            input=to_dot(graph).encode(),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if result.returncode != 0 or not result.stdout:  # built without that format
        return False
    Path(path).write_bytes(result.stdout)
    return True


# The layered layout

_CHARACTER = 0.075  # inches
_LINE = 0.135
_GAP = 0.35  # between boxes of a layer
_LAYER_GAP = 0.4
_SWEEPS = 8


def _layers(boxes: Sequence[_Box]) -> list[list[int]]:
    """The boxes by depth: below everything they use; what uses nothing right above its users."""
    depth = [0] * len(boxes)
    for k, box in enumerate(boxes):
        depth[k] = max((depth[source] + 1 for source in box.inputs), default=0)
    first_use: dict[int, int] = {}
    for k, box in enumerate(boxes):
        for source in box.inputs:
            first_use[source] = min(first_use.get(source, depth[k]), depth[k])
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for k, box in enumerate(boxes):
        layers[depth[k] if box.inputs else first_use.get(k, 1) - 1].append(k)
    return layers


def _columns(
    boxes: Sequence[_Box], layers: list[list[int]], widths: Sequence[float]
) -> list[float]:
    """The middle of each box: near the mean of its neighbours', without overlap."""
    neighbours: list[list[int]] = [list(box.inputs) for box in boxes]
    for k, box in enumerate(boxes):
        for source in box.inputs:
            neighbours[source].append(k)
    x = [0.0] * len(boxes)
    for layer in layers:
        _spread(layer, [0.0] * len(layer), widths, x)
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = {k: _mean([x[j] for j in neighbours[k]], x[k]) for k in layer}
            layer.sort(key=lambda k: wanted[k])  # stable: ties keep their order
            _spread(layer, [wanted[k] for k in layer], widths, x)
    return x


def _spread(
    layer: Sequence[int], wanted: Sequence[float], widths: Sequence[float], x: list[float]
) -> None:
    """Set the boxes side by side, each as near as it gets to where it is wanted."""
    edge = float("-inf")
    shift = []
    for k, want in zip(layer, wanted, strict=True):
        x[k] = max(want, edge + widths[k] / 2)
        edge = x[k] + widths[k] / 2 + _GAP
        shift.append(x[k] - want)
    for k in layer:  # what was pushed to the right is shared by both sides
        x[k] -= _mean(shift, 0.0)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _draw_with_matplotlib(boxes: Sequence[_Box], path: str | PathLike[str], suffix: str) -> None:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layers = _layers(boxes)
    widths = [max(len(line) for line in box.lines) * _CHARACTER + 0.25 for box in boxes]
    x = _columns(boxes, layers, widths)
    heights = [len(box.lines) * _LINE + 0.1 for box in boxes]
    y = [0.0] * len(boxes)
    height = 0.0
    for layer in layers:
        tallest = max(heights[k] for k in layer)
        for k in layer:
            y[k] = height - tallest / 2
        height -= tallest + _LAYER_GAP
    left = min((x[k] - widths[k] / 2 for k in range(len(boxes))), default=0.0) - 0.3
    right = max((x[k] + widths[k] / 2 for k in range(len(boxes))), default=1.0) + 0.3
    size = (right - left, 0.3 - height)
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(left, right), ylim=(height, 0.3))
    axes.set_axis_off()
    for k, box in enumerate(boxes):
        for source in box.inputs:
            start = x[source], y[source] - heights[source] / 2
            _arrow(axes, start, (x[k], y[k] + heights[k] / 2))
        style, colour, border = _BOXES[box.kind]
        axes.text(
            x[k],
            y[k],
            "\n".join(box.lines).replace("$", r"\$"),
            ha="center",
            va="center",
            fontsize=8,
            family="monospace",
            bbox={"boxstyle": style, "facecolor": colour, "linewidth": border},
            zorder=2,
        )
    dpi = min(150.0, 3e4 / max(size), (5e7 / (size[0] * size[1])) ** 0.5)  # of what Agg can hold
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
    with rc_context({"svg.hashsalt": "buropt"}):
        figure.savefig(path, format=suffix, dpi=dpi, metadata=metadata)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An arrow from box to box; a longer one bends, so as to pass by the boxes between."""
    bend = 0.0 if start[1] - end[1] < 2 * _LAYER_GAP else 0.12
    axes.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": "0.45",
            "linewidth": 0.8,
            "shrinkA": 0,
            "shrinkB": 0,
            "connectionstyle": f"arc3,rad={bend}",
        },
        zorder=1,
    )
