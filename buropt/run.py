"""The main job: `python -m buropt.run optimizer=marina ...`, also installed as `buropt`.

Hydra reads the configuration in `buropt/conf`; `run` does the rest and can be called without a
command line. Exit codes: 0 the budget is used up or the tolerance reached; 1 a value was not
finite, a file could not be written, or a bug (with its traceback); 2 a mistake in the command, said
in one sentence; 130 interrupted, everything written. A console that fails (`| head`) changes none.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.utils import to_absolute_path
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from buropt import result
from buropt.build import Experiment, build, settings_of
from buropt.history import History, Record
from buropt.loggers import Guarded
from buropt.loop import ENDED, INTERRUPTED, NON_FINITE, UNWRITABLE, Interruption, Outcome, minimize
from buropt.mistakes import CONFIGS, UsageError, explain, first_line, usage_errors
from buropt.optim.base import FixedStep
from buropt.progress import Progress, format_bits, summary_table
from buropt.screen import surviving_streams

FULL_ERROR = "HYDRA_FULL_ERROR"
HISTORY, RESULT, ARRAY, CURVE = "history.jsonl", "result.json", "x.npy", "curve.png"
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
) -> Report:
    """Run what `config` describes and write its files to `folder`.

    Parameters
    ----------
    config : DictConfig
        As composed from `buropt/conf`.
    folder : Path
        Created if needed; receives history.jsonl, result.json, curve.png and x.npy.
    console : Console, optional
        Where progress and the closing table go.
    on_start : callable, optional
        Called once the folder belongs to this run, before anything is computed.

    Raises
    ------
    UsageError
        For a mistake in the configuration, before anything is computed or written.
    OSError
        If the history cannot be closed, as on a full network disk.
    """
    started = datetime.now(timezone.utc)
    console = Console() if console is None else console
    with usage_errors():
        plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
        settings = settings_of(plain)
        logging.getLogger("buropt").setLevel(logging.INFO if settings.verbose else logging.WARNING)
        if not settings.overwrite and (folder / HISTORY).exists():  # before a line is logged there
            raise occupied(folder)
        experiment = build(plain)
        _ = experiment.problem.constants.f_star  # may have to be solved for; no part of the run
        folder.mkdir(parents=True, exist_ok=True)
        history = open_history(folder, settings.overwrite)
        if on_start is not None:
            on_start()
    verbose = settings.verbose
    if verbose:
        console.print(experiment.title, style="bold", highlight=False, soft_wrap=True)

    # From here to the end a Ctrl-C waits for the iteration, and then for the files, to be finished.
    with history, Interruption() as interruption, Guarded(experiment.logger) as logger:
        logger.start(plain, folder)

        def on_record(record: Record) -> None:
            progress.update(record)
            logger.log(record)

        with Progress(experiment.budget, console, enabled=verbose) as progress:
            outcome = minimize(
                experiment.problem,
                experiment.method,
                experiment.budget,
                seed=settings.seed,
                log_every=settings.log_every,
                history=history,
                on_record=on_record,
                interruption=interruption,
            )
        logger.finish(outcome)
        message, exit_code = judge(outcome, experiment, history, interruption)
        failures = write_files(folder, plain, experiment, outcome, history, message, started)
        if failures:
            message, exit_code = f"{message}; but {' and '.join(failures)}", exit_code or 1
        if verbose:
            console.print(summary_table(summary(experiment, outcome, history, folder), ""))
    return Report(outcome, message, exit_code)


def open_history(folder: Path, overwrite: bool) -> History:
    """A new history file; an earlier run is not written over unless that was asked for."""
    try:
        history = History.create(folder / HISTORY, overwrite)
    except FileExistsError:
        raise occupied(folder) from None
    for name in (RESULT, ARRAY, CURVE):  # of the run whose history has just gone
        (folder / name).unlink(missing_ok=True)
    return history


def occupied(folder: Path) -> UsageError:
    """The refusal to write over an earlier run."""
    return UsageError(
        f"{folder} already holds a run: choose another hydra.run.dir or write overwrite=true"
    )


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
    outcome: Outcome,
    history: History,
    message: str,
    started: datetime,
) -> list[str]:
    """x.npy, result.json and curve.png; says what could not be written, the picture aside."""
    problem, constants = experiment.problem, experiment.problem.constants
    content = {
        "status": outcome.status,
        "message": message,
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
        "started": started.isoformat(timespec="seconds"),
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
        result.write_json(folder / RESULT, content)
    except OSError as error:
        failures.append(f"{RESULT} could not be written: {error}")
    try:
        draw(history, folder / CURVE, experiment.title)
    except Exception as error:  # fonts, backends, a damaged matplotlib: the numbers are safe
        log.warning("%s could not be drawn: %s", CURVE, first_line(error))
    return failures


def draw(history: History, path: Path, title: str) -> None:
    """The picture of a run."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it reports its font cache
    # Imported here, since that takes longer than a short run, and without the variable, since an
    # unknown backend would fail the import and a file needs none.
    backend = None if "matplotlib" in sys.modules else os.environ.pop("MPLBACKEND", None)
    try:
        from buropt.plot import plot_history, set_backend
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if backend:
        set_backend(backend)
    plot_history(history, path, title)


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


def main() -> None:
    """The command line; ends the process with the exit codes that the module's text lists."""
    with surviving_streams():
        code = command_line()
    sys.exit(code)


def command_line() -> int:
    """Let Hydra read the command line and run what it says; the exit code."""
    codes: list[int] = []
    jobs: list[Path] = []

    @hydra.main(config_path=CONFIGS, config_name="config", version_base="1.3")
    def app(config: DictConfig) -> None:
        folder = Path(HydraConfig.get().runtime.output_dir)
        jobs.append(folder)
        try:
            paths_from_where_the_command_was_run(config)
            report = run(config, folder, on_start=lambda: keep_configuration(config, folder))
        except UsageError as error:
            if asked_for_traceback:
                raise
            print(f"buropt: {error}", file=sys.stderr)
            codes.append(2)
            return
        except OSError as error:
            if asked_for_traceback:
                raise
            print(f"buropt: a file could not be written: {error}", file=sys.stderr)
            codes.append(1)
            return
        if report.exit_code:
            print(f"buropt: {report.message}", file=sys.stderr)
        if report.outcome.status == INTERRUPTED:  # ends a sweep, too
            sys.exit(report.exit_code)
        codes.append(report.exit_code)

    # Hydra would print errors its own way and exit; with this variable it raises them.
    before = os.environ.get(FULL_ERROR)
    asked_for_traceback = before == "1"
    os.environ[FULL_ERROR] = "1"
    try:
        app()
    except (HydraException, OmegaConfBaseException, OSError, ValueError) as error:
        bug = (
            isinstance(error, ValueError) and jobs and not isinstance(error, OmegaConfBaseException)
        )
        if asked_for_traceback or bug:
            raise
        print(f"buropt: {explain(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("buropt: interrupted", file=sys.stderr)
        return 130
    finally:
        os.environ.pop(FULL_ERROR)
        if before is not None:
            os.environ[FULL_ERROR] = before
    return max(codes, default=0)


def paths_from_where_the_command_was_run(config: DictConfig) -> None:
    """With hydra.job.chdir=true a job runs elsewhere; data.path is meant as it was typed."""
    with usage_errors():
        path = OmegaConf.select(config, "data.path")
        if isinstance(path, str) and os.getcwd() != HydraConfig.get().runtime.cwd:
            config.data.path = to_absolute_path(path)


def keep_configuration(config: DictConfig, folder: Path) -> None:
    """The files of .hydra, which Hydra itself would write before it is known that the job runs."""
    place = folder / ".hydra"
    place.mkdir(exist_ok=True)
    settings = OmegaConf.masked_copy(HydraConfig.instance().cfg, "hydra")  # type: ignore[arg-type]
    for name, content in (
        ("config", config),
        ("hydra", settings),
        ("overrides", HydraConfig.get().overrides.task),
    ):
        (place / f"{name}.yaml").write_text(OmegaConf.to_yaml(content), encoding="utf-8")


if __name__ == "__main__":
    main()
