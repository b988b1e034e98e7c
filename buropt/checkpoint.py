"""Checkpoints: what a run that was killed goes on from, bit for bit.

A checkpoint is one file, replaced at once (`buropt.files`), of plain arrays and JSON. It holds the
position of the loop, with the method's whole state, and what the run has worked out before its
first step: the settled method and the problem's constants. Randomness has no state: see
`buropt.random`.
"""

from __future__ import annotations

import importlib.metadata
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from buropt import files
from buropt.budget import Budget
from buropt.history import History
from buropt.loop import Position
from buropt.packing import pack, unpack
from buropt.result import jsonable

if TYPE_CHECKING:
    from buropt.optim.base import Optimizer
    from buropt.problems.base import Problem
    from buropt.problems.constants import Constants

MOST_OF_THE_TIME = 0.05  # that goes into writing checkpoints
log = logging.getLogger("buropt.run")


@dataclass(frozen=True)
class Interval:
    """How often a checkpoint is written; None and None: only when the run is interrupted.

    Parameters
    ----------
    seconds : float, optional
        Of wall-clock time between two; more where writing would take a twentieth of it.
    iterations : int, optional
        Every iteration that is a multiple of it.
    keep : bool
        Whether one of the end stays, from which the run goes on with a larger budget.

    Raises
    ------
    ValueError
        If one is not positive.
    """

    seconds: float | None = 30.0
    iterations: int | None = None
    keep: bool = True

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 <= self.seconds < math.inf:
            raise ValueError(f"checkpoint.seconds must be a number >= 0, got {self.seconds!r}")
        if self.iterations is not None and self.iterations < 1:
            raise ValueError(
                f"checkpoint.iterations must be a whole number >= 1, got {self.iterations!r}"
            )


class Checkpoint(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    position : Position
    records : int
        Lines of the history that belong to it.
    method : Optimizer
        Settled.
    constants : Constants
        Of the problem, its minimum solved for.
    """

    position: Position
    records: int
    method: Optimizer[Any]
    constants: Constants


class Writer:
    """Writes the checkpoints of one run, each over the last one.

    Parameters
    ----------
    path : Path
    interval : Interval
    config : dict
        The run's, as `identity` gives it: a checkpoint is refused by a run of another one.
    method, problem, history
        The run's; the method settled.
    """

    def __init__(
        self,
        path: Path,
        interval: Interval,
        config: Mapping[str, Any],
        method: Optimizer[Any],
        problem: Problem,
        history: History,
    ) -> None:
        self._path = path
        self._interval = interval
        self._config = config
        self._method, self._problem, self._history = method, problem, history
        self._next = time.monotonic() + (interval.seconds or 0)
        self._failed = False

    def due(self, iteration: int) -> bool:
        """Whether it is time for one."""
        seconds, iterations = self._interval.seconds, self._interval.iterations
        if iterations is not None and iteration % iterations == 0 and iteration > 0:
            return True
        return seconds is not None and iteration > 0 and time.monotonic() >= self._next

    def iterations_left(self, iteration: int) -> float:
        """Up to the next multiple of the interval."""
        iterations = self._interval.iterations
        return math.inf if iterations is None else iterations - iteration % iterations

    def save(self, position: Position) -> None:
        """Write one; where that fails, say so once and let the run go on."""
        if self._failed:
            return
        started = time.monotonic()
        try:
            self._write(position)
        except (OSError, TypeError) as error:
            self._failed = True
            log.warning("the run goes on without checkpoints: %s", error)
        now = time.monotonic()
        self._next = now + max(self._interval.seconds or 0, (now - started) / MOST_OF_THE_TIME)

    def save_end(self, position: Position) -> None:
        """Write that of a run whose budget is used up, if it is to be kept; else there is none."""
        self._path.unlink(missing_ok=True)
        if not self._interval.keep or self._failed:
            return
        try:
            self._write(position)
        except (OSError, TypeError) as error:
            log.warning("the run cannot go on with a larger budget: %s", error)

    def _write(self, position: Position) -> None:
        records = self._history.records
        measured = bool(records) and records[-1].iteration == position.iteration
        constants = self._problem.constants.solved()
        self._history.sync()
        checkpoint = Checkpoint(position, len(records) - measured, self._method, constants)
        write(self._path, checkpoint, self._config)


def write(path: Path, checkpoint: Checkpoint, config: Mapping[str, Any]) -> None:
    """Write a checkpoint of the run of that configuration, at once or not at all.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError
        If the method's state holds what cannot be packed.
    """
    members: dict[str, NDArray[Any]] = {}
    content = {
        "config": config,
        "buropt": importlib.metadata.version("buropt"),
        "checkpoint": pack(checkpoint, members),
    }
    files.write(path, "checkpoint", content, members)


def read(path: Path, config: Mapping[str, Any], method: type) -> Checkpoint:
    """Read a checkpoint for the run of that configuration.

    Parameters
    ----------
    path : Path
    config : dict
        As `identity` gives it.
    method : type
        The method's class: its modules may define records of the state.

    Raises
    ------
    ValueError
        If the file is damaged, no checkpoint, or one of another run, method or version.
    OSError
        If it cannot be opened.
    """
    modules = {cls.__module__ for cls in method.__mro__}
    with files.reading(path, "checkpoint", "resume=... for the folder of a run") as contents:
        found = contents.content
        version = importlib.metadata.version("buropt")
        if found["buropt"] != version:
            raise files.Refused(
                f"{path} was written by buropt {found['buropt']}, and this is {version}, whose "
                "numbers may differ: install that version"
            )
        change = difference(identity(found["config"]), config)
        if change is not None:
            raise files.Refused(f"{path} is of another run: {change}")
        checkpoint = unpack(found["checkpoint"], contents.array, modules)
        if not isinstance(checkpoint, Checkpoint) or type(checkpoint.method) is not method:
            raise files.Refused(f"{path} is of another method than {method.__name__}")
        return checkpoint


SILENT = (
    *("threads", "verbose", "overwrite", "curve", "checkpoint", "resume", "objective"),
    "logger",
)
"""Keys of a configuration that change no number of a run."""


LIMITS = tuple(field.name for field in fields(Budget))
"""Keys of a configuration that say when a run ends, and nothing of its way there."""


def identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a resolved configuration on which the numbers of a run depend, but for its end.

    Where the data lie is not part of it: what they are shows in the numbers.
    """
    kept = {name: value for name, value in config.items() if name not in (*SILENT, *LIMITS)}
    for group, silent in (("problem", ("threads",)), ("data", ("path", "cache"))):
        if isinstance(kept.get(group), Mapping):
            kept[group] = {key: value for key, value in kept[group].items() if key not in silent}
    plain: dict[str, Any] = jsonable(kept)
    return plain


def difference(then: Any, now: Any, place: str = "") -> str | None:
    """The first setting in which two configurations differ, in words, or None."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        names = [*now, *(name for name in then if name not in now)]
        for name in sorted(names, key=lambda name: isinstance(now.get(name), Mapping)):
            inner = f"{place}.{name}" if place else str(name)
            found = difference(then.get(name), now.get(name), inner)
            if found is not None:
                return found
        return None
    return None if then == now else f"it has {place}={then}, and the command says {now}"
