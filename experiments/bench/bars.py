"""What buropt has to reach: the bars of the project's benchmarks, as data.

A bar compares buropt's time with a peer's. Of several cases the worst counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.bench.contest import Result

BEST = "best peer"


@dataclass(frozen=True)
class Bar:
    """buropt's time / the peer's time <= limit in every case.

    Attributes
    ----------
    text : str
    benchmark : str
    cases : tuple of str
        How the names of the cases begin, their groups in front; all cases by default.
    peer : str
        A contestant, or the best one in each case.
    limit, aim : float
        Of the ratio. The aim is what should be possible; 0 if none was set.
    aim_seconds : float
        An aim for buropt's own time instead.
    is_speedup : bool
        The inverse is shown: how many times faster.
    """

    text: str
    benchmark: str
    cases: tuple[str, ...] = ("",)
    peer: str = BEST
    limit: float = 1.0
    aim: float = 0.0
    aim_seconds: float = 0.0
    is_speedup: bool = False

    def covers(self, result: Result) -> bool:
        """Whether the result belongs to this bar."""
        case = f"{result.group} {result.name} ".lstrip()
        return result.benchmark == self.benchmark and any(
            case.startswith(name and f"{name} ") for name in self.cases
        )


def _mlp(widths: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"batch {batch} hidden={width}" for batch in (1, 16, 64) for width in widths)


def _glm(kinds: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(f"{kind} {name}" for kind in kinds)


_DENSE = ("dense a9a", "dense w8a")
_CSR = ("CSR a9a", "CSR w8a", "CSR news20")

BARS = (
    Bar("tiny, bound call", "tiny", ("bound call",), "casadi", 0.75, 0.5),
    Bar("tiny, value_and_grad(x)", "tiny", ("value_and_grad(x)",), "jax", 0.12, 0.06),
    Bar("tiny_batch", "tiny_batch", ("",), "heyoka", 2.0, 1.0),
    Bar("small, bound call", "small", ("bound call",), "casadi", 0.75),
    Bar("small, eager", "small", ("eager build + backward",), "micrograd", 0.15),
    *(
        Bar(f"rosen, {what}, n={n}", "rosen", (f"{what} n={n}",), "jax", limit)
        for what in ("value+gradient", "Hessian product")
        for n, limit in ((10, 0.12), (1000, 0.25), (1_000_000, 0.6))
    ),
    Bar("mlp 1 079 003, batch 1", "mlp", ("batch 1 hidden=1024",), "jax", 0.7, 0.4),
    Bar("mlp 1 079 003, batch 64", "mlp", ("batch 64 hidden=1024",), "jax", 0.95, 0.75),
    Bar("mlp widths 4..64, every batch", "mlp", _mlp((4, 16, 64)), BEST, 0.4, 0.2),
    Bar("mlp widths 128..512, every batch", "mlp", _mlp((128, 256, 512)), BEST, 0.8, 0.6),
    Bar("gpt batch 1", "gpt", ("batch=1",), "jax", 0.1, 0.05),
    Bar("gpt batch 64", "gpt", ("batch=64",), "jax", 0.15, 0.08),
    Bar("gpt batch 2..32", "gpt", tuple(f"batch={b}" for b in (2, 4, 8, 16, 32)), "jax", 0.15),
    Bar("glm full gradient, CSR", "glm", _glm(_CSR, "full"), "scipy", 0.5),
    Bar("glm full gradient, dense", "glm", _glm(_DENSE, "full"), "jax", 0.55),
    Bar("glm minibatch 1", "glm", _glm((*_DENSE, *_CSR), "batch=1"), "jax", 0.04),
    Bar("glm minibatch 32", "glm", _glm((*_DENSE, *_CSR), "batch=32"), "jax", 0.06),
    Bar("startup: gpt first gradient", "startup", ("gpt gradient",), "jax", 0.02, 0.0, 0.03),
    Bar("startup: memory of gpt training", "startup", ("gpt memory",), "numpy", 1.9, 1.6),
    *(
        Bar(f"two threads, {name}", "threads", (name,), "1 thread", 1 / 1.8, 1 / 1.95, 0.0, True)
        for name in (
            "gpt batch=64",
            "mlp hidden=1024 batch=64",
            "glm full CSR a9a",
            "glm full dense a9a",
        )
    ),
)


@dataclass(frozen=True)
class Outcome:
    """How a bar was met.

    Attributes
    ----------
    ratio : float
        In the worst case; NaN if it was not measured.
    worst : str
        That case.
    peer : str
        The contestant that it was measured against there.
    seconds, peer_seconds : float
        Their times there (or whatever the case measures).
    least : float
        What the machine's measured peaks allow there, in seconds; 0 if not known.
    """

    bar: Bar
    ratio: float = math.nan
    worst: str = ""
    peer: str = ""
    seconds: float = 0.0
    peer_seconds: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    least: float = 0.0

    @property
    def is_met(self) -> bool | None:
        """None if it was not measured."""
        return None if math.isnan(self.ratio) else self.ratio <= self.bar.limit

    @property
    def is_aim_reached(self) -> bool | None:
        """None without an aim, or if it was not measured."""
        if math.isnan(self.ratio):
            return None
        if self.bar.aim_seconds:
            return self.seconds <= self.bar.aim_seconds
        return self.ratio <= self.bar.aim if self.bar.aim else None

    @property
    def is_possible(self) -> bool:
        """Whether the machine's measured peaks allow to meet the bar at all."""
        return not self.least > self.bar.limit * self.peer_seconds

    def record(self) -> dict[str, Any]:
        """Everything, for JSON."""
        content = asdict(self) | {
            "is_met": self.is_met,
            "is_aim_reached": self.is_aim_reached,
            "is_possible": self.is_possible,
        }
        return {key: None if value != value else value for key, value in content.items()}


def outcomes(results: Sequence[Result]) -> list[Outcome]:
    """Every bar that has a case among the results."""
    found = []
    for bar in BARS:
        covered = [result for result in results if bar.covers(result)]
        if covered:
            found.append(max((_outcome(bar, result) for result in covered), key=_rank))
    return found


def _rank(outcome: Outcome) -> float:
    return -1.0 if math.isnan(outcome.ratio) else outcome.ratio


def _outcome(bar: Bar, result: Result) -> Outcome:
    peer = (result.best_peer or "") if bar.peer == BEST else bar.peer
    ratio = result.ratio(peer)
    if math.isnan(ratio):
        return Outcome(bar)
    case = f"{result.group} {result.name}".lstrip()
    return Outcome(
        *(bar, ratio, case, peer, result.times["buropt"], result.times[peer]),
        *(result.flops, result.bytes, result.limit),
    )
