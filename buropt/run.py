"""The main job: `python -m buropt.run optimizer=marina ...`, also installed as `buropt`.

Hydra reads the configuration in `buropt/conf` and calls `job`, once or for every job of a sweep, in
this process or in others; `buropt.runner` does the rest and needs no command line. Exit codes: 0
the budget is used up or the tolerance reached; 1 a value was not finite, a file could not be
written (a full disk), or a bug (with its traceback); 2 a mistake in the command, said in one
sentence; 130 interrupted, everything written. A sweep's is the largest of its jobs'. A console that
fails (`| head`) changes none.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sys
import traceback
from pathlib import Path

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from hydra.utils import to_absolute_path
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from buropt.checkpoint import LIMITS, SILENT
from buropt.folder import OVERRIDES, UnwritableError, config_of, is_full, write_failure, writing_to
from buropt.hydra_files import keep_configuration
from buropt.loop import CONVERGED, INTERRUPTED, NON_FINITE
from buropt.mistakes import CONFIGS, UsageError, explain, usage_errors
from buropt.result import version
from buropt.runner import Report, run
from buropt.screen import surviving_streams
from buropt.sweep import Folders

FULL_ERROR = "HYDRA_FULL_ERROR"
TRACEBACK = "BUROPT_TRACEBACK"  # the same wish, where Hydra's variable is in use
NO_SLURM = (
    "buropt: this is no machine of a SLURM cluster: the command srun is not there; "
    "sweep=submitit_local and sweep=joblib run the jobs here"
)
COSTS = ("iteration", "epochs", "oracle_calls", "bits_up", "bits_down", "seconds")

__all__ = ["Report", "UsageError", "main", "run"]


def main() -> None:
    """The command line; ends the process with the exit codes that the module's text lists."""
    with surviving_streams():
        code = command_line()
    sys.exit(code)


def command_line() -> int:
    """Let Hydra read the command line and run what it says; the exit code."""
    if "--version" in sys.argv[1:]:  # of which Hydra would tell its own
        print(version())
        return 0
    if os.getcwd() not in sys.path:  # where `python -m` looks, too, for what a configuration names
        sys.path.append(os.getcwd())
    sys.argv[1:] = sorted(sys.argv[1:], key=place_of)
    # Hydra would print errors its own way and exit; with this variable it raises them.
    before = os.environ.get(FULL_ERROR)
    if before == "1":
        os.environ[TRACEBACK] = "1"
    os.environ[FULL_ERROR] = "1"
    Folders.launched = None
    try:
        with Folders.at_the_end:
            hydra.main(config_path=CONFIGS, config_name="config", version_base="1.3")(job)()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:  # of Hydra, a launcher or a sweeper: jobs tell of theirs
        if TRACEBACK in os.environ:
            raise
        if is_full(error) and Folders.launched is not None:
            tell(UnwritableError(Folders.launched.folder, error))
            return 1
        refusals = (HydraException, OmegaConfBaseException, OSError, ValueError)
        if isinstance(error, refusals) or Folders.launched is None:
            print(f"buropt: {explain(error)}", file=sys.stderr)
            return 2
        if "slurm cluster" in str(error):
            print(NO_SLURM, file=sys.stderr)
            return 2
        traceback.print_exception(error)
        print(f"buropt: the sweep was stopped: {Folders.launched.left()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("buropt: interrupted", file=sys.stderr)
        return 130
    finally:
        os.environ.pop(FULL_ERROR)
        os.environ.pop(TRACEBACK, None)
        if before is not None:
            os.environ[FULL_ERROR] = before
    return 0


def place_of(word: str) -> int:
    """Where Hydra wants an argument: options, which take words of their own, before settings."""
    if word in ("-m", "--multirun"):
        return 0
    return 2 if re.match(r"[+~\w][^=]*=|[+~]", word) else 1


def job(config: DictConfig) -> float:
    """A run, alone or of a sweep, in the folder that Hydra gives it.

    Returns
    -------
    float
        The objective, for sweepers that look for a small one: inf for a run that came to nothing.
        A job that runs alone ends the process with its exit code instead, unless that is 0.
    """
    logging.raiseExceptions = False  # a run.log on a full disk is no news beside the run's message
    here = HydraConfig.get()
    settings: DictConfig = HydraConfig.instance().cfg  # type: ignore[assignment]
    folder = Path(here.runtime.output_dir)
    alone = here.mode != RunMode.MULTIRUN
    is_ours = not alone  # a sweep's folder is made for it; a run that is refused leaves no trace

    def on_start() -> None:
        nonlocal is_ours
        keep_configuration(folder, config, settings)
        is_ours = True

    try:
        with usage_errors():
            if "resume" not in config:
                raise ValueError("this is no configuration of buropt: begin its defaults: - config")
            if alone and config.resume:
                config = as_it_was(config, folder)
            paths_from_where_the_command_was_run(config)
        console = None if alone else silent()
        report = run(config, folder, console, on_start=on_start, resume=bool(config.resume))
    except Exception as error:
        code = exit_code(error)
        if alone:
            tell(error)
        try:
            with writing_to(folder):
                if is_ours:
                    keep_configuration(folder, config, settings)
                    plain = OmegaConf.to_container(config, resolve=False)
                    write_failure(folder, plain, error, code)  # type: ignore[arg-type]
        except UnwritableError as unwritable:  # of a sweep, whose folder would not tell of it
            if not alone:
                tell(unwritable)
                sys.exit(1)
        if alone:
            sys.exit(code)
        return math.inf
    if alone and report.exit_code:
        print(f"buropt: {report.message}", file=sys.stderr)
    if report.outcome.status == INTERRUPTED or (alone and report.exit_code):
        sys.exit(report.exit_code)  # of a sweep, the whole ends
    return objective(config.objective, report)


def silent() -> Console:
    """For a job of a sweep, of which `Folders` shows what there is to see; warnings aside."""
    for handler in logging.getLogger().handlers:
        if not isinstance(handler, logging.FileHandler):
            handler.setLevel(logging.WARNING)
    return Console(quiet=True)


def exit_code(error: Exception) -> int:
    """2 for a mistake in the command, else 1."""
    return 2 if isinstance(error, UsageError) else 1


def tell(error: Exception) -> None:
    """Say in a sentence what ended a run, or with a traceback where that helps."""
    if TRACEBACK in os.environ or not isinstance(error, (UsageError, UnwritableError, OSError)):
        traceback.print_exception(error)
    elif isinstance(error, OSError):
        print(f"buropt: a file could not be written: {error}", file=sys.stderr)
    else:
        print(f"buropt: {error}", file=sys.stderr)


def objective(name: str, report: Report) -> float:
    """The final value of that column; inf if it is not known, or is a cost without success."""
    outcome = report.outcome
    value = getattr(outcome.record, name)
    in_vain = outcome.status == NON_FINITE or (name in COSTS and outcome.status != CONVERGED)
    return math.inf if in_vain or value is None or math.isnan(value) else float(value)


def as_it_was(config: DictConfig, folder: Path) -> DictConfig:
    """The configuration of the run in the folder, where the command line has no other.

    Settings that change no number are the command line's in any case; a logger goes on, though,
    unless another one is named. With others, it is what the run's command gives with them, which is
    for the caller to compare.

    Raises
    ------
    ValueError
        If there is no run in the folder.
    """
    then = OmegaConf.create(config_of(folder))
    words = list(HydraConfig.get().overrides.task)
    given = {re.split(r"[=.@]", word.lstrip("+~"))[0] for word in words}
    if not given <= set(SILENT):
        config = together(config, folder, words)
        if not any(word.startswith(("data.path=", "data=")) for word in words):
            config.data = then.data  # whose path is absolute
        return config
    for name in SILENT:
        if name in config and (name != "logger" or name in given):
            then[name] = config[name]
    if "threads" in then.problem:
        then.problem.threads = config.threads
    return then


def together(config: DictConfig, folder: Path, words: list[str]) -> DictConfig:
    """The configuration of the command that started the run, with words in place of its own.

    It is `config`, which is that of the words alone, where Hydra cannot read them together.
    """
    place = folder / ".hydra" / OVERRIDES
    before = [str(word) for word in OmegaConf.load(place)] if place.exists() else []
    if not any(word.startswith("budget=") for word in words):  # it may have been prolonged before
        then = config_of(folder)
        before += [f"{key}={'null' if then.get(key) is None else then[key]}" for key in LIMITS]
    silent = set(SILENT) - {"logger"}
    kept = [word for word in before if re.split(r"[=.@]", word)[0] not in silent]
    chosen = {word.partition("=")[0]: word for word in [*kept, *words]}
    try:
        composed = GlobalHydra.instance().hydra.compose_config(  # type: ignore[union-attr]
            "config", list(chosen.values()), run_mode=RunMode.RUN, with_log_configuration=False
        )
    except (HydraException, OmegaConfBaseException):
        return config
    return OmegaConf.masked_copy(composed, [str(key) for key in config])


def paths_from_where_the_command_was_run(config: DictConfig) -> None:
    """Paths are meant as they were typed, wherever the job runs, now or when it is resumed."""
    for name in ("path", "cache"):
        path = config.data.get(name) if isinstance(config.get("data"), DictConfig) else None
        if isinstance(path, str):
            config.data[name] = to_absolute_path(os.path.expanduser(path))


if __name__ == "__main__":
    # Other processes look for `job` in the module of this name, which is not "__main__".
    from buropt.run import main as main_of_the_module

    main_of_the_module()
