"""What a compressor is, and what the kinds of compressors share. Start here, then read `randk.py`.

A kind answers for its messages: a `Selector` keeps some entries and tells which, a `Quantizer`
sends a short code for every entry. A compressor adds its parameters, its constant (omega or alpha)
and the name of its counterpart in the core.
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
Index = NDArray[np.int64]

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

    independent: ClassVar[bool] = True
    """Whether the workers draw independently of each other."""

    @property
    @abstractmethod
    def unbiased(self) -> bool:
        """Whether the mean of C(x) is x."""

    @abstractmethod
    def omega(self, d: int) -> float | None:
        """Omega of E ||C(x) - x||^2 <= omega ||x||^2; None for a biased compressor."""

    @abstractmethod
    def alpha(self, d: int) -> float | None:
        """Alpha of E ||C(x) - x||^2 <= (1 - alpha) ||x||^2; None if C does not contract."""

    def collective(self, d: int, n_workers: int) -> tuple[float, float]:
        """A and B of the AB inequality of an unbiased compressor (arXiv:2110.03300).

        E ||mean_i C_i(a_i) - mean_i a_i||^2 <= A mean_i ||a_i||^2 - B ||mean_i a_i||^2: omega / n
        and 0 for workers that draw independently.

        Raises
        ------
        ValueError
            If C is biased, or is for another number of workers.
        """
        omega = self.omega(d)
        if omega is None:
            raise ValueError(f"{self!r} is biased: there is no A and B for it")
        return omega / n_workers, 0.0

    @abstractmethod
    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Bits of one message for d entries of this dtype; of the longest, where lengths vary."""

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
            If a shape does not fit, x is not contiguous, out overlaps x, or a parameter does not
            fit d.
        """


@dataclass(frozen=True)
class CompiledCompressor(Compressor):
    """A compressor of the compiled core, whose messages can also be had as bytes."""

    @abstractmethod
    def _compiled(self, d: int) -> _core.Compressor:
        """The compressor's counterpart in the core, for vectors of d entries."""

    def compress(self, x: Array, key: Key, out: Array | None = None) -> Message:
        """Compress the vectors of all the workers; see `Compressor.compress`."""
        values = np.empty_like(x) if out is None else out
        bits = np.empty(values.shape[:1], _INT64)
        d = values.shape[-1] if values.ndim else 1
        self._compiled(d).compress(x, key.seed, key.round, key.purpose, values, bits)
        return Message(values, bits)

    def encode(self, x: Array, key: Key, worker: int = 0) -> bytes:
        """The message that a worker sends for x (d,), in whole bytes: zero bits fill the last one.

        Row `worker` of `compress` holds what `decode` makes of it.
        """
        return self._compiled(len(x)).encode(x, key.seed, key.round, key.purpose, worker)

    def decode(self, payload: bytes, d: int, dtype: DTypeLike, key: Key, worker: int = 0) -> Array:
        """The vector (d,) that the receiver reads from the message of a worker.

        Raises
        ------
        TypeError
            If dtype is not float32 or float64.
        ValueError
            If the payload is not one that `encode` writes for this d and dtype.
        """
        out: Array = np.empty(d, float_dtype(dtype))
        self._compiled(d).decode(payload, key.seed, key.round, key.purpose, worker, out)
        return out


@dataclass(frozen=True)
class Selector(CompiledCompressor):
    """Keeps some entries: a message tells which, unless the receiver knows, and their values."""

    @abstractmethod
    def _compiled(self, d: int) -> _core.Selector:
        """The compressor's counterpart in the core."""

    @abstractmethod
    def kept(self, d: int) -> int:
        """How many of d entries a message carries, at most."""

    @abstractmethod
    def place_bits(self, d: int) -> int:
        """Bits that tell which entries these are."""

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Bits of the places, and b for every kept entry."""
        return self.place_bits(d) + self.kept(d) * value_bits(dtype)


class Choice(NamedTuple):
    """Which entries the workers will send, known before the vectors are."""

    starts: Index
    """(n + 1,): worker i has the places starts[i] to starts[i + 1] of `indices`."""
    indices: Index
    """(total,): the entries, ascending for each worker."""


@dataclass(frozen=True)
class Chooser(Selector):
    """A selector that does not look at the vector: choose, compute these entries alone, send.

    `send(x_of_the_choice, choose(d, key, n), d)` is `compress(x, key)`, bit for bit.
    """

    @abstractmethod
    def scale(self, d: int) -> float:
        """What kept entries are multiplied by."""

    def choose(self, d: int, key: Key, n_workers: int = 1) -> Choice:
        """The entries that `compress` keeps of n_workers vectors of d entries under this key."""
        found = self._compiled(d).choose(d, n_workers, key.seed, key.round, key.purpose)
        return Choice(*found)

    def send(self, entries: Array, choice: Choice, d: int) -> Message:
        """The messages of workers whose vectors have these entries (total,) at the choice."""
        n_workers = len(choice.starts) - 1
        values: Array = np.empty((n_workers, d), entries.dtype)
        bits = np.empty(n_workers, _INT64)
        self._compiled(d).send(choice.starts, choice.indices, entries, values, bits)
        return Message(values, bits)


@dataclass(frozen=True)
class Quantizer(CompiledCompressor):
    """Sends a code of few bits for every entry, and perhaps one number for all of them."""

    has_header: ClassVar[bool] = True

    @abstractmethod
    def width(self, dtype: DTypeLike) -> int:
        """Bits of a code."""

    def bits(self, d: int, dtype: DTypeLike) -> int:
        """Return the bits of d codes, and b for the number that all share."""
        return self.has_header * value_bits(dtype) + d * self.width(dtype)


@dataclass(frozen=True)
class Unbiased(Compressor):
    """E C(x) = x, whatever the parameters."""

    unbiased: ClassVar[bool] = True

    @abstractmethod
    def omega(self, d: int) -> float:
        """Omega of E ||C(x) - x||^2 <= omega ||x||^2."""

    def alpha(self, d: int) -> float | None:
        """Return 1 - omega where that is positive, else None; C / (1 + omega) always contracts."""
        return contraction_of(self.omega(d))


@dataclass(frozen=True)
class Biased(Compressor):
    """E C(x) is not x."""

    unbiased: ClassVar[bool] = False

    def omega(self, d: int) -> None:
        """Return None: the compressor is biased."""
        return None


def contraction_of(omega: float) -> float | None:
    """The alpha of an unbiased compressor as it is, not scaled; None where it does not contract."""
    return 1 - omega if omega < 1 else None


def float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Refuse a dtype that messages do not have."""
    result = np.dtype(dtype)
    if result not in (np.float32, np.float64):
        raise TypeError(f"messages hold float32 or float64, got dtype {result}")
    return result


def value_bits(dtype: DTypeLike) -> int:
    """b, the bits of one entry."""
    return 8 * float_dtype(dtype).itemsize


def index_bits(d: int) -> int:
    """ceil(log2 d), the bits of an index."""
    return (d - 1).bit_length()


def positive(name: str, value: object, most: int = _MAX_DIM, upper: str = "the dimension d") -> int:
    """The value as an int from 1 to `most`; `name` is Class.field, `upper` what `most` is about."""
    number = checked_integer(name, value)
    if not 1 <= number <= most:
        raise ValueError(
            f"{name} must be between 1 and {upper}, got {number}; "
            f"{'raise' if number < 1 else 'lower'} compressor.{name.rpartition('.')[2]}"
        )
    return number


def truth(name: str, value: object) -> bool:
    """The value if it is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def fitting(compressor: str, k: int, d: int) -> int:
    """Return k once it is known to fit d."""
    if k > d:
        raise ValueError(
            f"{compressor}.k must be between 1 and d = {d}, got {k}; lower compressor.k"
        )
    return k
