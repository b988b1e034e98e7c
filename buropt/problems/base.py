"""A problem: what a method sees of f(x) = mean over workers of f_i(x).

`Problem` wraps a compiled oracle with a start point, constants and counters. Methods ask the
problem, never the oracle, and contain no bookkeeping: gradients and messages are counted here, and
only here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buropt.data.dataset import Array

if TYPE_CHECKING:
    from buropt.compressors import Compressor
    from buropt.oracle import Oracle
    from buropt.problems.constants import Constants
    from buropt.random import Key


@dataclass
class Counters:
    """What a run has used so far.

    Attributes
    ----------
    oracle_calls : int
        Questions to the oracle, whatever their size.
    sample_grads : int
        Gradients of single samples; divided by n_samples: epochs. Values without a gradient are
        free.
    bits_up : float
        Bits sent to the server by one worker, averaged over the workers.
    bits_down : float
        Bits that the server broadcast.
    """

    oracle_calls: int = 0
    sample_grads: int = 0
    bits_up: float = 0.0
    bits_down: float = 0.0


class _Evaluation(NamedTuple):
    """Everything known at one point; the arrays are read-only."""

    point: bytes
    value: float
    grad: Array  # (dim,)
    worker_grads: Array  # (n_workers, dim)


@dataclass(eq=False)
class Problem:
    """Oracle, start point, constants and counters.

    Gradients come as read-only arrays: one evaluation (all workers, at the last point, compared by
    value) is kept and serves `grad`, `worker_grads` and `metrics` alike, so that metrics at the
    point where the method has just asked for gradients cost nothing, and the other way round. What
    is counted does not depend on what happened to be kept.

    Attributes
    ----------
    name : str
    oracle : Oracle
        Of `n_workers` workers, with f_i = (n_workers / n_samples) sum of its samples' losses +
        regularizer.
    x0 : ndarray, shape (dim,)
        Start point, in the oracle's dtype.
    constants : Constants
    counters : Counters
    """

    name: str
    oracle: Oracle
    x0: Array
    constants: Constants
    counters: Counters = field(default_factory=Counters)
    _last: _Evaluation | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.x0 = self._point(np.array(self.x0))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the evaluation that is kept; a copy makes its own."""
        return self.__dict__ | {"_last": None}

    @property
    def dim(self) -> int:
        """Number of variables."""
        return int(self.oracle.dim)

    @property
    def n_workers(self) -> int:
        """Number of functions f_i."""
        return int(self.oracle.n_workers)

    @property
    def n_samples(self) -> int:
        """Number of samples of all workers together."""
        return int(self.oracle.n_samples)

    @property
    def epochs(self) -> float:
        """Gradients of single samples so far, in units of the whole data."""
        return self.counters.sample_grads / self.n_samples

    # --- questions to the oracle, counted ---

    def value(self, x: Array) -> float:
        """f(x). Counts one call and no gradients."""
        self._count(0)
        x = self._point(x)
        known = self._last is not None and self._last.point == x.tobytes()
        return self._evaluate(x).value if known else float(self.oracle.value(x))

    def grad(self, x: Array) -> Array:
        """Gradient of f at x, shape (dim,), the mean of `worker_grads`. Counts n_samples."""
        self._count(self.n_samples)
        return self._evaluate(x).grad

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        """F and its gradient at x. Counts n_samples gradients."""
        self._count(self.n_samples)
        evaluation = self._evaluate(x)
        return evaluation.value, evaluation.grad

    def sample_grad(self, x: Array, idx: NDArray[np.integer[Any]]) -> Array:
        """Mean gradient of the samples `idx` (repeats count) plus the regularizer's, shape (dim,).

        Counts len(idx) gradients.
        """
        self._count(len(idx))
        grad: Array = self.oracle.grad(self._point(x), idx)
        return grad

    def worker_grads(self, x: Array) -> Array:
        """Gradients of all f_i at x, shape (n_workers, dim). Counts n_samples gradients."""
        self._count(self.n_samples)
        return self._evaluate(x).worker_grads

    def worker_grad_differences(self, x: Array, y: Array) -> Array:
        """All grad f_i(x) - grad f_i(y), shape (n_workers, dim). Counts 2 n_samples gradients."""
        self._count(2 * self.n_samples)
        differences: Array = self.oracle.worker_grad_differences(self._point(x), self._point(y))
        return differences

    # --- messages, counted ---

    def send(self, compressor: Compressor, x: Array, key: Key) -> Array:
        """Workers send the rows of `x`, (n_workers, dim), compressed; what the server decodes."""
        message = compressor.compress(x, key)
        self.counters.bits_up += float(np.add.reduce(message.bits)) / len(message.bits)
        return message.values

    def send_dense(self, n_vectors: int = 1) -> None:
        """Every worker sends `n_vectors` vectors as they are."""
        self.counters.bits_up += n_vectors * self._dense_bits

    def broadcast(self, n_vectors: int = 1) -> None:
        """The server sends `n_vectors` vectors, as they are, to all workers."""
        self.counters.bits_down += n_vectors * self._dense_bits

    # --- measuring, not counted ---

    def metrics(self, x: Array) -> tuple[float, float]:
        """f(x) and the squared norm of its gradient."""
        evaluation = self._evaluate(x)
        return evaluation.value, float(evaluation.grad @ evaluation.grad)

    @property
    def _dense_bits(self) -> int:
        return self.dim * 8 * self.x0.dtype.itemsize

    def _count(self, sample_grads: int) -> None:
        self.counters.oracle_calls += 1
        self.counters.sample_grads += sample_grads

    def _point(self, x: Array) -> Array:
        x = np.ascontiguousarray(x, dtype=self.oracle.dtype)
        if x.shape != (self.dim,):
            raise ValueError(
                f"{self.name}: a point has shape ({self.dim},), got an array of shape {x.shape}"
            )
        return x

    def _evaluate(self, x: Array) -> _Evaluation:
        x = self._point(x)
        point = x.tobytes()
        if self._last is None or self._last.point != point:
            values, worker_grads = self.oracle.worker_values_and_grads(x)
            grad = np.add.reduce(worker_grads, axis=0)
            grad /= len(worker_grads)
            for array in (grad, worker_grads):
                array.setflags(write=False)
            value = float(np.add.reduce(values)) / len(values)
            self._last = _Evaluation(point, value, grad, worker_grads)
        return self._last
