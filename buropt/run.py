"""The main job: `python -m buropt.run optimizer=marina ...`, also installed as `buropt`.

Hydra reads the configuration in `buropt/conf`; `run` does the rest and can be called without a
command line. Exit codes: 0 the budget is used up or the tolerance reached; 1 a value was not
finite, or a bug (with its traceback); 2 a mistake in the command, said in one sentence; 130
interrupted, everything written.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from buropt import result
from buropt.build import GROUPS, Experiment, build, unknown_key
from buropt.history import History
from buropt.loop import INTERRUPTED, NON_FINITE, Interruption, Outcome, minimize
from buropt.progress import Progress, format_bits, summary_table

CONFIGS = "pkg://buropt.conf"
FULL_ERROR = "HYDRA_FULL_ERROR"


class UsageError(Exception):
    """A mistake of the person who started the run; shown as its message alone."""


@dataclass(frozen=True)
class Report:
    """What a run came to, for the process that started it."""

    outcome: Outcome
    message: str
    exit_code: int


def run(config: DictConfig, folder: Path, console: Console | None = None) -> Report:
    """Run what `config` describes and write its files to `folder`.

    Parameters
    ----------
    config : DictConfig
        As composed from `buropt/conf`.
    folder : Path
        Created if needed; receives history.jsonl, result.json, curve.png and x.npy.
    console : Console, optional
        Where progress and the closing table go.

    Raises
    ------
    UsageError
        For a mistake in the configuration, before anything is computed.
    """
    started = datetime.now(timezone.utc)
    console = Console() if console is None else console
    with usage_errors():
        plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
        logging.getLogger("buropt").setLevel(logging.INFO if plain["verbose"] else logging.WARNING)
        experiment = build(plain)
        _ = experiment.problem.constants.f_star  # may have to be solved for; no part of the run
        folder.mkdir(parents=True, exist_ok=True)
        history = open_history(folder / "history.jsonl", experiment.settings.overwrite)
    verbose = experiment.settings.verbose
    if verbose:
        console.print(experiment.title, style="bold", highlight=False, soft_wrap=True)

    # From here to the end a Ctrl-C waits for the iteration, and then for the files, to be finished.
    with history, Interruption() as interruption:
        with Progress(experiment.budget, console, enabled=verbose) as progress:
            outcome = minimize(
                experiment.problem,
                experiment.method,
                experiment.budget,
                seed=experiment.settings.seed,
                log_every=experiment.settings.log_every,
                history=history,
                on_record=progress.update,
                interruption=interruption,
            )
        message, exit_code = judge(outcome, experiment, history, interruption)
        write_files(folder, plain, experiment, outcome, history, message, started)
        if verbose:
            console.print(summary_table(summary(experiment, outcome, history, folder), ""))
    return Report(outcome, message, exit_code)


def open_history(path: Path, overwrite: bool) -> History:
    """A new history file; an earlier run is not written over unless that was asked for."""
    try:
        return History.create(path, overwrite)
    except FileExistsError:
        raise UsageError(
            f"{path.parent} already holds a run: choose another hydra.run.dir or write "
            "overwrite=true"
        ) from None


def judge(
    outcome: Outcome, experiment: Experiment, history: History, interruption: Interruption
) -> tuple[str, int]:
    """The run's end in one sentence, and its exit code."""
    iteration = history.records[-1].iteration
    at = f"at iteration {iteration}"
    if outcome.status == NON_FINITE and iteration == 0:
        return "the value or the gradient at the start is not finite: look at the data", 1
    if outcome.status == NON_FINITE:
        gamma = experiment.method.gamma
        return (
            f"the value or the gradient stopped being finite {at}: the step size {gamma:.3g} is "
            "too large for this problem; lower optimizer.step_size_factor, e.g. to a tenth",
            1,
        )
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
) -> None:
    """result.json, x.npy and curve.png."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it reports its font cache
    from buropt.plot import plot_history  # importing matplotlib takes longer than a short run

    problem, constants = experiment.problem, experiment.problem.constants
    result.write_array(folder / "x.npy", outcome.x)
    result.write_json(
        folder / "result.json",
        {
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
                "L_plus": constants.L_plus,
                "L_pm": constants.L_pm,
                "mu": constants.mu,
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
        },
    )
    plot_history(history, folder / "curve.png", experiment.title)


def summary(
    experiment: Experiment, outcome: Outcome, history: History, folder: Path
) -> list[tuple[str, str]]:
    """Rows of the closing table."""
    first, last = history.records[0], outcome.record
    rows = [
        ("run", experiment.title),
        ("step size", f"{experiment.method.gamma:.4g}"),
        ("ended", f"{outcome.status} at iteration {history.records[-1].iteration}"),
        ("f", f"{last.f:.12g}"),
    ]
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


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turns what a wrong configuration raises while a run is built into `UsageError`."""
    try:
        yield
    except (ValueError, TypeError, OSError, OmegaConfBaseException) as error:
        raise UsageError(first_line(error)) from error


def main() -> None:
    """The command line; ends the process with the exit codes that the module's text lists."""
    codes: list[int] = []

    @hydra.main(config_path=CONFIGS, config_name="config", version_base="1.3")
    def app(config: DictConfig) -> None:
        try:
            report = run(config, Path(HydraConfig.get().runtime.output_dir))
        except UsageError as error:
            if asked_for_traceback:
                raise
            print(f"buropt: {error}", file=sys.stderr)
            codes.append(2)
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
    except (HydraException, OmegaConfBaseException, OSError) as error:
        if asked_for_traceback:
            raise
        print(f"buropt: {explain(error)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("buropt: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        os.environ.pop(FULL_ERROR)
        if before is not None:
            os.environ[FULL_ERROR] = before
    sys.exit(max(codes, default=0))


def explain(error: Exception) -> str:
    """One sentence for an error of the command line, with the valid choices."""
    if isinstance(error, MissingConfigException) and error.options:
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
        near = difflib.get_close_matches(choice, error.options, n=1)
        hint = f"; did you mean {group}={near[0]}?" if near else "."
        return f"{group}={choice} is not a choice{hint} The choices are {', '.join(error.options)}."
    if isinstance(error, OverrideParseException):
        return f"cannot read {error.override!r} on the command line: {first_line(error)}"
    unknown = re.match(r"Could not override '(.+)'\.", str(error))
    if unknown:
        place = unknown.group(1)
        valid = settings_beside(place, sys.argv[1:])
        if valid:
            return unknown_key(place, valid)
    return first_line(error)


def settings_beside(place: str, arguments: list[str]) -> list[str]:
    """The keys that exist where `place` was looked for, given the groups chosen in `arguments`."""
    chosen = [item for item in arguments if item.partition("=")[0] in GROUPS]
    GlobalHydra.instance().clear()
    with hydra.initialize_config_module(CONFIGS.removeprefix("pkg://"), version_base="1.3"):
        try:
            node = OmegaConf.select(hydra.compose("config", overrides=chosen), parent(place))
        except (HydraException, OmegaConfBaseException):
            return []
    return [str(key) for key in node if key != "_target_"] if isinstance(node, DictConfig) else []


def parent(place: str) -> str:
    """optimizer.step_size -> optimizer; the root's name is empty."""
    return place.rpartition(".")[0]


def first_line(error: Exception) -> str:
    """The sentence of an error without what libraries hang below it."""
    return str(error).split("\n")[0]


if __name__ == "__main__":
    main()
