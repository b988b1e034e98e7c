"""How a run ends: in a sentence with an exit code, in its files, and in a table on the screen."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buropt import result
from buropt.folder import ARRAY, CURVE, HISTORY, RESULT, forget_checkpoint
from buropt.loop import ENDED, INTERRUPTED, NON_FINITE, UNWRITABLE, Interruption, Outcome
from buropt.mistakes import first_line
from buropt.optim.base import FixedStep
from buropt.progress import format_bits

if TYPE_CHECKING:
    from buropt.build import Experiment
    from buropt.history import History

log = logging.getLogger("buropt.run")


@dataclass(frozen=True)
class End:
    """How a run ended, when it was started, and at which iteration it was resumed, if it was."""

    outcome: Outcome
    message: str
    exit_code: int
    started: datetime
    resumed: int | None


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
