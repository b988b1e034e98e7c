"""LIBSVM / SVMlight text files, plain or compressed.

The text is parsed by the compiled core (`cpp/data/libsvm.cpp`); this module opens files, maps
labels and builds the sparse matrix. A text that was cut off *between* two features cannot be told
from a whole one; a cut anywhere else is an error.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp

from buropt import _core
from buropt.data.dataset import Array, Dataset, Labels, map_labels

FloatName: TypeAlias = Literal["float32", "float64"]
PathLike: TypeAlias = str | os.PathLike[str]


class _Codec(NamedTuple):
    suffix: str
    magic: bytes
    decompress: Callable[[bytes], bytes]


_CHUNK = 1 << 16  # bytes


def _decompress_streams(
    content: bytes, decoder: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor], padding: int
) -> bytes:
    """Decompress streams that follow one another; zeros, `padding` at a time, may lie between.

    The `decompress` of `bz2` and `lzma` drops whatever follows the first stream and does not
    decompress: of a file damaged there it would give a part for the whole.
    """
    parts = []
    at = 0
    while at < len(content):
        stream = decoder()
        while not stream.eof:
            if at >= len(content):
                raise EOFError("the last stream has no end")
            parts.append(stream.decompress(content[at : at + _CHUNK]))
            at += _CHUNK
        at = min(at, len(content)) - len(stream.unused_data)
        while padding and content[at : at + padding] == bytes(padding):
            at += padding
    return b"".join(parts)


_CODECS = (
    _Codec(".gz", b"\x1f\x8b", gzip.decompress),
    _Codec(".bz2", b"BZh", lambda text: _decompress_streams(text, bz2.BZ2Decompressor, 0)),
    _Codec(
        ".xz", b"\xfd7zXZ\x00", lambda text: _decompress_streams(text, lzma.LZMADecompressor, 4)
    ),
)


def load_libsvm(
    path: PathLike | None,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: FloatName = "float64",
    labels: Labels = "auto",
    positive: float | None = None,
    query_id: bool = False,
) -> Dataset:
    """Read a LIBSVM text file: lines of `label index:value index:value ... # comment`.

    Comments, blank lines, lines without features, surplus blanks, tabs, carriage returns and a
    missing last newline are fine; anything else out of form is an error.

    Parameters
    ----------
    path : str or path
        Plain text, .gz, .bz2 or .xz.
    n_features : int, optional
        Number of columns; the largest index in the file by default. Give it when another file
        (a test set) has features that this one lacks, or see `load_libsvm_many`.
    zero_based : bool
        Whether indices count from 0. The format says 1, and the base is never guessed.
    dtype : {"float64", "float32"}
    labels : {"auto", "raw"} or mapping
        "auto" sends two distinct labels to -1 and +1 in increasing order and keeps more as they
        are; "raw" keeps all; a mapping such as {0: -1, 1: 1} says it label by label. What was
        done is logged and recorded in `Dataset.label_mapping`.
    positive : float, optional
        One class against the rest: this label becomes +1, every other one -1.
    query_id : bool
        Keep the `qid:...` fields as int64 (every line then needs one); ignored otherwise.

    Returns
    -------
    Dataset
        `A` is a CSR array of shape (n_samples, n_features) with sorted int32 indices
        (int64 from 2^31 entries on).

    Raises
    ------
    ValueError
        When a line is out of form (the message has file, line, token and what to write instead), a
        compressed file is damaged or cut off, there are no samples or no features, an argument is
        out of range, or float32 cannot hold a label or tell two whole numbers apart.
    TypeError
        When an argument is of another type.
    FileNotFoundError
        When there is no such file.
    """
    if positive is not None:
        labels = "raw"
    (dataset,) = load_libsvm_many(
        [path],
        n_features=n_features,
        zero_based=zero_based,
        dtype=dtype,
        labels=labels,
        query_id=query_id,
    )
    return dataset if positive is None else dataset.binary(positive)


def load_libsvm_many(
    paths: Sequence[PathLike | None],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: FloatName = "float64",
    labels: Labels = "auto",
    query_id: bool = False,
) -> list[Dataset]:
    """Read files that belong together, such as a training and a test set.

    All get the same number of columns (the largest index in any of them, by default) and the same
    label mapping. Arguments and errors are those of `load_libsvm`.
    """
    if dtype not in get_args(FloatName):
        raise ValueError(f'dtype={dtype!r} is unknown; write "float64" or "float32"')
    _check_types(n_features, zero_based, query_id)
    if n_features is not None and not 0 < n_features < 2**31:
        raise ValueError(
            f"n_features={n_features} is out of range; write 1 to {2**31 - 1}, or None"
        )
    if not paths:
        raise ValueError("no LIBSVM file was named; pass a list of at least one path")
    files = [_existing(path) for path in paths]
    parts = [
        _core.parse_libsvm(
            _read(file),
            _said(file),
            n_features=n_features,
            zero_based=bool(zero_based),
            single_precision=dtype == "float32",
            query_id=bool(query_id),
        )
        for file in files
    ]
    width = max(part[4] for part in parts)
    if width == 0:
        raise ValueError(
            f"{_said(files[0])}: no line has a feature, so the number of columns is not known; "
            "pass n_features=..."
        )
    names = [_stem(file) for file in files]
    y, mapping = map_labels(np.concatenate([part[0] for part in parts]), labels, ", ".join(names))
    y = _converted(y, dtype, ", ".join(_said(file) for file in files))
    ends = np.cumsum([len(part[0]) for part in parts])[:-1]
    return [
        Dataset(_csr(part, width), y_part, name, dict(mapping), part[5])
        for part, y_part, name in zip(parts, np.split(y, ends), names, strict=True)
    ]


def _check_types(n_features: Any, zero_based: Any, query_id: Any) -> None:
    """Refuse what the compiled core would refuse without naming the argument."""
    if n_features is not None and not _is_integer(n_features):
        raise TypeError(f"n_features={n_features!r} is not an int; write an int such as 3, or None")
    for name, value in (("zero_based", zero_based), ("query_id", query_id)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name}={value!r} is not a bool; write True or False")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _converted(y: Array, dtype: FloatName, name: str) -> Array:
    """The labels, which were read in float64, in the dtype of the data."""
    with np.errstate(over="ignore"):  # refused below
        converted = y.astype(dtype)
    lost = ~np.isfinite(converted)
    if lost.any():
        raise ValueError(
            f'{name}: label {y[lost][0]:g} is too large for {dtype}; pass dtype="float64"'
        )
    whole = np.unique(y[y == np.rint(y)])
    same = np.flatnonzero(np.diff(whole.astype(dtype)) == 0)
    if same.size:
        first, second = whole[same[0]], whole[same[0] + 1]
        raise ValueError(
            f"{name}: labels {first:.17g} and {second:.17g} are the same number in {dtype}; pass "
            'dtype="float64"'
        )
    return converted


def _csr(part: tuple[Any, ...], width: int) -> Any:
    _, indptr, indices, values, _, _ = part
    if len(values) < 2**31:  # SciPy wants one index type; int32 halves what a gradient reads
        indptr = indptr.astype(np.int32)
    matrix = sp.csr_array((values, indices, indptr), shape=(len(indptr) - 1, width))
    matrix.has_sorted_indices = True  # the parser refuses anything else: nothing to check
    matrix.has_canonical_format = True
    return matrix


def _existing(path: PathLike | None) -> Path:
    if path is None or not os.fspath(path):
        raise ValueError(
            "no LIBSVM file was named; pass path=... (data.path=... on the command line), a text "
            "file, plain or compressed as .gz, .bz2 or .xz"
        )
    file = Path(path).expanduser()
    if not file.exists():
        raise FileNotFoundError(
            f"there is no file {_said(file)} (looked for {_said(file.absolute())}); pass path=... "
            "(data.path=... on the command line), a LIBSVM text file, plain, .gz, .bz2 or .xz"
        )
    if file.is_dir():
        raise ValueError(f"{_said(file)} is a folder; pass the path of a LIBSVM text file in it")
    return file


def _read(file: Path) -> bytes:
    """The text of a file, decompressed as its suffix or else its first bytes say."""
    content = file.read_bytes()
    by_suffix = [codec for codec in _CODECS if file.suffix.lower() == codec.suffix]
    by_magic = [codec for codec in _CODECS if content.startswith(codec.magic)]
    if not (by_suffix or by_magic):
        return content
    codec = (by_suffix or by_magic)[0]
    try:
        return codec.decompress(content)
    except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(
            f"{_said(file)} does not decompress as {codec.suffix}: it is cut off or damaged, or "
            f"something else under this name ({error}); get the file again"
        ) from error


def _stem(file: Path) -> str:
    compressed = any(file.suffix.lower() == codec.suffix for codec in _CODECS)
    return _said(Path(file.stem if compressed else file.name))


def _said(file: Path) -> str:
    """The path as text that can always be encoded."""
    return os.fspath(file).encode("utf-8", "backslashreplace").decode("utf-8")


__all__ = ["Array", "FloatName", "load_libsvm", "load_libsvm_many"]
