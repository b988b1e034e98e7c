"""A problem: what a method sees of f(x) = mean over workers of f_i(x).

`Problem` wraps a compiled oracle with a start point, constants and counters. Methods ask the
problem, never the oracle, and contain no bookkeeping: gradients and messages are counted here, and
only here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from buropt.compressors import Chooser
from buropt.data.dataset import Array
from buropt.html import facts
from buropt.inner import InnerLoops
from buropt.problems.messages import Counters as Counters
from buropt.problems.messages import Index as Index
from buropt.problems.messages import Messages, mean_of_rows
from buropt.problems.noise import squared_gradients

if TYPE_CHECKING:
    from buropt.compressors import Compressor, Selector
    from buropt.oracle import Oracle
    from buropt.oracle.hessians import Learned
    from buropt.problems.constants import Constants
    from buropt.prox import Psi
    from buropt.random import Key


class _Evaluation(NamedTuple):
    """Everything known at one point; the arrays are read-only."""

    point: bytes
    value: float
    grad: Array  # (dim,)
    worker_grads: Array  # (n_workers, dim)


@dataclass(eq=False, repr=False)
class Problem(Messages):
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
        Of f, but `constants.minimum` is that of f + psi.
    counters : Counters
    psi : Psi, optional
        The part of the objective that need not be smooth; see `with_psi`.
    """

    name: str
    oracle: Oracle
    x0: Array
    constants: Constants
    counters: Counters = field(default_factory=Counters)
    psi: Psi | None = None
    _last: _Evaluation | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.x0 = self._point(np.array(self.x0))
        if not self.constants.L > 0:
            raise ValueError(
                f"{self.name}: L = {self.constants.L:g}, the gradient of f is the same everywhere, "
                "so that no theorem gives a step size; are all data zero?"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the evaluation that is kept, and programs; a copy makes its own."""
        state = self.__dict__ | {"_last": None}
        state.pop("inner", None)
        return state

    def __repr__(self) -> str:
        psi = "" if self.psi is None else f", psi={self.psi!r}"
        return (
            f"Problem({self.name!r}, dim={self.dim}, n_samples={self.n_samples}, "
            f"n_workers={self.n_workers}, dtype={self.x0.dtype}{psi})"
        )

    def _repr_html_(self) -> str:
        constants = self.constants
        rows = [
            ("parameters", f"{self.dim}, of {self.x0.dtype}"),
            ("samples", self.n_samples),
            ("workers", self.n_workers),
            ("smoothness L", constants.L),
            ("strong convexity mu", constants.mu),
            ("convex", constants.convex),
            ("psi", self.psi),
            ("oracle calls so far", self.counters.oracle_calls),
            ("passes over the data so far", self.epochs),
        ]
        return facts(f"Problem {self.name}", rows)

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

    def with_psi(self, psi: Psi) -> Problem:
        """The problem f + psi, which starts at the projection of x0 if x0 is not allowed.

        Its minimum is not known.
        """
        x0 = psi.prox(self.x0, 1.0) if psi.value(self.x0) == math.inf else self.x0
        constants = replace(self.constants, minimum=None)
        return replace(self, psi=psi, x0=x0, constants=constants, counters=Counters())

    def prox(self, x: Array, step: float) -> Array:
        """argmin_z psi(z) + |z - x|^2 / (2 step): x itself for a smooth problem. Free."""
        return x if self.psi is None else self.psi.prox(x, step)

    @cached_property
    def inner(self) -> InnerLoops:
        """Compiled loops over samples; they count with `count_steps`."""
        prox = ("none", 0.0, 0.0) if self.psi is None else self.psi.kernel
        return InnerLoops(self.oracle, prox)

    def count_steps(self, steps: int, sample_grads: float) -> None:
        """Steps made elsewhere: each one call, so many gradients, a vector in each direction."""
        self.counters.oracle_calls += steps
        self.counters.sample_grads += steps * sample_grads
        self.broadcast(steps)
        self.send_dense(steps)

    # --- questions to the oracle, counted ---

    def value(self, x: Array) -> float:
        """f(x). Counts one call and no gradients."""
        self.count(0)
        x = self._point(x)
        known = self._last is not None and self._last.point == x.tobytes()
        return self._evaluate(x).value if known else float(self.oracle.value(x))

    def grad(self, x: Array) -> Array:
        """Gradient of f at x, shape (dim,), the mean of `worker_grads`. Counts n_samples."""
        self.count(self.n_samples)
        return self._evaluate(x).grad

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        """F and its gradient at x. Counts n_samples gradients."""
        self.count(self.n_samples)
        evaluation = self._evaluate(x)
        return evaluation.value, evaluation.grad

    def sample_grad(self, x: Array, idx: Index, weights: Array | None = None) -> Array:
        """Mean of w_j times the gradient of the loss of j, over `idx`, plus the regularizer's.

        Shape (dim,). Repeats count; weights (len(idx),) are 1 by default. Counts len(idx)
        gradients.
        """
        self.count(len(idx))
        grad: Array = self.oracle.grad(self._point(x), idx, weights)
        return grad

    def sample_value_and_grad(self, x: Array, idx: Index) -> tuple[float, Array]:
        """Value and gradient of the mean over `idx`; counts as `sample_grad` does."""
        self.count(len(idx))
        value, grad = self.oracle.value_and_grad(self._point(x), idx)
        return float(value), grad

    def sample_grads(self, x: Array, idx: Index | None = None) -> Array:
        """Gradients of the samples `idx`, or of all, one a row, each with the regularizer's.

        Shape (len(idx), dim). Counts as many gradients.
        """
        self.count(self.n_samples if idx is None else len(idx))
        grads: Array = self.oracle.per_sample_grads(self._point(x), idx)
        return grads

    def sample_grad_difference(
        self, x: Array, y: Array, idx: Index, weights: Array | None = None
    ) -> Array:
        """`sample_grad` at x less that at y, (dim,). Counts 2 len(idx) gradients."""
        self.count(2 * len(idx))
        grad: Array = self.oracle.grad(self._point(x), idx, weights)
        grad -= self.oracle.grad(self._point(y), idx, weights)
        return grad

    def partial_grad(self, x: Array, coords: Index) -> Array:
        """Entries `coords` of the gradient of f, (len(coords),). Counts that part of n_samples."""
        self.count(self.n_samples * len(coords) / self.dim)
        entries: Array = self.oracle.partial_grad(self._point(x), coords)
        return entries

    def hessian(self, x: Array) -> Array:
        """Hessian of f, (dim, dim). Counts dim n_samples gradients, one for each row."""
        self.count(self.n_samples * self.dim)
        hessian: Array = self.oracle.hessian(self._point(x))
        return hessian

    def hvp(self, x: Array, v: Array) -> Array:
        """Hessian of f at x times v, (dim,). Counts n_samples gradients: a pass over the data."""
        self.count(self.n_samples)
        product: Array = self.oracle.hvp(self._point(x), self._point(v))
        return product

    def worker_grads(self, x: Array) -> Array:
        """Gradients of all f_i at x, shape (n_workers, dim). Counts n_samples gradients."""
        self.count(self.n_samples)
        return self._evaluate(x).worker_grads

    def worker_sample_grads(self, x: Array, idx: Index) -> Array:
        """The same, each estimated from its own samples idx[i]; idx (n_workers, b).

        Counts idx.size gradients.
        """
        self.count(idx.size)
        grads: Array = self.oracle.worker_grads(self._point(x), idx=idx)
        return grads

    def worker_grad_differences(self, x: Array, y: Array, idx: Index | None = None) -> Array:
        """All grad f_i(x) - grad f_i(y), (n_workers, dim), or estimates from the samples idx[i].

        Counts twice as many gradients as samples.
        """
        self.count(2 * (self.n_samples if idx is None else idx.size))
        points = self._point(x), self._point(y)
        differences: Array = self.oracle.worker_grad_differences(*points, idx)
        return differences

    def local_grads(
        self, x: Array, workers: Index | None = None, idx: Index | None = None
    ) -> Array:
        """Gradients of the f_i of some workers, each at its own row of x: (len(workers), dim).

        From all samples of these workers, or estimates from idx[row]. Counts as many gradients.
        """
        self.count(self._samples_of(workers) if idx is None else idx.size)
        grads: Array = self.oracle.local_grads(x, workers, idx)
        return grads

    def worker_hessians(self, x: Array) -> Array:
        """Hessians of all f_i at x, (n_workers, dim, dim). Counts dim n_samples gradients."""
        self.count(self.n_samples * self.dim)
        hessians: Array = self.oracle.worker_hessians(self._point(x))
        return hessians

    def worker_triangles(self, x: Array, workers: Index | None = None) -> Array:
        """The same for some workers, or all, as upper triangles (k, dim (dim + 1)/2).

        Counts dim gradients for each of their samples.
        """
        self.count(self.dim * self._samples_of(workers))
        triangles: Array = self.oracle.worker_triangles(self._point(x), workers)
        return triangles

    # --- messages, counted ---

    def learn_hessians(
        self,
        x: Array,
        compressor: Selector,
        alpha: float,
        estimates: Array,
        mean: Array,
        key: Key,
        workers: Index,
    ) -> Learned:
        """Some workers send C(hess f_i(x) - H_i), and their estimates H_i follow, in place.

        `estimates`, (n_workers, dim (dim + 1)/2), grow by alpha times the messages, and `mean` by
        their share of it. Counts as `worker_triangles` does.
        """
        self.count(self.dim * self._samples_of(workers))
        share = len(workers) / self.n_workers
        self.counters.bits_up += share * compressor.bits(len(mean), mean.dtype)
        draw = key.seed, key.round, key.purpose
        selection = compressor._compiled(len(mean))
        return self.oracle.learn_hessians(
            self._point(x), selection, draw, alpha, estimates, mean, workers
        )

    def send_mean_difference(self, compressor: Compressor, x: Array, y: Array, key: Key) -> Array:
        """Workers send C(grad f_i(x) - grad f_i(y)); the mean of what the server decodes, (dim,).

        Where that is quicker, entries that a compressor chooses before they exist are computed
        alone. Counts n_samples gradients, those at x: the workers keep those at y.
        """
        self.count(self.n_samples)
        x, y = self._point(x), self._point(y)
        if isinstance(compressor, Chooser) and self.oracle.has_quick_entries:
            draw = key.seed, key.round, key.purpose
            selection = compressor._compiled(self.dim)
            mean, bits = self.oracle.mean_of_messages(x, y, selection, draw)
            self.counters.bits_up += bits / self.n_workers
            return mean
        before = self._evaluate(y).worker_grads
        return mean_of_rows(self.send(compressor, self._evaluate(x).worker_grads - before, key))

    # --- measuring, not counted ---

    @cached_property
    def sample_noise(self) -> Array | None:
        """|grad f_j(x*)|^2 of all samples, regularizer included: (n_samples,), or None.

        Their mean is sigma*^2, the noise of single samples at the solution.
        """
        return self.weighted_noise(np.ones(self.n_samples))

    def weighted_noise(self, weights: Array) -> Array | None:
        """|w_j grad loss_j(x*) + grad r(x*)|^2 of all samples, r the regularizer, (n_samples,).

        None if x* is not known.
        """
        if self.constants.x_star is None:
            return None
        return squared_gradients(self.oracle, self._point(self.constants.x_star), weights)

    def metrics(self, x: Array) -> tuple[float, float]:
        """f(x) + psi(x), and the squared norm of the gradient of f.

        With psi, in place of the gradient the gradient mapping L (x - prox(x - grad f(x) / L)),
        which vanishes exactly at stationary points.
        """
        evaluation = self._evaluate(x)
        if self.psi is None:
            return evaluation.value, float(evaluation.grad @ evaluation.grad)
        L = self.constants.L
        mapping = L * (x - self.psi.prox(x - evaluation.grad / L, 1 / L))
        return evaluation.value + self.psi.value(x), float(mapping @ mapping)

    def distance_sq(self, x: Array) -> float | None:
        """|x - x*|^2 in float64; None where x* is not known, or not known to be the only one."""
        x_star = self.constants.x_star if self.constants.mu > 0 else None
        if x_star is None:
            return None
        difference = np.subtract(x, x_star, dtype=np.float64)
        return float(difference @ difference)

    @property
    def evaluated(self) -> Array | None:
        """The point whose evaluation is kept, shape (dim,), if there is one."""
        if self._last is None:
            return None
        point: Array = np.frombuffer(self._last.point, self.x0.dtype).copy()
        return point

    def keep_evaluation(self, x: Array | None) -> None:
        """Evaluate at x, (dim,), and keep that; None: forget what is kept."""
        self._last = None
        if x is not None:
            self._evaluate(x)

    def _samples_of(self, workers: Index | None) -> int:
        """How many samples these workers have, or all."""
        shards = self.oracle.shards
        return self.n_samples if workers is None else sum(len(shards[i]) for i in workers)

    def count(self, sample_grads: float) -> None:
        """One question to the oracle, for so many gradients of samples."""
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
            grad = mean_of_rows(worker_grads)
            for array in (grad, worker_grads):
                array.setflags(write=False)
            value = float(np.add.reduce(values)) / len(values)
            self._last = _Evaluation(point, value, grad, worker_grads)
        return self._last
