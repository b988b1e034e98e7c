"""Tables of documentation from the notes of docstrings.

A class whose docstring ends in notes, `Key: text.` each, becomes a row of a page in docs/.
"""

from __future__ import annotations

import importlib.resources
import inspect
import re


def notes(cls: type) -> dict[str, str]:
    """The notes of a class's docstring, each as one line."""
    text = inspect.getdoc(cls) or ""
    found = re.findall(
        r"^([A-Z][a-z ]+): (.*(?:\n +.*)*)", text.partition("Notes\n-----\n")[2], re.MULTILINE
    )
    return {key: " ".join(value.split()) for key, value in found}


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table in Markdown; cells are text as it is to be shown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return [*lines, ""]


def configurations(group: str) -> dict[str, str]:
    """By the name of a class the name of its configuration in a group."""
    folder = importlib.resources.files("buropt.conf").joinpath(group)
    found = {}
    for entry in folder.iterdir():
        target = re.search(r"^_target_: buropt\.\w+\.(\w+)$", entry.read_text(), re.MULTILINE)
        if target:
            found[target[1]] = entry.name.removesuffix(".yaml")
    return found


def escaped(text: str) -> str:
    """Text as Markdown shows it in a table."""
    return re.sub(r"([*~|_])", r"\\\1", text)
