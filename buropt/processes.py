"""Joblib's processes for a sweep that survives when one of them is killed.

Joblib gives up all jobs when one of its processes dies, by kill -9 or for want of memory. `Patient`
takes the place of its launcher: what has ended stays, what was not running is run again, and the
jobs that were running, of which one is to blame, come last and each alone. A job whose process
dies then as well is reported as killed.
"""

from __future__ import annotations

import math
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from buropt.folder import KILLED, write_failure
from buropt.hydra_files import keep_configuration

JOBLIB = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
IDLE = 3  # times that a process may die while no job runs


@contextmanager
def patient() -> Iterator[None]:
    """While active, Hydra takes `Patient` for joblib's launcher."""
    launchers = Plugins.instance().class_name_to_class
    before = launchers[JOBLIB]
    launchers[JOBLIB] = Patient
    try:
        yield
    finally:
        launchers[JOBLIB] = before


@dataclass(frozen=True)
class Marked:
    """A task that leaves files in `place`, by which another process knows what became of it.

    A job that is called again gives the value that it had, or inf if it has begun and not ended.
    """

    task: TaskFunction
    place: Path

    def __call__(self, config: DictConfig) -> Any:
        """Run a job, unless it was called before."""
        number = int(HydraConfig.get().job.num)
        if self.end(number).exists():
            return float(self.end(number).read_text())
        if self.beginning(number).exists():
            return math.inf
        self.beginning(number).touch()
        try:
            value = self.task(config)
            self.end(number).write_text(repr(value))
        finally:  # but not if the process is killed
            self.beginning(number).unlink()
        return value

    def beginning(self, number: int) -> Path:
        """A file that is there while the job runs, and afterwards if it was killed."""
        return self.place / f"{number}.begun"

    def end(self, number: int) -> Path:
        """A file with the job's value."""
        return self.place / f"{number}.ended"


class Patient(Launcher):
    """Joblib's launcher, with its settings; see the module's text."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """As Hydra wants it."""
        self._context, self._task, self._config = hydra_context, task_function, config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run jobs; their values in the same order, inf for those that were killed."""
        with TemporaryDirectory(prefix="buropt-") as place:
            task = Marked(self._task, Path(place))
            launcher = pkgutil.resolve_name(JOBLIB.replace(".JoblibLauncher", ":JoblibLauncher"))
            joblib: Launcher = launcher(**self._settings)
            joblib.setup(hydra_context=self._context, task_function=task, config=self._config)
            numbers = range(initial_job_idx, initial_job_idx + len(job_overrides))
            interrupted: set[int] = set()
            idle = 0
            while True:
                try:
                    found = list(joblib.launch(job_overrides, initial_job_idx))
                    break
                except BrokenProcessPool:
                    begun = {k for k in numbers if task.beginning(k).exists()} - interrupted
                    idle += not begun
                    if idle == IDLE:
                        raise
                    if begun:
                        tell(begun)
                    interrupted |= begun
            for number in sorted(interrupted):
                task.beginning(number).unlink()
                position = number - initial_job_idx
                try:
                    found[position] = joblib.launch([job_overrides[position]], number)[0]
                except BrokenProcessPool:
                    report_killed(found[position])
            return found


def tell(begun: set[int]) -> None:
    """Say that jobs were interrupted."""
    names = ", ".join(f"#{number}" for number in sorted(begun))
    print(
        "buropt: a process of the sweep was killed; the jobs that were running then "
        f"({names}) go on after the others, one at a time",
        file=sys.stderr,
    )


def report_killed(job: JobReturn) -> None:
    """Write the files of a job that was killed."""
    assert job.hydra_cfg is not None
    assert job.cfg is not None
    folder = Path(job.hydra_cfg.hydra.runtime.output_dir)
    keep_configuration(folder, job.cfg, job.hydra_cfg)
    config: Any = OmegaConf.to_container(job.cfg, resolve=False)
    error = ChildProcessError(
        "its process was killed, and was again when the job ran alone: by hand, or for want of "
        "memory? With resume=true it goes on"
    )
    write_failure(folder, config, error, 1, KILLED)
