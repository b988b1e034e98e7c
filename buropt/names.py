"""Names: what they stand for, and what was probably meant by one that stands for nothing."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that begins with this one, or the most similar one; None if none is similar."""
    names = list(names)
    begin = [valid for valid in names if name and valid.startswith(name)]
    similar = begin or difflib.get_close_matches(name, names, n=1)
    return similar[0] if similar else None


def require_choice(name: str, value: str, valid: Iterable[str]) -> None:
    """ValueError, with the nearest valid value and all of them, if it is none of them."""
    valid = list(valid)
    if value not in valid:
        near = nearest(str(value), valid)
        hint = f"; did you mean {name}={near}?" if near else "."
        choices = ", ".join(valid)
        raise ValueError(f"{name}={value} is not a choice{hint} The choices are {choices}.")


def named(key: str, name: str, example: str) -> Callable[..., Any]:
    """The function or class that a configuration's key names, as in my_module.my_loss.

    Raises
    ------
    ValueError
        If there is no such thing; it tells where modules are looked for.
    """
    module, _, attribute = name.rpartition(".")
    try:
        found: Any = pkgutil.resolve_name(f"{module}:{attribute}")
    except (AttributeError, ModuleNotFoundError, ValueError) as error:
        where = ""
        if isinstance(error, ModuleNotFoundError):
            where = "; a module is looked for in the current folder, then where Python finds others"
        raise ValueError(f"{key} must name {example}, got {name!r}: {error}{where}") from error
    if not callable(found):
        raise ValueError(f"{key} names {name}, which cannot be called")
    target: Callable[..., Any] = found
    return target
