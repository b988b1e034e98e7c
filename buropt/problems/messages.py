"""What goes between the workers and the server, and how it is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buropt.data.dataset import Array
from buropt.random import Purpose

if TYPE_CHECKING:
    from buropt.compressors import Compressor, Message
    from buropt.random import Key

Index: TypeAlias = NDArray[np.integer[Any]]


@dataclass
class Counters:
    """What a run has used so far.

    Attributes
    ----------
    oracle_calls : int
        Questions to the oracle, whatever their size.
    sample_grads : float
        Gradients of single samples; divided by n_samples: epochs. Values without a gradient are
        free; k of the d entries of a gradient count k/d, a Hessian counts d gradients.
    bits_up : float
        Bits sent to the server by one worker, averaged over the workers.
    bits_down : float
        Bits that the server broadcast.
    """

    oracle_calls: int = 0
    sample_grads: float = 0
    bits_up: float = 0.0
    bits_down: float = 0.0


class Messages:
    """The part of a problem that sends: every message is counted where it is made."""

    x0: Array
    counters: Counters

    def send(
        self, compressor: Compressor, x: Array, key: Key, workers: Index | None = None
    ) -> Array:
        """Workers send the rows of `x`, (n_workers, dim), compressed; what the server decodes.

        With `workers`, a list of distinct numbers, the others send nothing: their rows are zero.
        """
        message = compressor.compress(x, key)
        if workers is None:
            return self._received(message)
        self.counters.bits_up += float(np.add.reduce(message.bits[workers])) / len(message.bits)
        values = np.zeros_like(message.values)
        values[workers] = message.values[workers]
        return values

    def broadcast_compressed(self, compressor: Compressor, x: Array, key: Key) -> Array:
        """The server sends the vector x, (dim,), compressed, to all workers; what they decode."""
        message = compressor.compress(np.ascontiguousarray(x[None]), key.fold(Purpose.SERVER))
        self.counters.bits_down += float(message.bits[0])
        values: Array = message.values[0]
        return values

    def send_dense(self, n_vectors: float = 1) -> None:
        """Every worker sends `n_vectors` vectors as they are: s of n workers, s/n vectors."""
        self.counters.bits_up += n_vectors * self.dense_bits

    def send_flag(self) -> None:
        """Every worker sends one bit."""
        self.counters.bits_up += 1

    def send_entries(self, n_entries: float) -> None:
        """Every worker sends so many numbers, whose places the server knows; or s of n, s/n."""
        self.counters.bits_up += n_entries * 8 * self.x0.dtype.itemsize

    def broadcast(self, n_vectors: int = 1) -> None:
        """The server sends `n_vectors` vectors, as they are, to all workers."""
        self.counters.bits_down += n_vectors * self.dense_bits

    @property
    def dense_bits(self) -> int:
        """Bits of a vector that is sent as it is."""
        return 8 * self.x0.nbytes

    def _received(self, message: Message) -> Array:
        """What the server reads in the messages of all workers, counted."""
        self.counters.bits_up += float(np.add.reduce(message.bits)) / len(message.bits)
        return message.values


def mean_of_rows(rows: Array) -> Array:
    """Mean over workers, (n, d) -> (d,); rows are added in order, so the bits never vary."""
    total: Array = np.add.reduce(rows, axis=0)
    total /= len(rows)
    return total
