"""The folders of runs and sweeps: each start gets one of its own, a resumed one that of before.

Hydra calls `Folders` before it starts jobs and when all have ended. A sweep's folder has a file
sweep.json, by which `resume=true` finds it again: the latest sweep that was started with the same
overrides, in the same order, beside the folder that Hydra would make for a new one.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from buropt import result
from buropt._interrupt import undone
from buropt.checkpoint import SILENT
from buropt.folder import (
    REFUSED,
    RESULT,
    RUN,
    UnwritableError,
    config_of,
    finished,
    writing_to,
)
from buropt.monitor import Monitor, read_object
from buropt.processes import JOBLIB, patient

SWEEP, FAILURES = "sweep.json", ".failed_downloads"
BASIC = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
THREADS = (
    *("BUROPT_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    "NUMEXPR_NUM_THREADS",
)


class Sweep(NamedTuple):
    """The folder of a sweep, and its number of jobs, where that is known."""

    folder: Path
    total: int | None

    def left(self) -> str:
        """How much of it has not ended, and the command by which it goes on."""
        ended = [path.parent for path in self.folder.rglob(RESULT)]
        begun = {path.parent for path in self.folder.rglob(RUN)}.difference(ended)
        names = ", ".join(sorted(f"#{path.relative_to(self.folder)}" for path in begun))
        total = "" if self.total is None else f" of {self.total}"
        words = [word for word in sys.argv[1:] if not word.startswith("resume=")]
        return (
            f"{len(ended)}{total} jobs have ended{names and f', {names} had begun'}; it goes on "
            f"with: {shlex.join(['buropt', *words, f'resume={self.folder}'])}"
        )


class Folders(Callback):
    """Hydra's hooks around runs and sweeps.

    While a sweep runs, its jobs are watched. Jobs in processes of their own get one thread each
    (hydra.launcher.cpus_per_task of SLURM's), unless the usual variables say otherwise.
    """

    at_the_end: ClassVar[ExitStack] = ExitStack()
    """Stops watching, and undoes what was done for a sweep; with the error where one ended it."""
    launched: ClassVar[Sweep | None] = None  # whose jobs may have been started

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Choose the folder of a run."""
        with _refusals():
            resume = config.get("resume")
            if resume is True:
                raise ValueError(
                    "resume=true is for sweeps; of a single run name the folder: resume=FOLDER"
                )
            wanted = _of_a_run(Path(str(resume))) if resume else Path(config.hydra.run.dir)
            is_new = not resume and not _is_given(config, "run")
            trifles = {f"{config.hydra.job.name}.log"}
            folder = self.at_the_end.enter_context(_kept_if_used(wanted, is_new, trifles))
            _set_folder(config, "run", folder)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Choose the folder of a sweep, and watch it."""
        with _refusals():
            resume = config.get("resume")
            wanted = _of_a_sweep(config, resume) if resume else Path(config.hydra.sweep.dir)
            is_new = not resume and not _is_given(config, "sweep")
            trifles = {SWEEP, "multirun.yaml"}  # the latter is Hydra's
            folder = self.at_the_end.enter_context(_kept_if_used(wanted, is_new, trifles))
            _set_folder(config, "sweep", folder)
            is_new = not (folder / SWEEP).exists()
            if is_new:
                content = {
                    "format": "buropt sweep",
                    "version": 1,
                    "overrides": _overrides(config),
                    "started": datetime.now(timezone.utc).isoformat(),
                    "command": result.command(),
                }
                with writing_to(folder):
                    result.write_json(folder / SWEEP, content)
            if resume:
                forget_failures(folder)
            if config.hydra.launcher.get("_target_") != BASIC:
                self._prepare_processes(config, is_new)
            from buropt.data.download import sharing_failures  # SciPy comes with it

            self.at_the_end.enter_context(sharing_failures(folder.absolute() / FAILURES))
            total, constant = swept(config)
            monitor = Monitor(folder, total, constant, bool(config.get("verbose", True)))
            self.at_the_end.enter_context(monitor)
            Folders.launched = Sweep(folder, total)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """End the process with the sweep's exit code, unless that is 0."""
        with _refusals():
            self.at_the_end.close()
            code = max(exit_codes(Path(config.hydra.sweep.dir)), default=0)
            if code:
                sys.exit(code)

    def _prepare_processes(self, config: DictConfig, is_new: bool) -> None:
        """For jobs that do not run in this process."""
        if is_new:
            # What then lies in a job's folder is its own: SLURM has ended it and starts it again.
            with read_write(config):
                config.hydra.overrides.task.append("resume=true")
        if config.hydra.launcher.get("_target_") == JOBLIB:
            self.at_the_end.enter_context(patient())
        threads = str(config.hydra.launcher.get("cpus_per_task") or 1)
        for name in THREADS:
            if name not in os.environ:
                os.environ[name] = threads
                self.at_the_end.callback(os.environ.pop, name)


@contextmanager
def _refusals() -> Iterator[None]:
    """Ends the process where Hydra would turn an exception of a hook into a warning."""
    try:
        yield
    except (ValueError, OSError) as error:
        place = f"{error.full_key}: " if isinstance(error, OmegaConfBaseException) else ""
        print(f"buropt: {place}{str(error).splitlines()[0]}", file=sys.stderr)
        sys.exit(2)
    except UnwritableError as error:
        print(f"buropt: {error}", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        traceback.print_exception(error)
        sys.exit(1)


@contextmanager
def _kept_if_used(wanted: Path, is_new: bool, trifles: set[str]) -> Iterator[Path]:
    """Makes a folder, which goes again if nothing but trifles is written to it.

    That is after a refusal, or a Ctrl-C before the start; what was there before stays. A new one
    gets a number if it was there before.
    """
    made = [place for place in wanted.absolute().parents if not place.exists()]
    is_there = wanted.exists() and not is_new
    for at in (wanted, *wanted.parents):
        if os.path.lexists(at) and not at.is_dir():
            raise ValueError(f"the folder {wanted} cannot be made: {at} is in its way")
    with writing_to(wanted):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        folder = _new(wanted) if is_new else wanted
        folder.mkdir(exist_ok=True)
    if not is_there:
        made.insert(0, folder.absolute())
    before, place = set(os.listdir(folder)), folder.absolute()  # a job may change the directory

    def leave() -> None:
        written = set(os.listdir(place)) - before
        if all(name in trifles or _is_empty(place / name) for name in written):
            _close_logs(place)
            for name in written:
                (place / name).unlink() if name in trifles else (place / name).rmdir()
            for parent in made:
                parent.rmdir()  # which fails, if another process has put something there

    undone.append(leave)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            leave()
        raise
    finally:
        undone.remove(leave)


def exit_codes(folder: Path) -> Iterator[int]:
    """Of all jobs of a sweep; 1 for a job that was killed."""
    for path in (*folder.rglob(RESULT), *folder.rglob(REFUSED)):
        yield int(json.loads(path.read_text(encoding="utf-8")).get("exit_code", 0))
    for path in folder.rglob(RUN):
        if not path.with_name(RESULT).exists():
            yield 1


def forget_failures(folder: Path) -> None:
    """Remove the results of jobs that are to be tried again."""
    for path in folder.rglob(RESULT):
        if finished(path.parent) is None:
            path.unlink()
    for path in folder.rglob(REFUSED):
        path.unlink()


def swept(config: DictConfig) -> tuple[int | None, frozenset[str]]:
    """The number of a sweep's jobs, if it is known, and the keys that are the same in all."""
    sweeper = config.hydra.sweeper
    words = list(config.hydra.overrides.task)
    if sweeper.get("params") and sweeper.get("n_trials") is None:  # the command line has precedence
        words = [f"{key}={value}" for key, value in sweeper.params.items()] + words
    values: dict[str, int] = {}
    for override in OverridesParser.create().parse_overrides(words):
        n = len(list(override.sweep_string_iterator())) if override.is_discrete_sweep() else 0
        values[override.get_key_element().lstrip("+~")] = -1 if override.is_interval_sweep() else n
    total = math.prod(n for n in values.values() if n)
    constant = frozenset(key for key, n in values.items() if not n)
    unknown = min(values.values(), default=0) < 0
    return sweeper.get("n_trials") or (None if unknown else total), constant


def _overrides(config: DictConfig) -> list[str]:
    """What the command line says of the jobs' numbers: not verbose=false, nor resume=true."""
    words = list(config.hydra.overrides.task)
    return [word for word in words if re.split(r"[.=]", word)[0] not in SILENT]


def _of_a_sweep(config: DictConfig, resume: Any) -> Path:
    """The folder that is named, or that of the latest sweep with this command."""
    if resume is True and _is_given(config, "sweep"):
        return Path(config.hydra.sweep.dir)  # which may be new: then it is a start
    if resume is not True:
        folder = Path(str(resume))
        if not (folder / SWEEP).exists():
            raise ValueError(f"there is no sweep in {folder}: name the folder that has its {SWEEP}")
        return folder
    root = Path(config.hydra.sweep.dir).parents[1]  # multirun, of multirun/day/time
    found = []
    for path in root.glob(f"*/*/{SWEEP}"):
        content = read_object(path)
        if content is not None and content.get("overrides") == _overrides(config):
            found.append((str(content.get("started")), path.parent))
    if not found:
        raise ValueError(
            f"resume=true: no sweep under {root} was started with these overrides; name its folder "
            "with resume=FOLDER, or leave resume out to start it"
        )
    return max(found)[1]


def _of_a_run(folder: Path) -> Path:
    if (folder / SWEEP).exists():
        raise ValueError(f"{folder} is that of a sweep: write its command again, with resume=true")
    config_of(folder)
    return folder


def _is_given(config: DictConfig, kind: str) -> bool:
    """Whether the command line names the folder; any other is only a pattern for new ones."""
    return any(word.startswith(f"hydra.{kind}.dir=") for word in config.hydra.overrides.hydra)


def _is_empty(path: Path) -> bool:
    """Whether it is the folder of a job that has not begun."""
    return path.is_dir() and not os.listdir(path)


def _close_logs(folder: Path) -> None:
    """Take from the process what would write a line to a folder that is about to go."""
    root = logging.getLogger()
    logs = [handler for handler in root.handlers if isinstance(handler, logging.FileHandler)]
    for handler in logs:
        if folder in Path(handler.baseFilename).parents:
            root.removeHandler(handler)
            handler.close()


def _new(wanted: Path) -> Path:
    """Makes a folder of that name, with a number if it was there before."""
    folder, number = wanted, 1
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            folder = wanted.with_name(f"{wanted.name}-{number}")
        else:
            return folder


def _set_folder(config: DictConfig, kind: str, folder: Path) -> None:
    """For this process, and for the jobs, whose configurations are composed from the overrides."""
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    with read_write(config), open_dict(config):
        config.hydra[kind].dir = str(folder)
        config.hydra.overrides.hydra.append(f"hydra.{kind}.dir='{quoted}'")
