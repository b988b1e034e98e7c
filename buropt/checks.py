"""Checks of hyperparameters: one sentence says which of them is wrong, and what it must be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def number(name: str, value: object, holds: Callable[[Any], bool], must_be: str) -> Any:
    """The value, if it is a real number for which `holds` is true.

    Raises
    ------
    ValueError
        Otherwise: "`name` must be `must_be`".
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not is_number or not holds(value):
        raise ValueError(f"{name} must be {must_be}, got {value!r}")
    return value


def whole(name: str, value: object, least: int) -> int:
    """The value as an int of at least `least`; raises as `number` does."""
    must_be = f"a whole number >= {least}"
    return int(number(name, value, lambda x: least <= x < math.inf and x == int(x), must_be))
