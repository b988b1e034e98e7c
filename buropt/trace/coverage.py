"""Which functions of NumPy, scipy.special and scipy.linalg can be traced, made from the tables.

``python -m buropt.trace.coverage`` prints the page `docs/coverage.md`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy
import scipy.linalg
import scipy.special

from buropt.trace.dispatch import (
    FUNCTIONS,
    GENERIC_ALTERNATIVE,
    SCIPY_UFUNCS,
    UFUNCS,
    alternative,
)
from buropt.trace.recording import Trace

__all__ = ["Row", "coverage", "page"]

_SECTIONS = ("np", "np.linalg", "np.fft", "scipy.special", "scipy.linalg")

_HEADER = """# Which functions can be traced

Every function of NumPy, `scipy.special` and `scipy.linalg`, from NumPy {numpy} and SciPy {scipy}.
What is **supported** has exact derivatives of any order (0 where the function is piecewise
constant). What is **refused** raises an error that names the function and the line, and says what
to write instead; so do functions of other SciPy packages. Functions that make arrays from plain
numbers (`np.arange`, `np.zeros`, ...) give **constants**, and refuse traced values. {supported}
functions are supported.

This page is generated: `python -m buropt.trace.coverage > docs/coverage.md`.
"""


class Row(NamedTuple):
    """One function: ``np.exp``, ``supported``, and what to write instead of a refused one."""

    name: str
    status: str
    instead: str


def coverage() -> list[Row]:
    """Every function of these packages, section by section, sorted by name."""
    return [row for section in _SECTIONS for row in _section(section)]


def page() -> str:
    """The page as Markdown."""
    rows = coverage()
    supported = sum(row.status == "supported" for row in rows)
    lines = [_HEADER.format(numpy=np.__version__, scipy=scipy.__version__, supported=supported)]
    for section in _SECTIONS:
        lines += [f"## {section}", "", "| function | | instead |", "| --- | --- | --- |"]
        lines += [
            f"| `{row.name}` | {row.status} | {row.instead} |"
            for row in rows
            if row.name.rpartition(".")[0] == section
        ]
        lines.append("")
    return "\n".join(lines)


def public_functions(section: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The callables that a user finds in a module: functions and ufuncs, no classes."""
    package, _, inner = section.partition(".")
    module: Any = np if package == "np" else scipy
    if inner:
        module = getattr(module, inner)
    names = getattr(module, "__all__", None) or dir(module)
    for name in sorted(set(names)):
        value = getattr(module, name, None)
        if name.startswith("_") or not callable(value) or isinstance(value, type):
            continue
        if isinstance(value, types.ModuleType):
            continue
        yield name, value


def asks_its_arguments(function: Callable[..., Any]) -> bool:
    """Whether NumPy lets an argument take the call over (NEP 13 and 18)."""
    return isinstance(function, np.ufunc) or hasattr(function, "_implementation")


def _section(section: str) -> Iterator[Row]:
    for name, function in public_functions(section):
        full = f"{section}.{name}"
        if _is_supported(section, name, function):
            yield Row(full, "supported", "")
        elif section.startswith("scipy.") or asks_its_arguments(function):
            yield Row(full, "refused", _instead(full))
        else:
            yield Row(full, "constants", "")


def _is_supported(section: str, name: str, function: Callable[..., Any]) -> bool:
    if section.startswith("np"):
        return function in UFUNCS or function in FUNCTIONS
    if isinstance(function, np.ufunc):
        return name in SCIPY_UFUNCS
    return _can_be_tried(function)


def _can_be_tried(function: Callable[..., Any]) -> bool:
    """Whether a function that asks nobody can be traced all the same, by what it is made of."""

    def total(x: Any) -> Any:
        return np.sum(function(x))

    with Trace() as trace:
        try:
            trace.call(total, trace.input("x", (2, 2)))
        except (TypeError, ValueError, AttributeError):
            return False
    return True


def _instead(name: str) -> str:
    hint = alternative(name)
    return "" if hint == GENERIC_ALTERNATIVE else hint.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
