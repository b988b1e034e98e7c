"""Counter-based randomness: a draw is a pure function of its key.

There is no generator whose state would have to be saved or shared. A `Key` names one draw, by the
seed of the run, the round (an iteration) and the purpose; asking twice gives the same answer, and a
run that is killed and resumed continues bit for bit. The generator is Philox4x32-10 of Salmon,
Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

>>> key = Key(seed=1, round=7)
>>> key.fold(Purpose.COIN).coin(1.0)
True
>>> key.at(8).fold(Purpose.SAMPLE).integers(0, 100, size=3).shape
(3,)
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt import _core
from buropt._core import Places as Places

_MAX_SEED = 2**64 - 1
_MAX_ROUND = 2**48 - 1
_MAX_PURPOSE = 2**16 - 1
_INT64 = np.dtype(np.int64)


class Purpose(IntEnum):
    """What a draw is for; draws of different purposes are independent."""

    COIN = 2
    SAMPLE = 3
    COORDINATE = 4
    SNAPSHOT = 5
    WORKER = 6
    SERVER = 7


@dataclass(frozen=True, slots=True)
class Key:
    """The name of one random draw.

    Two draws from one key are not independent: `fold` gives each purpose a key of its own, `at`
    each round. A compressor's draws belong to the workers and never meet those that a key makes.

    Parameters
    ----------
    seed
        The run's seed, 0 to 2**64 - 1.
    round
        Usually the iteration, 0 to 2**48 - 1.
    purpose
        0, or what `fold` made of it.

    Raises
    ------
    TypeError
        If a field is not an integer.
    ValueError
        If a field is out of its range.
    """

    seed: int
    round: int = 0
    purpose: int = 0

    def __post_init__(self) -> None:
        if not (
            type(self.seed) is type(self.round) is type(self.purpose) is int
            and 0 <= self.seed <= _MAX_SEED
            and 0 <= self.round <= _MAX_ROUND
            and 0 <= self.purpose <= _MAX_PURPOSE
        ):
            for name, high in (
                ("seed", _MAX_SEED),
                ("round", _MAX_ROUND),
                ("purpose", _MAX_PURPOSE),
            ):
                value = checked_integer(f"Key.{name}", getattr(self, name))
                if not 0 <= value <= high:
                    bits = high.bit_length()
                    raise ValueError(f"Key.{name} must be between 0 and 2**{bits} - 1, got {value}")
                object.__setattr__(self, name, value)

    def at(self, round: int) -> Key:
        """The same seed and purpose in another round."""
        return Key(self.seed, round, self.purpose)

    def fold(self, purpose: int) -> Key:
        """A key for a purpose of its own, 1 to 255: a `Purpose`, or any number to tell draws apart.

        Folds nest twice, and `key.fold(a).fold(b)` differs from `key.fold(b).fold(a)`.

        Raises
        ------
        ValueError
            If the purpose is out of range, or the key was folded twice already.
        """
        purpose = int(purpose)
        if not 1 <= purpose <= 255:
            raise ValueError(f"Key.fold: purpose must be between 1 and 255, got {purpose}")
        if self.purpose > 255:
            raise ValueError(
                f"Key.fold: this key was folded twice already (purposes {self.purpose >> 8} and "
                f"{self.purpose & 255}); fold a key of less depth"
            )
        return Key(self.seed, self.round, self.purpose << 8 | purpose)

    def uniform(self) -> float:
        """A number in [0, 1), uniform on the multiples of 2**-53."""
        return _core.random_uniform(self.seed, self.round, self.purpose)

    def coin(self, p: float) -> bool:
        """True with probability p: never for p = 0, always for p = 1.

        Raises
        ------
        ValueError
            If p is not between 0 and 1.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"Key.coin: p must be a probability between 0 and 1, got {p}")
        return bool(self.uniform() < p)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Independent integers, exactly uniform on low, ..., high - 1.

        Parameters
        ----------
        low, high
            Bounds within int64, high excluded.
        size
            Shape of the result.

        Raises
        ------
        TypeError
            If a bound is not an integer.
        ValueError
            If there is no integer from low to high - 1, or a bound is outside int64.
        """
        low, high = operator.index(low), operator.index(high)
        if not -(2**63) <= low < high < 2**63:
            raise ValueError(
                f"Key.integers: need -2**63 <= low < high < 2**63, got low = {low}, high = {high}"
            )
        out = np.empty(size, _INT64)
        _core.random_integers(self.seed, self.round, self.purpose, low, high - low, out)
        return out

    def subsets(self, rounds: int, n: int, size: int) -> NDArray[np.int64]:
        """Uniform subsets of 0, ..., n - 1 of this and the following rounds, (rounds, size).

        A row holds the first `size` distinct values of the round's sequence of independent draws;
        beyond half of n the complement is drawn instead.
        """
        out = np.empty((rounds, size), _INT64)
        _core.random_subsets(self.seed, self.round, self.purpose, n, out)
        return out

    def integers_of_rounds(self, rounds: int, low: int, high: int, size: int) -> NDArray[np.int64]:
        """What `integers` gives in this and the following rounds, (rounds, size)."""
        out = np.empty((rounds, size), _INT64)
        purpose = self.purpose
        _core.random_integers(self.seed, self.round, purpose, low, high - low, out, rounds)
        return out

    def proportional(self, rounds: int, places: Places, size: int) -> NDArray[np.int64]:
        """Independent i of this and the following rounds, (rounds, size), with probabilities.

        These are proportional to the differences of the ends of `places`, of which that of i is the
        sum of all before and i.
        """
        if size == 1:
            points: NDArray[Any] = self.uniforms(rounds) * places.total
        else:  # the same numbers, of which a round has more than one
            points = self.integers_of_rounds(rounds, 0, 2**53, size) * (places.total / 2**53)
        out = np.empty((rounds, size), _INT64)
        places.find(points, out)
        return out

    def uniforms(self, rounds: int) -> NDArray[np.float64]:
        """What `uniform` gives in this and the following rounds, (rounds,)."""
        out = np.empty(rounds)
        _core.random_uniforms(self.seed, self.round, self.purpose, out)
        return out


def checked_integer(name: str, value: object) -> int:
    """The value as a plain int; bool and float are refused with a TypeError that gives the name."""
    if not isinstance(value, (bool, np.bool_)) and hasattr(value, "__index__"):
        return operator.index(value)
    raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
