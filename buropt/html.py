"""What objects look like in notebooks: small tables, escaped, without scripts or style sheets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_CELL = 'style="text-align:left;padding:1px 10px 1px 0"'


def facts(title: str, rows: Iterable[tuple[str, Any]], note: str = "") -> str:
    """A table of names and values under a title."""
    return table(title, (), [(name, value) for name, value in rows], note)


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """A table of values as `show` writes them.

    Parameters
    ----------
    title : str
    head : sequence of str
        Names of the columns; none for a table without.
    rows : iterable of sequences
    note : str
        A line below.
    """
    from html import escape  # its table of entities is not for every start

    lines = [f"<div><b>{escape(title)}</b><table>"]
    if head:
        names = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in head)
        lines.append(f"<thead><tr>{names}</tr></thead>")
    cells = ["".join(f"<td {_CELL}>{escape(show(value))}</td>" for value in row) for row in rows]
    lines += ["<tbody>", *(f"<tr>{row}</tr>" for row in cells), "</tbody></table>"]
    if note:
        lines.append(f"<small>{escape(note)}</small>")
    return "".join([*lines, "</div>"])


def show(value: Any) -> str:
    """Numbers with six digits, nothing for None, and the rest as it prints."""
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
