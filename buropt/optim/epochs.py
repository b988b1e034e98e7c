"""Methods that work in epochs: the place of a round, and a uniformly random iterate of an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.optim.base import Array
    from buropt.random import Key

Restart: TypeAlias = Literal["last", "random"]
RESTARTS: tuple[str, ...] = get_args(Restart)


def is_last(key: Key, length: int) -> bool:
    """Whether an epoch of this many rounds ends with the round of the key."""
    return key.round % length == 0


def pick_one(picked: Array, x: Array, key: Key, length: int) -> Array:
    """One of the points at which the rounds of an epoch started, each with the same probability.

    To be called in every round with the point x at which it starts: of those so far, the t-th takes
    the place of the one picked before with probability 1/t.
    """
    t = (key.round - 1) % length + 1
    return x if key.fold(Purpose.SNAPSHOT).coin(1 / t) else picked
