"""Saving and loading arrays by their names, in the container of `files.py`."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt import files

Array = NDArray[Any]


def save_arrays(path: str | PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Save arrays by their names in one file, which `load_arrays` reads.

    The file is written at once, and its checksums are compared when it is read.

    Parameters
    ----------
    path : path
    arrays : dict
        Arrays or numbers by name: floats, integers, booleans.

    Raises
    ------
    TypeError
        If a value is not an array of real numbers, or a name not a string.
    OSError
        If the file cannot be written.
    """
    members: dict[str, files.Member] = {}
    for k, (name, value) in enumerate(arrays.items()):
        array = np.asarray(value)
        if not isinstance(name, str):
            raise TypeError(f"save_arrays: the name {name!r} is not a string")
        if array.dtype.kind not in "fiub":
            raise TypeError(
                f"save_arrays: {name!r} has dtype {array.dtype}; only real numbers and booleans "
                "can be saved"
            )
        members[f"arrays/{k}.npy"] = array
    files.write(path, "arrays", list(arrays), members)


def load_arrays(path: str | PathLike[str]) -> dict[str, Array]:
    """Load what `save_arrays` or `Oracle.save_intermediates` saved: arrays by their names.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, damaged, of a newer version, or holds something else.
    OSError
        If it cannot be opened.
    """
    with files.reading(path, "arrays", "bo.load") as file:
        return {str(name): file.array(f"arrays/{k}.npy") for k, name in enumerate(file.content)}
