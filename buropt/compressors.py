"""Compressors: what a worker sends instead of a vector, and how many bits it takes.

These are thin over the compiled core, which compresses the vectors of all the workers in one call.
The accounting is the same everywhere: a message costs b bits for every value (32 or 64) and
ceil(log2 d) bits for every index. With a shared seed the receiver repeats the draw and indices cost
nothing; the seed itself, sent once for a whole run, is not counted. `Message.bits` is counted from
the messages made, `Compressor.bits` is the formula, and `CompiledCompressor.encode` the bytes.

TopK never hides a NaN, it ranks it above infinity. RandK chooses before it looks at the values.

>>> message = TopK(2).compress(np.array([[3.0, -3.0, 3.0, 1.0]]), Key(seed=0))
>>> message.values
array([[ 3., -3.,  0.,  0.]])
>>> message.bits
array([132])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from buropt import _core
from buropt.random import Key, checked_integer

Array = NDArray[np.floating[Any]]

_INT64 = np.dtype(np.int64)
_MAX_DIM = 2**32 - 1


class Message(NamedTuple):
    """The messages of all the workers in one round."""

    values: Array
    """(n, d): what the receiver reads, zero where nothing was sent."""
    bits: NDArray[np.int64]
    """(n,): size of each worker's message."""


@dataclass(frozen=True)
class Compressor(ABC):
    """A (random) map C of vectors to vectors that are cheaper to send.

    It is immutable and has no state: its randomness comes from the key and differs from worker to
    worker.
    """

    unbiased: ClassVar[bool]
    """Whether the mean of C(x) is x."""

    @abstractmethod
    def omega(self, d: int) -> float | None:
        """Omega of E ||C(x) - x||^2 <= omega ||x||^2; None for a biased compressor."""

    @abstractmethod
    def alpha(self, d: int) -> float | None:
        """Alpha of E ||C(x) - x||^2 <= (1 - alpha) ||x||^2; None if C does not contract."""

    @abstractmethod
    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Bits of one message for d entries of this dtype."""

    @abstractmethod
    def compress(self, x: Array, key: Key, out: Array | None = None) -> Message:
        """Compress the vectors of all the workers.

        Parameters
        ----------
        x
            (n, d): one row a worker, C-contiguous, float32 or float64. A vector (d,) is refused;
            for one worker pass `x[None, :]`.
        key
            Where the randomness comes from; rows get independent draws.
        out
            (n, d): where to write the values, of the dtype of x and not overlapping it.

        Raises
        ------
        TypeError
            If x or out is not a NumPy array of float32 or float64.
        ValueError
            If a shape does not fit, x is not contiguous, out overlaps x, or k is above d.
        """


@dataclass(frozen=True)
class CompiledCompressor(Compressor):
    """A compressor of the compiled core, whose messages can also be had as bytes."""

    @abstractmethod
    def _compiled(self) -> _core.Identity | _core.RandK | _core.TopK:
        """The compressor's counterpart in the core."""

    def compress(self, x: Array, key: Key, out: Array | None = None) -> Message:
        """Compress the vectors of all the workers; see `Compressor.compress`."""
        values = np.empty_like(x) if out is None else out
        bits = np.empty(values.shape[:1], _INT64)
        self._compiled().compress(x, key.seed, key.round, key.purpose, values, bits)
        return Message(values, bits)

    def encode(self, x: Array, key: Key, worker: int = 0) -> bytes:
        """The message that a worker sends for x (d,), rounded up to whole bytes.

        Row `worker` of `compress` holds what `decode` makes of it.
        """
        return self._compiled().encode(x, key.seed, key.round, key.purpose, worker)

    def decode(self, payload: bytes, d: int, dtype: DTypeLike, key: Key, worker: int = 0) -> Array:
        """The vector (d,) that the receiver reads from the message of a worker.

        Raises
        ------
        TypeError
            If dtype is not float32 or float64.
        ValueError
            If the payload is not one that `encode` writes for this d and dtype.
        """
        out: Array = np.empty(d, _float_dtype(dtype))
        self._compiled().decode(payload, key.seed, key.round, key.purpose, worker, out)
        return out


@dataclass(frozen=True)
class Identity(CompiledCompressor):
    """Sends everything: omega = 0, alpha = 1, b d bits."""

    unbiased: ClassVar[bool] = True

    def omega(self, d: int) -> float:
        """Return 0: nothing is lost."""
        return 0.0

    def alpha(self, d: int) -> float:
        """Return 1: nothing is lost."""
        return 1.0

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Return b d."""
        return d * _value_bits(dtype)

    def _compiled(self) -> _core.Identity:
        return _core.Identity()


@dataclass(frozen=True)
class RandK(CompiledCompressor):
    """Sends k entries, drawn uniformly without replacement, times d / k.

    C(x) = (d / k) x_S with S uniform among the k-subsets: unbiased, and E ||C(x) - x||^2 is exactly
    (d / k - 1) ||x||^2.

    Parameters
    ----------
    k
        Entries to send, 1 to d; k = d is the identity.
    shared_seed
        Whether the receiver knows the key, so that indices are not sent: b k bits a message
        instead of (b + ceil(log2 d)) k.

    Raises
    ------
    TypeError
        If k is not an integer or shared_seed not a bool.
    ValueError
        If k is below 1; in every call, if k is above d.
    """

    unbiased: ClassVar[bool] = True

    k: int
    shared_seed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _positive("RandK", self.k))
        if not isinstance(self.shared_seed, bool):
            raise TypeError(f"RandK.shared_seed must be True or False, got {self.shared_seed!r}")

    def omega(self, d: int) -> float:
        """Return d / k - 1, which is exact."""
        return d / _fitting("RandK", self.k, d) - 1

    def alpha(self, d: int) -> None:
        """Return None: scaled to be unbiased, RandK does not contract."""
        return None

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Return (b + ceil(log2 d)) k, or b k with a shared seed."""
        index_bits = 0 if self.shared_seed else (d - 1).bit_length()
        return _fitting("RandK", self.k, d) * (_value_bits(dtype) + index_bits)

    def _compiled(self) -> _core.RandK:
        return _core.RandK(self.k, self.shared_seed)


@dataclass(frozen=True)
class TopK(CompiledCompressor):
    """Sends the k entries of largest magnitude, as they are.

    Biased, and ||C(x) - x||^2 <= (1 - k / d) ||x||^2 for every x. Deterministic: of equal
    magnitudes the lowest index is sent; a NaN counts as larger than infinity. A message takes
    (b + ceil(log2 d)) k bits.

    Parameters
    ----------
    k
        Entries to send, 1 to d; k = d is the identity.

    Raises
    ------
    TypeError
        If k is not an integer.
    ValueError
        If k is below 1; in every call, if k is above d.
    """

    unbiased: ClassVar[bool] = False

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _positive("TopK", self.k))

    def omega(self, d: int) -> None:
        """Return None: TopK is biased."""
        return None

    def alpha(self, d: int) -> float:
        """Return k / d."""
        return _fitting("TopK", self.k, d) / d

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Return (b + ceil(log2 d)) k."""
        return _fitting("TopK", self.k, d) * (_value_bits(dtype) + (d - 1).bit_length())

    def _compiled(self) -> _core.TopK:
        return _core.TopK(self.k)


def _float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Refuse a dtype that messages do not have."""
    result = np.dtype(dtype)
    if result not in (np.float32, np.float64):
        raise TypeError(f"messages hold float32 or float64, got dtype {result}")
    return result


def _value_bits(dtype: DTypeLike) -> int:
    return 8 * _float_dtype(dtype).itemsize


def _positive(compressor: str, k: object) -> int:
    """The value as an int that the core can hold."""
    number = checked_integer(f"{compressor}.k", k)
    if not 1 <= number <= _MAX_DIM:
        raise ValueError(
            f"{compressor}.k must be between 1 and the dimension d, got {number}; "
            f"{'raise' if number < 1 else 'lower'} compressor.k"
        )
    return number


def _fitting(compressor: str, k: int, d: int) -> int:
    """Return k once it is known to fit d."""
    if k > d:
        raise ValueError(
            f"{compressor}.k must be between 1 and d = {d}, got {k}; lower compressor.k"
        )
    return k
