"""One run: from a resolved configuration to the files in its folder."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from buropt import checkpoint, result
from buropt.build import Experiment, build, settings_of
from buropt.checkpoint import Checkpoint
from buropt.folder import (
    ARRAY,
    CHECKPOINT,
    CURVE,
    HISTORY,
    RESULT,
    OccupiedError,
    UnwritableError,
    config_of,
    create_run,
    finished,
    forget_checkpoint,
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
from buropt.loop import (
    ENDED,
    INTERRUPTED,
    NON_FINITE,
    UNWRITABLE,
    Interruption,
    Outcome,
    Position,
    minimize,
)
from buropt.mistakes import first_line, usage_errors
from buropt.optim.base import FixedStep
from buropt.progress import Progress, format_bits, summary_table

SAME_PROBLEM = 1e-9  # relative; machines differ by less
log = logging.getLogger("buropt.run")


@dataclass(frozen=True)
class Report:
    """What a run came to, for the process that started it."""

    outcome: Outcome
    message: str
    exit_code: int


@dataclass(frozen=True)
class End:
    """How a run ended, when it was started, and at which iteration it was resumed, if it was."""

    outcome: Outcome
    message: str
    exit_code: int
    started: datetime
    resumed: int | None


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


def judge(
    outcome: Outcome, experiment: Experiment, history: History, interruption: Interruption
) -> tuple[str, int]:
    """The run's end in one sentence, and its exit code."""
    iteration = history.records[-1].iteration
    at = f"at iteration {iteration}"
    if outcome.status == NON_FINITE and iteration == 0:
        return "the value or the gradient at the start is not finite: look at the data", 1
    if outcome.status == NON_FINITE:
        message = f"the value or the gradient stopped being finite {at}"
        if isinstance(experiment.method, FixedStep):
            message += (
                f": the step size {experiment.method.gamma:.3g} is too large for this problem; "
                "lower optimizer.step_size_factor, e.g. to a tenth"
            )
        return message, 1
    if outcome.status == UNWRITABLE:
        return f"stopped {at}: {HISTORY} could not be written: {outcome.error}", 1
    if outcome.status == ENDED:
        return f"{experiment.method.label} ended by itself {at}: {outcome.message}", 0
    if outcome.status == INTERRUPTED:
        code = 128 + (interruption.signal or 0)  # a shell's convention: 130 for Ctrl-C
        return f"interrupted {at}; everything up to there is written", code
    if outcome.status.startswith("budget:"):
        return f"the budget of {outcome.status.removeprefix('budget:')} is used up {at}", 0
    return f"|grad f|^2 reached the tolerance {at}", 0


def write_files(
    folder: Path,
    config: dict[str, Any],
    experiment: Experiment,
    history: History,
    end: End,
) -> list[str]:
    """x.npy, curve.png and result.json; says what could not be written, the picture aside.

    result.json is the last: a run that is killed before it is there will be resumed.
    """
    problem, constants, outcome = experiment.problem, experiment.problem.constants, end.outcome
    content = {
        "status": outcome.status,
        "message": end.message,
        "exit_code": end.exit_code,
        "final": outcome.record,
        "initial": history.records[0],
        "x_sha256": result.fingerprint(outcome.x),
        "problem": {
            "name": problem.name,
            "n_samples": problem.n_samples,
            "dim": problem.dim,
            "n_workers": problem.n_workers,
            "dtype": str(problem.x0.dtype),
        },
        "constants": {
            "L": constants.L,
            "L_i": constants.L_i,
            "L_max": constants.L_max,
            "L_tilde": constants.L_tilde,
            "L_sample_max": constants.L_sample_max,
            "L_sample_mean": constants.L_sample_mean,
            "L_hessian": constants.L_hessian,
            "L_plus": constants.L_plus,
            "L_pm": constants.L_pm,
            "mu": constants.mu,
            "mu_worker": constants.mu_worker,
            "mu_sample": constants.mu_sample,
            "sample_minimum": constants.sample_minimum,
            "f_star": constants.f_star,
            "source": constants.source,
        },
        "optimizer": experiment.method,
        "seed": experiment.settings.seed,
        "config": config,
        "command": result.command(),
        "started": end.started.isoformat(timespec="seconds"),
        "resumed_at": end.resumed,
        "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": result.versions(),
        "machine": result.machine(),
    }
    failures = []
    try:
        result.write_array(folder / ARRAY, outcome.x)
    except OSError as error:
        failures.append(f"{ARRAY} could not be written: {error}")
    try:
        if experiment.settings.curve:
            draw(history, folder / CURVE, experiment.title)
    except Exception as error:  # fonts, backends, a damaged matplotlib: the numbers are safe
        (folder / CURVE).unlink(missing_ok=True)  # half a picture
        log.warning("%s could not be drawn: %s", CURVE, first_line(error))
    try:
        result.write_json(folder / RESULT, content)
    except OSError as error:
        failures.append(f"{RESULT} could not be written: {error}")
    if not failures and outcome.status in (ENDED, NON_FINITE):  # no budget takes them further
        forget_checkpoint(folder)
    return failures


def draw(history: History, path: Path, title: str) -> None:
    """The picture of a run."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it reports its font cache
    # Imported here, since that takes longer than a short run, and without the variable, since an
    # unknown backend would fail the import and a file needs none.
    backend = None if "matplotlib" in sys.modules else os.environ.pop("MPLBACKEND", None)
    try:
        from buropt.picture import set_backend
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if backend:
        set_backend(backend)
    history.plot(path, title)


def summary(
    experiment: Experiment, outcome: Outcome, history: History, folder: Path
) -> list[tuple[str, str]]:
    """Rows of the closing table."""
    first, last = history.records[0], outcome.record
    rows = [
        ("run", experiment.title),
        ("ended", f"{outcome.status} at iteration {history.records[-1].iteration}"),
        ("f", f"{last.f:.12g}"),
    ]
    if isinstance(experiment.method, FixedStep):
        rows.insert(1, ("step size", f"{experiment.method.gamma:.4g}"))
    if last.f_gap is not None:
        rows.append(("f - f*", f"{last.f_gap:.3e}"))
    gradient = f"{last.grad_norm_sq:.3e}"
    if 0 < last.grad_norm_sq < first.grad_norm_sq:
        gradient += f"  ({first.grad_norm_sq / last.grad_norm_sq:.1e} times below the start)"
    time = f"{last.seconds:.3g} s"
    if last.iteration > 0:
        time += f"  ({last.seconds / last.iteration * 1e6:.3g} us an iteration)"
    rows += [
        ("|grad f|^2", gradient),
        ("passes over the data", f"{last.epochs:.6g}"),
        ("bits of a worker", f"{format_bits(last.bits_up)} up, {format_bits(last.bits_down)} down"),
        ("time of the method", time),
        ("files", str(folder)),
    ]
    return rows
