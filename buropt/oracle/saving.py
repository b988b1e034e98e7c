"""Saving and loading the `Parts` of an oracle, in the container of `files.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt import _core, files, tree_json
from buropt.oracle.data import OracleData, RowSpec, SlicedCopies, csr_array, is_sparse
from buropt.oracle.objective import Functions, Parts
from buropt.trace.indices import IntegerInput
from buropt.trace.kinds import Kind
from buropt.tree import TreeSpec

Array = NDArray[Any]


def write_oracle(path: str | PathLike[str], parts: Parts, with_data: bool) -> None:
    """Save an oracle; without data also without weights and workers, which go with the samples.

    Raises
    ------
    TypeError
        If a key of a dict of parameters or data is not a string, a number, a boolean, None or a
        tuple of those.
    OSError
        If the file cannot be written.
    """
    samples = parts.samples
    members: dict[str, files.Member] = {
        "functions.graph": parts.functions.graph.to_bytes(),
        "x0.npy": parts.x0,
    }
    if with_data:
        for k, (array, row) in enumerate(zip(samples.arrays, samples.rows, strict=True)):
            members |= _data_members(f"data/{k}", array, row.kind)
        if parts.shards:
            members |= _shard_members(parts.shards)
        if parts.weights is not None:
            members["weights.npy"] = parts.weights
    content = {
        "dtype": parts.spec.dtype.name,
        "parameters": {
            "name": parts.spec.name,
            "tree": tree_json.to_json(parts.spec.structure),
            "shapes": parts.spec.shapes,
        },
        "n_samples": samples.n if with_data else 0,
        "data": {
            "tree": tree_json.to_json(samples.structure),
            "rows": [
                {"sparse": row.is_csr, "shape": row.shape, "kind": row.kind} for row in samples.rows
            ],
            "indices": [_uses_to_json(k, integers) for k, integers in parts.functions.integers],
        },
        "tags": list(parts.functions.tags.items()),
        "threads": parts.threads,
    }
    files.write(path, "oracle", content, members)


def read_oracle(path: str | PathLike[str]) -> Parts:
    """Read what `write_oracle` wrote.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, damaged, of a newer version, or holds something else.
    OSError
        If it cannot be opened.
    """
    with files.reading(path, "oracle", "bo.load_arrays") as file:
        spec = _read_spec(file.content)
        x0 = _typed(file.array("x0.npy"), spec.dtype)
        if x0.shape != (spec.dim,) or len(spec.shapes) != spec.structure.n_leaves:
            raise ValueError("x0 and the tree of parameters do not fit")
        described = file.content["data"]
        structure = tree_json.from_json(described["tree"])
        rows = tuple(
            RowSpec(
                path,
                bool(row["sparse"]),
                _shape(row["shape"]),
                _one_of(row["kind"], ("f", "i", "b")),
            )
            for path, row in zip(structure.paths("data"), described["rows"], strict=True)
        )
        integers = [_uses_from_json(each, rows, spec.dtype) for each in described["indices"]]
        n = file.content["n_samples"]
        if type(n) is not int or not 0 <= n <= file.size:
            raise ValueError(f"n_samples is {n!r}")
        arrays: list[Any] = []
        weights, shards = None, []
        if n:
            arrays = [_read_data(file, f"data/{k}", row, spec, n) for k, row in enumerate(rows)]
            shards = _read_shards(file, n)
            if "weights.npy" in file:
                weights = _typed(file.array("weights.npy"), spec.dtype)
        samples = OracleData(tuple(arrays), n, rows, structure, SlicedCopies())
        threads = file.content["threads"]
        if threads is not None and (type(threads) is not int or threads < 1):
            raise ValueError(f"threads is {threads!r}")
        tags = {str(name): _one_of(kind, ("f", "i", "b")) for name, kind in file.content["tags"]}
        graph = file.bytes("functions.graph")
    functions = Functions(_core.Graph.from_bytes(graph, str(path)), integers, tags)
    return Parts(functions, spec, x0, samples, weights, shards, threads)


def _read_spec(content: Mapping[str, Any]) -> TreeSpec:
    parameters = content["parameters"]
    return TreeSpec(
        tree_json.from_json(parameters["tree"]),
        tuple(_shape(shape) for shape in parameters["shapes"]),
        np.dtype(_one_of(content["dtype"], ("float32", "float64"))),
        str(parameters["name"]),
    )


def _data_members(name: str, array: Any, kind: Kind) -> dict[str, files.Member]:
    if is_sparse(array):
        return {
            f"{name}/values.npy": array.data,
            # SciPy gives both the same dtype, whichever it was.
            f"{name}/columns.npy": array.indices.astype(np.int32),
            f"{name}/row_starts.npy": array.indptr.astype(np.int64),
        }
    if kind == "b":
        return {f"{name}.npy": array.astype(bool)}
    if kind == "i":
        return {f"{name}.npy": array.astype(np.int64)}
    return {f"{name}.npy": array}


def _read_data(file: files.Contents, name: str, row: RowSpec, spec: TreeSpec, n: int) -> Any:
    if row.is_csr:
        parts = (
            _typed(file.array(f"{name}/values.npy"), spec.dtype),
            _typed(file.array(f"{name}/columns.npy"), np.dtype(np.int32)),
            _typed(file.array(f"{name}/row_starts.npy"), np.dtype(np.int64)),
        )
        csr = csr_array(parts, shape=(n, *row.shape))
        csr.check_format(full_check=True)
        return csr
    stored = {"f": spec.dtype, "i": np.dtype(np.int64), "b": np.dtype(bool)}[row.kind]
    array = _typed(file.array(f"{name}.npy"), stored)
    if array.shape != (n, *row.shape):
        raise ValueError(f"{name} has shape {array.shape}, not {(n, *row.shape)}")
    return array.astype(spec.dtype, copy=False)


def _uses_to_json(k: int, integers: IntegerInput) -> dict[str, Any]:
    """Which elements of a sample are indices into an axis of which extent, and where."""
    uses = [
        {"lowest": lowest, "extent": extent, "place": place, "elements": elements.tolist()}
        for (lowest, extent, place), elements in integers.uses.items()
    ]
    return {"data": k, "uses": uses}


def _uses_from_json(
    described: Any, rows: Sequence[RowSpec], dtype: np.dtype[Any]
) -> tuple[int, IntegerInput]:
    k = described["data"]
    row = rows[k]
    uses = {}
    for use in described["uses"]:
        elements = np.array(use["elements"], np.int64)
        if elements.ndim != 1 or not ((elements >= 0) & (elements < math.prod(row.shape))).all():
            raise ValueError(f"the indices in {row.path} are not in its rows")
        uses[int(use["lowest"]), int(use["extent"]), str(use["place"])] = elements
    return k, IntegerInput(row.path, row.shape, dtype, batched=True, uses=uses)


def _shard_members(shards: Sequence[NDArray[np.int64]]) -> dict[str, files.Member]:
    """Sizes, and the samples where they are not contiguous blocks in order."""
    together = np.concatenate(shards)
    sizes = np.array([shard.size for shard in shards], np.int64)
    members: dict[str, files.Member] = {"workers/sizes.npy": sizes}
    if not np.array_equal(together, np.arange(together.size)):
        members["workers/samples.npy"] = together
    return members


def _read_shards(file: files.Contents, n: int) -> list[NDArray[np.int64]]:
    integers = np.dtype(np.int64)
    sizes = _typed(file.array("workers/sizes.npy"), integers)
    name = "workers/samples.npy"
    together = _typed(file.array(name), integers) if name in file else np.arange(n)
    if sizes.ndim != 1 or (sizes < 1).any() or sizes.sum() != n or together.shape != (n,):
        raise ValueError("the workers' samples do not fit the data")
    return np.split(together, np.cumsum(sizes)[:-1])


def _typed(array: Array, dtype: np.dtype[Any]) -> Array:
    if array.dtype != dtype:
        raise TypeError(f"an array is of dtype {array.dtype}, not {dtype}")
    return array


def _shape(value: Any) -> tuple[int, ...]:
    if not all(type(extent) is int and extent >= 0 for extent in value):
        raise TypeError(f"a shape is {value!r}")
    return tuple(value)


def _one_of(value: Any, choices: Sequence[Any]) -> Any:
    if value not in choices:
        raise ValueError(f"{value!r} is none of {choices}")
    return value
