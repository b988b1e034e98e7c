"""MLflow: runs in a local SQLite database, or wherever its tracking address says."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buropt.loggers.base import require
from buropt.result import flat

if TYPE_CHECKING:
    from buropt.history import Record
    from buropt.loop import Outcome

RUN_ID = "mlflow_run_id"  # a file in the folder of the run
SQLITE = "sqlite:///"
MOST_PARAMETERS, LONGEST = 100, 500  # of a request; of a value, by MLflow's limits
SEND_SECONDS, MOST_METRICS = 1.0, 900
STATUS = {"interrupted": "KILLED", "non_finite": "FAILED", "unwritable": "FAILED"}


class MLflow:
    """Every column of a record as a metric over iterations, and the configuration as parameters.

    Needs `pip install 'buropt[mlflow]'`. Records are sent together, about once a second. A run that
    goes on from a checkpoint goes on in MLflow, too; what a kill caught before it was sent is
    missing there, and in no file of the run.

    Parameters
    ----------
    tracking_uri : str
        A database, `sqlite:///mlflow.db`, or a server, `http://...`.
    experiment : str
        Name of MLflow's experiment, created if it is not there.
    """

    def __init__(
        self, tracking_uri: str = "sqlite:///mlflow.db", experiment: str = "buropt"
    ) -> None:
        require("mlflow", "mlflow")
        if tracking_uri.startswith(SQLITE):
            require("mlflow", "sqlalchemy")
            require("mlflow", "alembic")
        self.tracking_uri = tracking_uri
        self.experiment = experiment
        self._run_id: str | None = None
        self._metrics: list[Any] = []
        self._sent = 0.0

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        """Connect; a new database is created."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a run reports to nobody
        from mlflow import MlflowClient

        for noisy in ("mlflow", "alembic"):  # once imported: the import sets its own levels
            logging.getLogger(noisy).setLevel(logging.WARNING)
        self._folder, self._settings = folder, flat(config)
        with _alone(self.tracking_uri):
            self._client = MlflowClient(self.tracking_uri)
            found = self._client.get_experiment_by_name(self.experiment)
            self._experiment_id = (
                self._client.create_experiment(self.experiment)
                if found is None
                else found.experiment_id
            )

    def log(self, record: Record) -> None:
        """Take a record along, and send what has come together if it is time to."""
        from mlflow.entities import Metric

        if self._run_id is None:
            self._run_id = self._open(goes_on=record.iteration > 0)
        now = int(time.time() * 1000)
        self._metrics += [
            Metric(column, float(value), now, record.iteration)
            for column, value in record._asdict().items()
            if column != "iteration" and value is not None
        ]
        due = time.monotonic() - self._sent > SEND_SECONDS
        if due or len(self._metrics) > MOST_METRICS:
            self._send(self._run_id)

    def finish(self, outcome: Outcome | None) -> None:
        """Send the rest, and how the run ended."""
        if self._run_id is None:
            return
        self._send(self._run_id)
        status = "broken off" if outcome is None else outcome.status
        self._client.set_tag(self._run_id, "buropt.status", status)
        ended = "FAILED" if outcome is None else STATUS.get(outcome.status, "FINISHED")
        self._client.set_terminated(self._run_id, ended)

    def _open(self, goes_on: bool) -> str:
        """MLflow's number of the run: that in its folder if it goes on, or of a new one."""
        from mlflow.entities import Param

        file = self._folder / RUN_ID
        if goes_on and file.exists():
            run_id = file.read_text()
            self._client.update_run(run_id, status="RUNNING")
            return run_id
        run = self._client.create_run(
            self._experiment_id,
            run_name="/".join(self._folder.absolute().parts[-3:]),
            tags={"buropt.folder": str(self._folder.absolute())},
        )
        run_id = str(run.info.run_id)
        file.write_text(run_id)
        parameters = [Param(key, str(value)[:LONGEST]) for key, value in self._settings.items()]
        for first in range(0, len(parameters), MOST_PARAMETERS):
            self._client.log_batch(run_id, params=parameters[first : first + MOST_PARAMETERS])
        return run_id

    def _send(self, run_id: str) -> None:
        metrics, self._metrics = self._metrics, []
        if metrics:
            self._client.log_batch(run_id, metrics=metrics)
        self._sent = time.monotonic()


@contextmanager
def _alone(tracking_uri: str) -> Iterator[None]:
    """Hold a lock beside the database: two jobs of a sweep that create it at once fail."""
    if not tracking_uri.startswith(SQLITE):
        yield
        return
    with open(tracking_uri.removeprefix(SQLITE) + ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield
