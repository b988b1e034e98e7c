"""Joules of a gradient, from the kernel's powercap counters of the processor packages.

They count everything that the packages do, so the rest of the machine should be idle. Where there
are no counters, or they may not be read, nothing is measured, and the table says so.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from experiments.bench.cases import glm, gpt, mlp
from experiments.bench.contest import Build, Case, Contestant, NotApplicableError

FOLDER = Path("/sys/class/powercap")
SECONDS = 0.5  # of work between two readings; counters tick about once a millisecond
TURNS = 5


def cases(quick: bool) -> Iterator[Case]:
    """The three largest gradients."""
    if quick:
        return
    for case in (gpt.case(64), mlp.case(1024, 64), glm.case("a9a", True, None)):
        builds = {peer: partial(_contestant, build) for peer, build in case.builds.items()}
        name = f"{case.benchmark} {case.group} {case.name}".replace("  ", " ")
        yield dataclasses.replace(
            case,
            benchmark="energy",
            group="",
            name=name,
            builds=builds,
            unit="J",
            turns=TURNS,
            flops=0.0,
            bytes=0.0,
        )


class Counters:
    """The energy counters of all packages.

    Parameters
    ----------
    folder : path
        Of the kernel's powercap zones.

    Raises
    ------
    NotApplicableError
        If there is none, or it may not be read.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        # Zones are called intel-rapl:0; their parts, intel-rapl:0:1, are counted in them.
        self._zones = [
            zone
            for zone in sorted(folder.glob("*:*"))
            if zone.name.count(":") == 1 and (zone / "energy_uj").exists()
        ]
        if not self._zones:
            raise NotApplicableError(f"no energy counters under {folder}")
        try:
            self._ranges = [_read(zone / "max_energy_range_uj") for zone in self._zones]
            self.read()
        except OSError as error:
            raise NotApplicableError(f"energy counters cannot be read ({error})") from error

    def read(self) -> list[int]:
        """Microjoules of each package, since some time ago."""
        return [_read(zone / "energy_uj") for zone in self._zones]

    def joules(self, call: Callable[[], object], seconds: float = SECONDS) -> float:
        """Joules of one call, from as many as fit into the time."""
        call()
        n, before, begin = 0, self.read(), time.perf_counter()
        while n == 0 or time.perf_counter() - begin < seconds:
            call()
            n += 1
        pairs = zip(before, self.read(), self._ranges, strict=True)
        # A counter starts again at zero after its range.
        return 1e-6 * sum((after - start) % (most + 1) for start, after, most in pairs) / n


def _read(path: Path) -> int:
    return int(path.read_text())


def _contestant(build: Build) -> Contestant:
    counters = Counters()
    contestant = build()
    return dataclasses.replace(contestant, measure=lambda: counters.joules(contestant.call))
