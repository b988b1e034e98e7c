"""A run's record: one JSON object a line, appended and flushed as the run goes.

    history = History.load("outputs/2025-01-31/12-00-00/history.jsonl")
    plt.semilogy(history["bits_up"], history["grad_norm_sq"])

A killed run leaves at most a half-written last line, which `load` drops.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from buropt.html import table

if TYPE_CHECKING:
    from buropt.picture import Picture


class Record(NamedTuple):
    """One line of a history.

    `f_gap` is None where the minimum is unknown. `epochs` counts per-sample gradients over the
    number of samples, `oracle_calls` the method's calls, `bits_up` the mean uplink bits of one
    worker, `bits_down` the downlink bits to one worker, and `seconds` the method's own time:
    measuring and logging are excluded. `distance_sq` is |x - x*|^2, None where the solution is
    unknown or not the only one.
    """

    iteration: int
    f: float
    f_gap: float | None
    grad_norm_sq: float
    epochs: float
    oracle_calls: int
    bits_up: float
    bits_down: float
    seconds: float
    distance_sq: float | None = None

    @property
    def is_finite(self) -> bool:
        """Whether both the value and the gradient are finite."""
        return math.isfinite(self.f) and math.isfinite(self.grad_norm_sq)

    def as_json(self) -> str:
        """The record as one line of JSON; what JSON cannot say (inf, nan) becomes null."""
        return (
            f'{{"iteration": {self.iteration}, "f": {_number(self.f)}, '
            f'"f_gap": {_number(self.f_gap)}, "grad_norm_sq": {_number(self.grad_norm_sq)}, '
            f'"epochs": {_number(self.epochs)}, "oracle_calls": {self.oracle_calls}, '
            f'"bits_up": {_number(self.bits_up)}, "bits_down": {_number(self.bits_down)}, '
            f'"seconds": {_number(self.seconds)}, "distance_sq": {_number(self.distance_sq)}}}'
        )


COUNTS = ("iteration", "oracle_calls")
MAY_BE_UNKNOWN = ("f_gap", "distance_sq")
SHOWN = 10  # records in a notebook


class History:
    """Records in memory and, when opened with `create`, in a file.

    `history["f"]` is a column: an int64 array for `iteration` and `oracle_calls`, float64
    otherwise, with nan for null. A history is a context manager that closes its file.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._file: TextIO | None = None

    @classmethod
    def create(cls, path: str | PathLike[str], overwrite: bool = False) -> History:
        """A history that also writes to a new file.

        Raises
        ------
        FileExistsError
            If the file is there and `overwrite` is false: a finished run is never lost by accident.
        BlockingIOError
            If another process still writes to it.
        """
        mode: Literal["a", "x"] = "a" if overwrite else "x"
        return cls._open(path, mode, 0)

    @classmethod
    def resume(cls, path: str | PathLike[str], length: int, last: Record | None = None) -> History:
        """The first `length` records of a file, which is cut there; new ones are appended to it.

        Nothing is cut if the last of them is not `last`, where that is given.

        Raises
        ------
        ValueError
            If the file does not begin with these records.
        BlockingIOError
            If another process still writes to it.
        """
        return cls._open(path, "r+", length, last)

    @classmethod
    def _open(
        cls,
        path: str | PathLike[str],
        mode: Literal["a", "x", "r+"],
        length: int,
        last: Record | None = None,
    ) -> History:
        history = cls()
        file = history._file = Path(path).open(  # noqa: SIM115  closed by the history's own `close`
            mode, buffering=1, encoding="utf-8", newline="\n"
        )
        try:
            _lock(file)
            for number in range(1, length + 1):
                line = file.readline()
                if not line.endswith("\n"):
                    raise ValueError(f"{path} has {number - 1} records, and {length} are needed")
                try:
                    history.records.append(parse_record(line))
                except ValueError as error:
                    raise _no_record(path, number, error) from None
            if last is not None and history.records[-1:] != [last]:
                raise ValueError(f"{path} is of another run: its record {length} is not {last}")
            end = file.tell() if mode == "r+" else 0
            if os.fstat(file.fileno()).st_size > end:
                file.seek(end)  # lines may have been read ahead
                file.truncate(end)
        except BaseException:
            history.close()
            raise
        return history

    @classmethod
    def load(cls, path: str | PathLike[str]) -> History:
        """Read a file back. A last line without its newline that does not parse is dropped.

        Raises
        ------
        ValueError
            If any other line is not a record; the message gives the file, the line and the reason.
        """
        history = cls()
        lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
        for number, line in enumerate(lines, start=1):
            half_written = number == len(lines)
            if half_written and not line:
                break
            try:
                record = parse_record(line)
            except ValueError as error:
                if half_written:
                    break
                raise _no_record(path, number, error) from None
            history.records.append(record)
        return history

    def append(self, record: Record) -> None:
        """Add a record; with a file, its line has left the process when this returns.

        Raises
        ------
        OSError
            If the file cannot be written (a full disk); it is closed then, and the record is kept.
        """
        self.records.append(record)
        if self._file is None:
            return
        try:
            self._file.write(record.as_json() + "\n")
        except OSError:
            with suppress(OSError):  # closing tries to write once more
                self.close()
            raise

    def sync(self) -> None:
        """Wait until what was appended is on the disk, so that it outlives the machine's power."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, if any; the records stay."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __enter__(self) -> History:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """The records; a copy writes to no file."""
        return {"records": self.records, "_file": None}

    def __repr__(self) -> str:
        if not self.records:
            return "History(no records)"
        first, last = self.records[0], self.records[-1]
        return (
            f"History({len(self)} records, iterations {first.iteration} to {last.iteration}, "
            f"f {first.f:.6g} to {last.f:.6g}, |grad f|^2 {first.grad_norm_sq:.3g} to "
            f"{last.grad_norm_sq:.3g}, {last.seconds:.3g} s)"
        )

    def _repr_html_(self) -> str:
        shown = self.records[:SHOWN]
        if len(self) > SHOWN:  # spread evenly, the first and the last among them
            shown = [self.records[round(k)] for k in np.linspace(0, len(self) - 1, SHOWN)]
        note = "" if len(shown) == len(self) else f"{len(shown)} of {len(self)} records"
        return table("History", Record._fields, shown, note)

    def plot(self, path: str | PathLike[str] | None = None, title: str = "") -> Picture:
        """Draw f - f*, where it is known, and |grad f|^2 against iterations and uplink bits.

        Parameters
        ----------
        path : path, optional
            Where to save the picture; the suffix says in which format.
        title : str

        Returns
        -------
        Picture
            A figure of Matplotlib, which notebooks show.

        Raises
        ------
        ValueError
            If there are no records.
        """
        if not self.records:
            raise ValueError("there is nothing to plot: the history has no records")
        from buropt.picture import picture_of  # Matplotlib takes longer to import than most runs

        picture = picture_of(self, title)
        if path is not None:
            picture.savefig(path)
        return picture

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """The column of that name, shape (len(history),)."""
        if column not in Record._fields:
            raise KeyError(
                f"{column!r} is not a column; the columns are {', '.join(Record._fields)}"
            )
        position = Record._fields.index(column)
        kind = np.int64 if column in COUNTS else np.float64
        return np.array([record[position] for record in self.records], dtype=kind)


def _lock(file: TextIO) -> None:
    """Keep other processes from resuming the run, for as long as the file is open.

    Raises BlockingIOError if another one has it. Where a file system knows no locks, none is taken.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(
            f"{file.name} is being written by another process: wait for it, or end it"
        ) from None
    except OSError:
        pass


def _no_record(path: str | PathLike[str], number: int, error: ValueError) -> ValueError:
    return ValueError(f"{path}, line {number}: not a history record: {error}")


def _number(value: float | None) -> str:
    """A JSON number or null. `float` first: NumPy scalars print with their type's name."""
    if value is None or not math.isfinite(value):
        return "null"
    return repr(float(value))


def parse_record(line: str) -> Record:
    """One line back to a record; ValueError says what is wrong with it."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at column {error.colno} of {line[:60]!r}") from None
    if not isinstance(fields, dict):
        raise ValueError(
            f"expected an object with the keys {', '.join(Record._fields)}, got {line[:60]!r}"
        )
    fields = Record._field_defaults | fields  # files of earlier versions have fewer columns
    for name in Record._fields:
        if name not in fields:
            raise ValueError(f"the key {name!r} is missing")
        value = fields[name]
        if name in COUNTS:
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"{name!r} must be a whole number, got {value!r}")
        elif value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise ValueError(f"{name!r} must be a number or null, got {value!r}")
    # What may be unknown stays None; elsewhere null stands for a value that was not finite.
    values = {name: fields[name] for name in Record._fields}
    for name in Record._fields:
        if values[name] is None and name not in MAY_BE_UNKNOWN:
            values[name] = math.nan
    return Record(**values)
