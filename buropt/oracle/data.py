"""The data of an oracle: arrays with one row per sample, and their split among workers."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buropt import _core
from buropt.trace.kinds import Kind, check_exact, kind_of
from buropt.tree import Structure, check_plain, flatten_leaves


class RowSpec(NamedTuple):
    """What is known of a row of data without the data."""

    path: str  # such as data[1] or data['tokens']
    is_csr: bool
    shape: tuple[int, ...]  # of one sample
    kind: Kind  # whether it was given as floats, integers or booleans


class SlicedCopies:
    """What the programs of an oracle share of each sparse array. A pickled oracle makes its own."""

    def __init__(self) -> None:
        # With the arrays, so that no other one gets the address of one of them.
        self._made: dict[int, tuple[Any, _core.SlicedCopy]] = {}

    def of(self, array: Any) -> _core.SlicedCopy:
        """That of one of the arrays."""
        return self._made.setdefault(id(array), (array, _core.SlicedCopy()))[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return SlicedCopies, ()


class OracleData(NamedTuple):
    """Arrays of one row per sample, and how the loss gets the rows."""

    arrays: tuple[Any, ...]  # dense arrays of the oracle's dtype, or CSR
    n: int
    rows: tuple[RowSpec, ...]  # one for each array
    structure: Structure  # the containers
    sliced: SlicedCopies

    def arguments(self, rows: Sequence[Any]) -> tuple[Any, ...]:
        """The loss's arguments after the parameters: the parts of a tuple or list, or one tree."""
        sample = self.structure.unflatten(rows)
        return tuple(sample) if isinstance(sample, tuple | list) else (sample,)

    def like(self, rows: Sequence[RowSpec], name: str) -> OracleData:
        """The same data for a loss that was traced with such rows; refuses others.

        Numbers of any kind may stand for floats, but floats not for integers or booleans.

        Raises
        ------
        ValueError
            If they differ in more than the number of samples.
        """
        fits = len(self.rows) == len(rows) and all(
            own[:3] == row[:3] and row.kind in ("f", own.kind)
            for own, row in zip(self.rows, rows, strict=True)
        )
        if not fits:
            raise ValueError(
                f"the data do not fit the loss in {name}: it needs {describe_rows(rows)}, got "
                f"{describe_rows(self.rows)}"
            )
        return self._replace(rows=tuple(rows))


def describe_rows(rows: Sequence[RowSpec]) -> str:
    """Say in words what the arrays of an oracle are."""
    kinds = {"f": "numbers", "i": "integers", "b": "booleans"}
    texts = []
    for path, is_csr, shape, kind in rows:
        what = "a sparse matrix" if is_csr else f"an array of {kinds[kind]}"
        axes = ", ".join(["N", *map(str, shape)])
        texts.append(f"{path} {what} of shape ({axes}{'' if shape else ','})")
    return ", ".join(texts) or "no data"


_EMPTY = OracleData((), 0, (), Structure("tuple"), SlicedCopies())


def read_data(data: Any, dtype: np.dtype[Any]) -> OracleData:
    """Check the data of `compile` and convert them to the oracle's dtype where they differ."""
    if data is None:
        return _EMPTY
    given, structure = flatten_leaves(_arrays_of_lists(data))
    if structure.kind == "leaf":
        structure = Structure("tuple", (structure,))
    paths = structure.paths("data")
    arrays = [_read_array(one, path, dtype) for one, path in zip(given, paths, strict=True)]
    if not arrays:
        raise ValueError("data is empty; pass a tuple of arrays, one row per sample, or None")
    n = arrays[0].shape[0]
    for path, array in zip(paths, arrays, strict=True):
        if array.shape[0] != n:
            raise ValueError(
                f"{path} has {array.shape[0]} samples and {paths[0]} has {n}; every array needs "
                "one row per sample"
            )
    if n == 0:
        raise ValueError("data has no samples; pass at least one row")
    rows = tuple(
        RowSpec(path, is_sparse(array), tuple(array.shape[1:]), _kind(one))
        for path, array, one in zip(paths, arrays, given, strict=True)
    )
    return OracleData(tuple(arrays), n, rows, structure, SlicedCopies())


def _arrays_of_lists(data: Any, is_top: bool = True) -> Any:
    """The data with nested lists of numbers as arrays, so that other lists are containers."""
    if isinstance(data, dict):
        return {key: _arrays_of_lists(part, False) for key, part in data.items()}
    if not isinstance(data, tuple | list):
        return data
    if not is_top and _is_numbers(data):
        return np.asarray(data)
    parts = [_arrays_of_lists(part, False) for part in data]
    if isinstance(data, list):
        return parts
    return type(data)(*parts) if hasattr(data, "_fields") else tuple(parts)


def _is_numbers(part: Any) -> bool:
    """Whether it is a number or a nested list of numbers."""
    if isinstance(part, tuple | list):
        return all(_is_numbers(one) for one in part)
    return isinstance(part, int | float | np.generic)


def _kind(array: Any) -> Kind:
    return "f" if is_sparse(array) else kind_of(np.asarray(array).dtype)


def _read_array(array: Any, name: str, dtype: np.dtype[Any]) -> Any:
    if is_sparse(array):
        csr = read_csr(array, name)
        if csr.shape[1] > np.iinfo(np.int32).max:
            raise ValueError(f"{name} has {csr.shape[1]} columns; at most 2**31 - 1 are supported")
        return csr_array(
            (
                np.ascontiguousarray(csr.data, dtype),
                np.ascontiguousarray(csr.indices, np.int32),
                np.ascontiguousarray(csr.indptr, np.int64),
            ),
            shape=csr.shape,
        )
    check_plain(array, name)
    dense = np.asarray(array)
    if dense.ndim == 0:
        raise ValueError(f"{name} is a single number; data need one row per sample")
    check_real(dense, name)
    if kind_of(dense.dtype) == "i":
        check_exact(dense, name, dtype)
    return np.ascontiguousarray(dense, dtype)


def is_sparse(array: Any) -> bool:
    """Whether it is a sparse matrix of SciPy's, who has then been imported."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(array))


def csr_array(parts: Any, shape: tuple[int, ...] | None = None) -> Any:
    """`scipy.sparse.csr_array`; its import would double the time and memory of buropt's own."""
    from scipy.sparse import csr_array

    return csr_array(parts, shape=shape)


def nbytes(array: Any) -> int:
    """The memory of an array of samples."""
    if is_sparse(array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(array.nbytes)


def check_real(array: Any, name: str) -> None:
    """Refuse what is not an array of floats, integers or booleans."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}; pass real numbers")


def read_csr(matrix: Any, name: str) -> Any:
    """A sparse matrix as a CSR array without repeated entries; the caller's stays as it is.

    Raises
    ------
    ValueError, TypeError
        If it has not two axes, its values are not real, or its indices do not fit its shape.
    """
    check_real(matrix, name)
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} has shape {matrix.shape}; a sparse matrix needs one row per sample"
        )
    try:
        if hasattr(matrix, "check_format"):  # before conversions, which trust the indices
            copy.copy(matrix).check_format(full_check=True)  # drops spare room at the arrays' ends
        csr = csr_array(matrix)
        csr.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}") from error
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def read_shards(
    workers: int | Sequence[ArrayLike] | None, n: int, name: str = "workers"
) -> list[NDArray[np.int64]]:
    """Each worker's samples; refuses what is not a partition of range(n)."""
    if workers is None:
        workers = 1
    if isinstance(workers, int | np.integer) and not isinstance(workers, bool):
        if not 1 <= workers <= n:
            raise ValueError(
                f"{name}={workers} does not fit {n} samples; pass a number from 1 to {n}"
            )
        return [part.astype(np.int64) for part in np.array_split(np.arange(n), int(workers))]
    if not isinstance(workers, Sequence) or isinstance(workers, str):
        raise TypeError(
            f"{name} must be a number or a list of integer arrays, got {type(workers).__name__}"
        )
    shards = []
    for i, worker in enumerate(workers):
        shard = np.asarray(worker)
        if shard.dtype.kind not in "iu" or shard.ndim != 1 or shard.size == 0:
            raise ValueError(
                f"{name}[{i}] must be a non-empty 1-D array of sample numbers, got dtype "
                f"{shard.dtype} and shape {shard.shape}"
            )
        shards.append(np.ascontiguousarray(shard, np.int64))
    together = np.concatenate(shards) if shards else np.zeros(0, np.int64)
    if not np.array_equal(np.sort(together), np.arange(n)):
        raise ValueError(
            f"{name} must hold each of the {n} samples exactly once; found {together.size} "
            f"numbers, {np.unique(together).size} of them different"
        )
    return shards
