"""The folder of a run: which files it has, who may write to it, and how far the run has come.

run.json         the configuration, once the folder belongs to a run
history.jsonl    a line a measurement; locked by the process that writes it
checkpoint.npz   what the run goes on from: if it was killed, or with a larger budget
x.npy            the last point
curve.png        the history as a picture
result.json      how the run ended; written last
error.txt        the traceback of a run that failed
"""

from __future__ import annotations

import errno
import json
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from buropt import checkpoint, result
from buropt.checkpoint import LIMITS
from buropt.history import MAY_BE_UNKNOWN, History, Record
from buropt.loop import CONVERGED, ENDED, NON_FINITE, Outcome, Position

if TYPE_CHECKING:
    from buropt.budget import Budget
    from buropt.checkpoint import Checkpoint

RUN, HISTORY, CHECKPOINT = "run.json", "history.jsonl", "checkpoint.npz"
ARRAY, CURVE, RESULT = "x.npy", "curve.png", "result.json"
FAILED, KILLED = "failed", "killed"  # the status of a run that ended with an error, or its process
ERROR, REFUSED = "error.txt", "refused.json"
OVERRIDES = "overrides.yaml"  # in .hydra: what the command line says of a run
OF_THE_END = (RESULT, ARRAY, CURVE, ERROR, REFUSED)


class OccupiedError(ValueError):
    """The refusal to write over another run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} already holds a run: choose another hydra.run.dir (hydra.sweep.dir and "
            "hydra.sweep.subdir for the jobs of a sweep) or write overwrite=true"
        )


class UnwritableError(Exception):
    """A folder that takes no files: neither a mistake in the configuration nor a bug."""

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"cannot write to the folder {folder} ({error.strerror or error}): "
            f"{'make room there, or ' if is_full(error) else ''}choose another one with "
            "hydra.run.dir=FOLDER (hydra.sweep.dir for a sweep)"
        )


def is_full(error: Exception) -> TypeGuard[OSError]:
    """Whether it says that a disk, or a user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turns an OSError into an `UnwritableError`.

    One that says that another process works there stays what it is.
    """
    try:
        yield
    except BlockingIOError:
        raise
    except OSError as error:
        raise UnwritableError(folder, error) from error


def create_run(folder: Path, config: Mapping[str, Any], overwrite: bool) -> History:
    """Make the folder that of a new run, and open its history.

    Raises
    ------
    OccupiedError
        If it is that of another run, which is not to be overwritten.
    UnwritableError
        If a file cannot be written; those of this run are gone again.
    """
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            history = History.create(folder / HISTORY, overwrite)
        except FileExistsError:
            raise OccupiedError(folder) from None
        _forget(folder, *OF_THE_END, CHECKPOINT)  # of the run whose history has just gone
        content = {
            "format": "buropt run",
            "version": 1,
            "config": config,
            "command": result.command(),
            "versions": result.versions(),
        }
        try:
            result.write_json(folder / RUN, content)
        except OSError:
            history.close()
            withdraw_run(folder)
            raise
    return history


def withdraw_run(folder: Path) -> None:
    """Remove what `create_run` has written, before anything else is there."""
    _forget(folder, RUN, HISTORY)


def is_taken(folder: Path) -> bool:
    """Whether it holds a run; one that was killed before its first line does not count."""
    history = folder / HISTORY
    return (folder / RUN).exists() or (history.exists() and history.stat().st_size > 0)


def config_of(folder: Path) -> dict[str, Any]:
    """The configuration of the run in the folder.

    Raises
    ------
    ValueError
        If there is no run that could be resumed.
    """
    if not is_taken(folder):
        raise ValueError(f"there is no run in {folder}: name the folder that has its {RUN}")
    content = _read(folder / RUN)
    if content is None:
        raise ValueError(f"the run in {folder} cannot be resumed: it has no {RUN}")
    if content.get("format") != "buropt run" or not isinstance(content.get("config"), dict):
        raise ValueError(f"{folder / RUN} is not that of a run")
    config: dict[str, Any] = content["config"]
    return config


def require_same(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse to go on with the run in the folder as one of another configuration.

    Raises
    ------
    ValueError
        That says which setting differs; or if there is no run that could be resumed.
    """
    then, now = checkpoint.identity(config_of(folder)), checkpoint.identity(config)
    change = checkpoint.difference(then, now)
    if change is not None:
        limits = ", ".join(LIMITS)
        raise ValueError(f"{folder} is of another run: {change}; only {limits} may be others")


def read_checkpoint(folder: Path, config: Mapping[str, Any], method: type) -> Checkpoint | None:
    """The checkpoint of a run, if there is one.

    Raises
    ------
    ValueError
        If it is that of another run, or damaged.
    OSError
        If it cannot be opened.
    """
    if not (folder / CHECKPOINT).exists():
        return None
    try:
        return checkpoint.read(folder / CHECKPOINT, checkpoint.identity(config), method)
    except ValueError as error:
        why = str(error).removesuffix(".")
        raise ValueError(f"{why}. Remove the file to start the run again.") from None


def reopen_run(folder: Path, config: Mapping[str, Any], found: Checkpoint | None) -> History:
    """The history of a run that goes on, cut to its checkpoint; without one, it is empty.

    Raises
    ------
    ValueError
        If the history is that of another run, or damaged; nothing is changed then.
    OSError
        If a file cannot be opened, or another process still works on the run.
    """
    length, last = 0, None
    if found is not None:
        length = found.records
        last = None if found.position.finite is None else found.position.finite[1]
    history = History.resume(folder / HISTORY, length, last)
    _forget(folder, *OF_THE_END, *(path.name for path in folder.glob(".*.tmp")))
    content = _read(folder / RUN)
    if content is not None and content["config"] != result.jsonable(config):
        result.write_json(folder / RUN, content | {"config": config})  # with its new limits
    return history


def require_reachable(
    folder: Path, position: Position, records: list[Record], budget: Budget, n_samples: int
) -> None:
    """Refuse limits with which the run would have ended before that position.

    Parameters
    ----------
    folder : Path
    position : Position
    records : list of Record
        Those before it.
    budget : Budget
        The new limits.
    n_samples : int

    Raises
    ------
    ValueError
        That says which.
    """
    counters = position.counters
    epochs = counters.sample_grads / n_samples
    used = position.iteration, epochs, counters.bits_up, position.seconds
    limit = budget.exhausted(*used)
    if limit is not None:
        raise ValueError(
            f"{limit}={getattr(budget, limit):g} is used up by the run in {folder}, which is at "
            f"iteration {position.iteration}: give a larger limit, or null for none"
        )
    for record in records:
        if budget.converged(record.grad_norm_sq):
            raise ValueError(
                f"the run in {folder} has gone past tolerance={budget.tolerance:g}, which it "
                f"reached at iteration {record.iteration}: give a smaller one, or null for none"
            )


def finished(folder: Path) -> dict[str, Any] | None:
    """The result of a run that has nothing left to do, or None.

    Raises
    ------
    ValueError
        If result.json is damaged.
    """
    content = _read(folder / RESULT)
    status = "" if content is None else str(content.get("status"))
    ends = (CONVERGED, ENDED, NON_FINITE)
    return content if status in ends or status.startswith("budget:") else None


def may_go_on(content: Mapping[str, Any]) -> bool:
    """Whether a finished run, of that result, has further steps to take with a larger budget."""
    return content["status"] not in (ENDED, NON_FINITE)


def outcome_of(folder: Path, content: Mapping[str, Any]) -> Outcome:
    """How a finished run ended, from its files."""
    final: dict[str, Any] = dict(content["final"])
    for name, value in final.items():
        if value is None and name not in MAY_BE_UNKNOWN:
            final[name] = np.nan
    return Outcome(content["status"], np.load(folder / ARRAY), Record(**final))


def write_failure(
    folder: Path,
    config: Mapping[str, Any],
    error: Exception,
    code: int,
    status: str = FAILED,
) -> None:
    """The files of a run that came to nothing: result.json with the message, and the traceback.

    In a folder that has the result of another run, this goes to refused.json alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "status": status,
        "message": str(error).split("\n")[0] or type(error).__name__,
        "exit_code": code,
        "config": config,
        "command": result.command(),
        "versions": result.versions(),
        "machine": result.machine(),
    }
    if (folder / RESULT).exists():
        result.write_json(folder / REFUSED, content)
        return
    text = "".join(traceback.format_exception(error))
    (folder / ERROR).write_text(text, encoding="utf-8")
    result.write_json(folder / RESULT, content)


def forget_checkpoint(folder: Path) -> None:
    """Remove what a finished run does not need any more."""
    _forget(folder, CHECKPOINT)


def _forget(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it holds no object")
    return content
