"""Contestants that compute the same take turns; a time is the median over the turns.

A disturbance then hits all of them, and a ratio is between neighbours in time. Before anything is
timed, every contestant's answer is compared with the reference's.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TURN_SECONDS = 0.03  # how long a contestant runs in its turn


class NotInstalledError(Exception):
    """A peer cannot be imported; the text says why."""


class NotApplicableError(Exception):
    """A peer cannot do this case; the text says why."""


@dataclass(frozen=True)
class Contestant:
    """One implementation.

    Attributes
    ----------
    call : callable
        What is timed: one step, value and gradient, ... in the peer's own best form.
    answer : callable
        What it computes, as one float array, to be compared with the others'.
    """

    call: Callable[[], Any]
    answer: Callable[[], Any]


Build = Callable[[], Contestant]


@dataclass(frozen=True)
class Case:
    """One row of the table: the same computation by several peers.

    Attributes
    ----------
    benchmark, name : str
    builds : dict
        Peer to a function that builds its contestant; it raises NotInstalledError when the
        peer cannot be imported. "buropt" is one of them.
    reference : str
        The peer whose answer the others are compared with.
    tolerance : float
        Allowed relative difference of answers, in the 2-norm.
    flops, bytes : float
        Arithmetic and memory traffic that one call cannot do without, for the roofline; 0 where
        neither limits.
    points : int
        Times are given for one of so many points.
    parameters : dict
        Sizes, for the commands of external programs.
    """

    benchmark: str
    name: str
    builds: dict[str, Build]
    reference: str = "numpy"
    tolerance: float = 1e-9
    flops: float = 0.0
    bytes: float = 0.0
    points: int = 1
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass
class Result:
    """Times of one case, in seconds a call.

    Attributes
    ----------
    times : dict
        Peer to the median over the turns.
    turns : dict
        Peer to all turns.
    skipped : dict
        Peer to why it did not take part.
    limit : float
        Seconds that the machine needs at least, by its measured peak; 0 if not known.
    """

    benchmark: str
    name: str
    points: int = 1
    times: dict[str, float] = field(default_factory=dict)
    turns: dict[str, list[float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    limit: float = 0.0

    @property
    def best_peer(self) -> str | None:
        """The fastest contestant that is not buropt."""
        peers = [peer for peer in self.times if peer != "buropt"]
        return min(peers, key=self.times.__getitem__) if peers else None

    def ratio(self, peer: str) -> float:
        """The time of buropt divided by that of a peer; NaN if one of them is missing."""
        if "buropt" not in self.times or peer not in self.times:
            return math.nan
        return self.times["buropt"] / self.times[peer]


def run(case: Case, peers: Iterable[str] | None, turns: int, seconds: float) -> Result:
    """Build the contestants, compare their answers, and time them in turns.

    Parameters
    ----------
    case : Case
    peers : iterable of str, optional
        Who takes part besides buropt; everybody by default.
    turns : int
        Turns of each contestant; 0 compares the answers and times nothing.
    seconds : float
        Length of a turn.

    Raises
    ------
    AssertionError
        If answers differ by more than the case's tolerance.
    """
    result = Result(case.benchmark, case.name, case.points)
    wanted = set(case.builds) if peers is None else {*peers, "buropt"}
    contestants: dict[str, Contestant] = {}
    for peer, build in case.builds.items():
        if peer not in wanted:
            continue
        try:
            contestants[peer] = build()
        except (NotInstalledError, NotApplicableError) as error:
            result.skipped[peer] = str(error)
    _compare(case, contestants)
    if turns == 0:
        return result
    counts = {peer: _calls_per_turn(one.call, seconds) for peer, one in contestants.items()}
    result.turns = {peer: [] for peer in contestants}
    gc.disable()
    try:
        for turn in range(turns):
            # The order is turned around every time, so that nobody always follows the same one.
            order = list(contestants) if turn % 2 == 0 else list(contestants)[::-1]
            for peer in order:
                elapsed = _time(contestants[peer].call, counts[peer])
                result.turns[peer].append(elapsed / counts[peer])
            gc.collect()
    finally:
        gc.enable()
    result.times = {peer: median(each) for peer, each in result.turns.items()}
    return result


def _compare(case: Case, contestants: dict[str, Contestant]) -> None:
    if not contestants:
        return
    answers = {
        peer: np.asarray(one.answer(), np.float64).ravel() for peer, one in contestants.items()
    }
    reference = case.reference if case.reference in answers else next(iter(answers))
    expected = answers[reference]
    for peer, answer in answers.items():
        error = relative_error(answer, expected)
        if not error <= case.tolerance:
            raise AssertionError(
                f"{case.benchmark} {case.name}: the answers of {peer} and {reference} differ by "
                f"{error:.2e} (relative), more than {case.tolerance:.0e}"
            )


def relative_error(answer: Array, expected: Array) -> float:
    """|answer - expected| / |expected| in the 2-norm; infinite if the shapes differ."""
    if answer.shape != expected.shape:
        return math.inf
    size = float(np.linalg.norm(expected))
    return float(np.linalg.norm(answer - expected)) / (size if size > 0 else 1.0)


def _calls_per_turn(call: Callable[[], Any], seconds: float) -> int:
    """How often a call fits into a turn, after warming up."""
    call()
    n = 1
    while (elapsed := _time(call, n)) < seconds / 4:
        n *= 2 if elapsed > seconds / 100 else 10
    return max(1, round(n * seconds / elapsed))


def _time(call: Callable[[], Any], n: int) -> float:
    begin = time.perf_counter()
    for _ in repeat(None, n):
        call()
    return time.perf_counter() - begin


def geometric_mean(values: Sequence[float]) -> float:
    """The usual mean of ratios."""
    return math.exp(sum(math.log(value) for value in values) / len(values))
