"""One run: from a resolved configuration to the files in its folder."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from buropt import checkpoint
from buropt.build import Experiment, build, settings_of
from buropt.checkpoint import Checkpoint
from buropt.ending import End, judge, summary, write_files
from buropt.folder import (
    CHECKPOINT,
    HISTORY,
    OccupiedError,
    UnwritableError,
    config_of,
    create_run,
    finished,
    is_taken,
    may_go_on,
    outcome_of,
    read_checkpoint,
    reopen_run,
    require_reachable,
    require_same,
    withdraw_run,
    writing_to,
)
from buropt.history import MAY_BE_UNKNOWN, History, Record
from buropt.loggers import Guarded
from buropt.loop import Interruption, Outcome, Position, minimize
from buropt.mistakes import usage_errors
from buropt.progress import Progress, summary_table

SAME_PROBLEM = 1e-9  # relative; machines differ by less
log = logging.getLogger("buropt.run")


@dataclass(frozen=True)
class Report:
    """What a run came to, for the process that started it."""

    outcome: Outcome
    message: str
    exit_code: int


def run(
    config: DictConfig,
    folder: Path,
    console: Console | None = None,
    on_start: Callable[[], None] | None = None,
    resume: bool = False,
) -> Report:
    """Run what `config` describes and write its files to `folder`.

    Parameters
    ----------
    config : DictConfig
        As composed from `buropt/conf`.
    folder : Path
        Created if needed; receives the files that `buropt.folder` lists.
    console : Console, optional
        Where progress and the closing table go.
    on_start : callable, optional
        Called once the folder belongs to this run, before anything is computed.
    resume : bool
        Go on with the run in the folder, if there is one; a finished one stays as it is, unless
        the limits of its budget are others now.

    Raises
    ------
    UsageError
        For a mistake in the configuration, before anything is computed or written.
    UnwritableError
        If the folder takes no files at the start; nothing is left there.
    OSError
        If the history cannot be closed, as on a full network disk.
    """
    started = datetime.now(timezone.utc)
    console = Console() if console is None else console
    with usage_errors():
        plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
        settings = settings_of(plain)
        logging.getLogger("buropt").setLevel(logging.INFO if settings.verbose else logging.WARNING)
        goes_on = resume and is_taken(folder)
        report = finished_before(folder, plain) if goes_on else None
        if report is not None:
            if settings.verbose:
                console.print(report.message, highlight=False, markup=False, soft_wrap=True)
            return report
        if goes_on:
            experiment, history, position = reopened(folder, plain)
        else:
            experiment, history = opened(folder, plain, settings.overwrite or resume)
            position = None
    # From here to the end a Ctrl-C waits for the iteration, and then for the files, to be finished.
    with history, Interruption() as interruption, Guarded(experiment.logger) as logger:
        if on_start is not None:
            tell_of_start(on_start, folder, is_new=not goes_on)
        if settings.verbose:
            console.print(experiment.title, style="bold", highlight=False, soft_wrap=True)
        if position is not None:
            log.info("goes on from the checkpoint at iteration %d", position.iteration)
        logger.start(plain, folder)

        def on_record(record: Record) -> None:
            progress.update(record)
            logger.log(record)

        with Progress(experiment.budget, console, enabled=settings.verbose) as progress:
            outcome = minimize(
                experiment.problem,
                experiment.method,
                experiment.budget,
                seed=settings.seed,
                log_every=settings.log_every,
                history=history,
                on_record=on_record,
                interruption=interruption,
                checkpoints=checkpoint.Writer(
                    folder / CHECKPOINT,
                    settings.checkpoint,
                    checkpoint.identity(plain),
                    experiment.method,
                    experiment.problem,
                    history,
                ),
                start=position,
            )
        logger.finish(outcome)
        message, exit_code = judge(outcome, experiment, history, interruption)
        resumed = None if position is None else position.iteration
        end = End(outcome, message, exit_code, started, resumed)
        failures = write_files(folder, plain, experiment, history, end)
        if failures:
            message, exit_code = f"{message}; but {' and '.join(failures)}", exit_code or 1
        if settings.verbose:
            console.print(summary_table(summary(experiment, outcome, history, folder), ""))
    return Report(outcome, message, exit_code)


def finished_before(folder: Path, config: dict[str, Any]) -> Report | None:
    """The report of a run that has nothing left to do; None if it has, maybe with new limits.

    Raises
    ------
    ValueError
        If the run is one of another configuration.
    """
    require_same(folder, config)
    content = finished(folder)
    if content is None or (has_other_limits(folder, config) and may_go_on(content)):
        return None
    outcome = outcome_of(folder, content)
    message = f"{content['message']}; the run in {folder} has nothing left to do"
    return Report(outcome, message, int(content["exit_code"]))


def has_other_limits(folder: Path, config: dict[str, Any]) -> bool:
    """Whether the run in the folder has had another budget until now."""
    return settings_of(config).budget != settings_of(config_of(folder)).budget


def opened(folder: Path, config: dict[str, Any], overwrite: bool) -> tuple[Experiment, History]:
    """What a new run needs, and its history; the folder is made.

    Raises
    ------
    ValueError
        If the folder holds a run that is not to be overwritten, or for a wrong configuration.
    """
    if not overwrite and is_taken(folder):
        raise OccupiedError(folder)  # before a line is logged there
    experiment = build(config)
    minimum = experiment.problem.constants.f_star  # may be solved for; not the run's time
    objective = experiment.settings.objective
    if minimum is None and objective in MAY_BE_UNKNOWN:
        raise ValueError(
            f"objective={objective} is for problems whose minimum is known: write objective=f"
        )
    return experiment, create_run(folder, config, overwrite)


def reopened(folder: Path, config: dict[str, Any]) -> tuple[Experiment, History, Position | None]:
    """The experiment of a run that goes on, its history, and where it stands.

    Raises
    ------
    ValueError
        If it cannot go on, or not with these limits; nothing in the folder is changed then.
    """
    experiment = build(config)
    found = read_checkpoint(folder, config, type(experiment.method))
    if found is None and finished(folder) is not None:
        raise ValueError(
            f"the run in {folder} has ended without a checkpoint to go on from, as with "
            "checkpoint.keep=false: start a new run with the larger budget"
        )
    if found is not None:
        records = History.load(folder / HISTORY).records[: found.records]
        if has_other_limits(folder, config):
            n_samples = experiment.problem.n_samples
            require_reachable(folder, found.position, records, experiment.budget, n_samples)
        experiment = continued(experiment, found, records)
    history = reopen_run(folder, config, found)
    return experiment, history, None if found is None else found.position


def continued(experiment: Experiment, found: Checkpoint, records: list[Record]) -> Experiment:
    """The experiment as it was when the checkpoint was written, after these records.

    Raises
    ------
    ValueError
        If the problem is not the same: its data have changed.
    """
    problem = experiment.problem
    problem.constants = found.constants
    if found.position.finite is not None:
        x, then = found.position.finite
        now = problem.metrics(x)
        largest = max(abs(record.f) for record in (then, *records[:1]))
        if abs(now[0] - then.f) > SAME_PROBLEM * largest:
            raise ValueError(
                f"the checkpoint is of another problem: at its point f was {then.f:.12g}, and now "
                f"it is {now[0]:.12g}; have the data changed?"
            )
        if now != (then.f, then.grad_norm_sq):
            log.warning(
                "this machine rounds f to %r, and the one before to %r: the run goes on, but not "
                "with the same bits",
                now[0],
                then.f,
            )
    return replace(experiment, method=found.method)


def tell_of_start(on_start: Callable[[], None], folder: Path, is_new: bool) -> None:
    """Call it; if it cannot write to the folder, a new run leaves nothing there.

    Raises
    ------
    UnwritableError
    """
    try:
        with writing_to(folder):
            on_start()
    except UnwritableError:
        if is_new:
            withdraw_run(folder)
        raise
