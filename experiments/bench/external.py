"""Programs of other languages as contestants: commands that print the seconds of one call."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from statistics import median
from typing import Any

from experiments.bench.contest import Case, NotApplicableError, Result


class ExternalProgram:
    """A command whose last printed word is the time of one call, in seconds.

    Parameters
    ----------
    command : str
        Fields in braces, such as ``{batch}``, are filled in from the case's parameters.
    parameters : mapping

    Raises
    ------
    NotApplicableError
        If the case has not the parameters that the command asks for.
    """

    def __init__(self, command: str, parameters: Mapping[str, Any]) -> None:
        try:
            self._arguments = shlex.split(command.format(**parameters))
        except KeyError as error:
            raise NotApplicableError(f"the case has no parameter {error}") from error

    def seconds(self) -> float:
        """Run it once; NotApplicableError if it fails or prints no number."""
        name = self._arguments[0]
        try:
            done = subprocess.run(self._arguments, capture_output=True, text=True, check=False)
        except OSError as error:
            raise NotApplicableError(f"{name} cannot be run ({error})") from error
        if done.returncode != 0:
            reason = done.stderr.strip()[-200:] or f"exit status {done.returncode}"
            raise NotApplicableError(f"{name} failed: {reason}")
        try:
            return float(done.stdout.split()[-1])
        except (IndexError, ValueError):
            raise NotApplicableError(f"{name} does not print seconds as its last word") from None


def join(result: Result, case: Case, commands: Mapping[str, str], repeats: int = 3) -> None:
    """Add the median time of every command that fits the case to its result."""
    if case.unit != "s":
        return
    for name, command in commands.items():
        try:
            program = ExternalProgram(command, case.parameters)
            result.turns[name] = [program.seconds() for _ in range(repeats)]
        except NotApplicableError as error:
            result.skipped[name] = str(error)
        else:
            result.times[name] = median(result.turns[name])
