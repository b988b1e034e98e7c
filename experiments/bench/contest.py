"""Contestants that compute the same take turns; a time is the median over the turns.

A disturbance then hits all of them, and a ratio is between neighbours in time. Before anything is
timed, every contestant's answer is compared with the reference's.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
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
    measure : callable, optional
        Measures by itself and returns seconds, bytes or joules; `call` is not timed then.
    """

    call: Callable[[], Any]
    answer: Callable[[], Any]
    measure: Callable[[], float] | None = None


Build = Callable[[], Contestant]


@dataclass(frozen=True)
class Case:
    """The same computation by several peers: one column of a table.

    Attributes
    ----------
    benchmark, group, name : str
        A table for each benchmark and group, "" if there is one only.
    builds : dict
        Peer to a function that builds its contestant; it raises NotInstalledError when the
        peer cannot be imported. "buropt" is one of them.
    reference : str
        The peer whose answer the others are compared with.
    tolerance : float
        Allowed relative difference of answers, in the 2-norm.
    tolerances : dict
        The same for peers that are less accurate than others.
    flops, bytes : float
        Arithmetic and memory traffic that one call cannot do without, for the roofline; 0 where
        neither limits.
    points : int
        Times are given for one of so many points.
    dtype : str
        Of the arithmetic, for the roofline.
    unit : str
        What is measured: "s", "B" or "J".
    turns : int
        No more turns than that, where one takes long.
    parameters : dict
        Sizes, for the commands of external programs.
    note : str
        What the table has to say about this case, such as where its data are from.
    """

    benchmark: str
    group: str
    name: str
    builds: Mapping[str, Build]
    reference: str = "numpy"
    tolerance: float = 1e-9
    tolerances: dict[str, float] = field(default_factory=dict)
    flops: float = 0.0
    bytes: float = 0.0
    dtype: str = "float64"
    points: int = 1
    unit: str = "s"
    turns: int = 1000
    parameters: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def title(self) -> str:
        """Benchmark, group and name."""
        return _title(self)


def _title(case: Case | Result) -> str:
    return " ".join(part for part in (case.benchmark, case.group, case.name) if part)


@dataclass
class Result:
    """Times of one case, in seconds a call (or in what the case measures).

    Attributes
    ----------
    times : dict
        Peer to the median over the turns.
    turns : dict
        Peer to all turns.
    skipped : dict
        Peer to why it did not take part.
    limit : float
        Seconds that the machine needs at least, by its measured peaks; 0 if not known.
    """

    benchmark: str
    group: str
    name: str
    points: int = 1
    unit: str = "s"
    flops: float = 0.0
    bytes: float = 0.0
    dtype: str = "float64"
    note: str = ""
    times: dict[str, float] = field(default_factory=dict)
    turns: dict[str, list[float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    limit: float = 0.0

    @property
    def title(self) -> str:
        """Benchmark, group and name."""
        return _title(self)

    @property
    def best_peer(self) -> str | None:
        """The fastest contestant that is not buropt in one form or another."""
        peers = [peer for peer in self.times if not peer.startswith("buropt")]
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
        If buropt's answer differs from the reference by more than the case's tolerance. A peer
        whose answer differs does not take part.
    """
    result = Result(
        *(case.benchmark, case.group, case.name, case.points, case.unit),
        *(case.flops, case.bytes, case.dtype, case.note),
    )
    wanted = set(case.builds) if peers is None else {*peers, "buropt"}
    contestants: dict[str, Contestant] = {}
    answers: dict[str, Array] = {}
    for peer, build in case.builds.items():
        if peer not in wanted:
            continue
        try:
            contestant = build()
            answers[peer] = np.asarray(contestant.answer(), np.float64).ravel()
            contestants[peer] = contestant
        except (NotInstalledError, NotApplicableError) as error:
            result.skipped[peer] = str(error)
        except Exception as error:
            if peer == "buropt":
                raise
            result.skipped[peer] = f"fails: {type(error).__name__}: {_first_line(error)}"
    _compare(case, answers, result)
    contestants = {peer: one for peer, one in contestants.items() if peer not in result.skipped}
    if turns > 0:
        _measure(result, contestants, min(turns, case.turns), seconds)
    return result


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:120]


def _measure(
    result: Result, contestants: dict[str, Contestant], turns: int, seconds: float
) -> None:
    counts = {
        peer: 1 if one.measure else _calls_per_turn(one.call, seconds)
        for peer, one in contestants.items()
    }
    result.turns = {peer: [] for peer in contestants}
    gc.disable()
    try:
        for turn in range(turns):
            # The order is turned around every time, so that nobody always follows the same one.
            order = list(contestants) if turn % 2 == 0 else list(contestants)[::-1]
            for peer in order:
                one = contestants[peer]
                taken = one.measure() if one.measure else _time(one.call, counts[peer])
                result.turns[peer].append(taken / counts[peer])
            gc.collect()
    finally:
        gc.enable()
    result.times = {peer: float(np.median(each)) for peer, each in result.turns.items()}


def _compare(case: Case, answers: dict[str, Array], result: Result) -> None:
    """Exclude peers whose answers differ; if it is buropt's, the case is over."""
    if not answers:
        return
    reference = case.reference if case.reference in answers else next(iter(answers))
    expected = answers[reference]
    for peer, answer in answers.items():
        error = relative_error(answer, expected)
        tolerance = case.tolerances.get(peer, case.tolerance)
        if error <= tolerance:
            continue
        if peer == "buropt":
            raise AssertionError(
                f"{case.title}: the answers of {peer} and {reference} differ by "
                f"{error:.2e} (relative), more than {tolerance:.0e}"
            )
        result.skipped[peer] = f"its answer differs from {reference}'s by {error:.1e} (relative)"


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


def median_seconds(call: Callable[[], Any], turns: int, seconds: float) -> float:
    """The median over turns of the time of a call, for a contestant that is alone."""
    n = _calls_per_turn(call, seconds)
    return float(np.median([_time(call, n) / n for _ in range(turns)]))


def geometric_mean(values: Sequence[float]) -> float:
    """The usual mean of ratios."""
    return math.exp(sum(math.log(value) for value in values) / len(values))
