"""The kinds of traced values: floats, integers and masks, all held in the graph's float dtype.

A graph computes in one float dtype. An integer is held there exactly, a mask as 0 or 1; the
recording alone knows which is which, and gives results the kind that NumPy would give them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Kind: TypeAlias = Literal["f", "i", "b"]

# The largest magnitude up to which every integer is a number of the dtype.
_LARGEST = {np.dtype(np.float32): 2**24, np.dtype(np.float64): 2**53}


def kind_of(dtype: np.dtype[Any]) -> Kind:
    """The kind of the values of an array of real numbers."""
    if dtype.kind == "b":
        return "b"
    return "i" if dtype.kind in "iu" else "f"


def distinct(values: Any) -> NDArray[Any]:
    """The values of an array without repeats, sorted (`np.unique` would import `numpy.ma`)."""
    array = np.sort(np.asarray(values), axis=None)
    return array[np.concatenate([[True], array[1:] != array[:-1]])] if array.size else array


def highest(kinds: Iterable[Kind]) -> Kind:
    """The kind that can hold all of `kinds`: masks become integers, and integers floats."""
    present = set(kinds)
    return "f" if "f" in present else "i" if "i" in present else "b"


def inexact(integers: NDArray[Any] | int, dtype: np.dtype[Any]) -> int | None:
    """An integer that `dtype` cannot tell from its neighbours, if there is one."""
    if isinstance(integers, int):
        return integers if abs(integers) > _LARGEST[dtype] else None
    if integers.size == 0 or integers.dtype.itemsize < dtype.itemsize:
        return None
    for extreme in (int(integers.min()), int(integers.max())):
        if abs(extreme) > _LARGEST[dtype]:
            return extreme
    return None


def inexact_text(integer: int, dtype: np.dtype[Any]) -> tuple[str, str]:
    """Why an integer is refused, and what to do instead, as two clauses."""
    instead = "convert it to floats, which may round it"
    if dtype == np.float32:
        instead += ", or compute in float64"
    what = f"holds {integer}, but {dtype} tells integers apart only up to {_LARGEST[dtype]}"
    return what, instead


def check_exact(integers: NDArray[Any], name: str, dtype: np.dtype[Any]) -> None:
    """Raise `ValueError` if an array of integers that is called `name` has an inexact one."""
    integer = inexact(integers, dtype)
    if integer is not None:
        what, instead = inexact_text(integer, dtype)
        raise ValueError(f"{name} {what}. Instead: {instead}.")
