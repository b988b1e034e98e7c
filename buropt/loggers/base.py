"""What a logger is, and how a run is kept safe from it."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from buropt.history import Record
    from buropt.loop import Outcome

_log = logging.getLogger("buropt.loggers")


class Logger(Protocol):
    """Told of a run as it goes, outside of the method's clock."""

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        """A run begins, or goes on: `folder` is where its files are, `config` the composed one."""

    def log(self, record: Record) -> None:
        """A measurement. The first one has iteration 0 unless the run goes on from a checkpoint."""

    def finish(self, outcome: Outcome | None) -> None:
        """The run is over; None: by an exception."""


class Guarded:
    """Calls a logger, if there is one, until it fails: then one warning, and the run goes on.

    A context manager, so that the logger hears of the end whatever happens.
    """

    def __init__(self, logger: Logger | None) -> None:
        self._logger = logger

    def start(self, config: Mapping[str, Any], folder: Path) -> None:
        """See `Logger`."""
        self._call(lambda logger: logger.start(config, folder))

    def log(self, record: Record) -> None:
        """See `Logger`."""
        self._call(lambda logger: logger.log(record))

    def finish(self, outcome: Outcome | None) -> None:
        """See `Logger`."""
        self._call(lambda logger: logger.finish(outcome))
        self._logger = None

    def __enter__(self) -> Guarded:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.finish(None)

    def _call(self, what: Callable[[Logger], None]) -> None:
        if self._logger is None:
            return
        try:
            what(self._logger)
        except Exception as error:
            lines = str(error).splitlines() or [""]
            _log.warning(
                "%s failed and is left out from here on: %s: %s",
                type(self._logger).__name__,
                type(error).__name__,
                lines[0],
            )
            self._logger = None


def require(package: str, module: str) -> None:
    """Refuse a logger whose package is missing, before anything is computed.

    Parameters
    ----------
    package : str
        Its name, which is also that of buropt's extra.
    module : str
        What has to be there to import.

    Raises
    ------
    ValueError
        With the command that installs it.
    """
    if importlib.util.find_spec(module) is None:
        raise ValueError(
            f"logger={package} needs the package {module}, which is not installed: "
            f"pip install 'buropt[{package}]'"
        )
