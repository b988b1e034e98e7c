"""TensorBoard: an event file in the folder of the run, by the package `tensorboard` alone."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from buropt.loggers.base import require
from buropt.result import flat

if TYPE_CHECKING:
    from buropt.history import Record
    from buropt.loop import Outcome

FLUSH_SECONDS = 1.0


class TensorBoard:
    """Every column of a record as a scalar over iterations, and the configuration under HPARAMS.

    Needs `pip install 'buropt[tensorboard]'` and no TensorFlow.
    """

    def __init__(self) -> None:
        require("tensorboard", "tensorboard")
        self._file: BinaryIO | None = None
        self._began = False
        self._flushed = 0.0

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        """Open a new event file."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.record_writer import RecordWriter

        stamp = f"{time.time():.6f}.{os.getpid()}"
        self._file = (folder / f"events.out.tfevents.{stamp}.buropt").open("xb")
        self._writer = RecordWriter(self._file)
        self._write(file_version="brain.Event:2")
        settings = {
            key: value if isinstance(value, (bool, int, float)) else str(value)
            for key, value in flat(config).items()
        }
        self._write(summary=hparams_pb(settings, trial_id=str(folder)))

    def log(self, record: Record) -> None:
        """Write a record's scalars."""
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary

        step = record.iteration
        if not self._began:  # what an interrupted or replaced run logged from here on is void
            self._write(session_log=SessionLog(status=SessionLog.START), step=step)
            self._began = True
        values = [
            Summary.Value(tag=column, simple_value=value)
            for column, value in record._asdict().items()
            if column != "iteration" and value is not None
        ]
        self._write(summary=Summary(value=values), step=step)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._writer.flush()
            self._flushed = time.monotonic()

    def finish(self, outcome: Outcome | None) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _write(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), **fields).SerializeToString())
