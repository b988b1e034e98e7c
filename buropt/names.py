"""Names that are not valid, and the valid ones that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
