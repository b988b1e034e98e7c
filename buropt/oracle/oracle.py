"""`Oracle`: values and gradients of a compiled objective.

The loss is traced once with symbolic inputs (`compiling.py`), differentiated as a graph, and
compiled into programs that run over samples in tiles, on all threads. The objective is the mean of
the samples' losses plus the regularizer, which every call counts once: full batch, minibatch, or
one worker's share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buropt import _core
from buropt.html import facts
from buropt.oracle.data import OracleData, check_real, nbytes, read_shards
from buropt.oracle.description import Description
from buropt.oracle.entries import OracleEntries
from buropt.oracle.objective import Array, Objective, Parts
from buropt.tree import check_plain

if TYPE_CHECKING:
    from buropt.oracle.linear_model import LinearModel


class Oracle(OracleEntries):
    """Values and gradients of a compiled objective. Made by `buropt.compile`.

    A point `x` is an array of shape (dim,) (or of x0's own shape); gradients have the shape of `x`.
    `idx` is an integer array that picks samples, repeats counted, for the mean over the list. `out`
    is an array to write into, C-contiguous and of the oracle's dtype.

    Attributes
    ----------
    dim : int
        Number of parameters.
    n_samples : int
        Rows of the data; 0 without data.
    n_workers : int
        Parts of the split.
    dtype : numpy.dtype
        float64 or float32.
    x0 : ndarray, shape (dim,)
        The start point, flat.
    threads : int
        Threads that a call may use.
    """

    __slots__ = ("_quick_grad", "_quick_step", "_quick_value", "_quick_value_and_grad")

    def __init__(
        self,
        objective: Objective,
        x0: Array,
        samples: OracleData,
        weights: ArrayLike | None,
        threads: int | None,
        workers: int | Sequence[ArrayLike] | None,
    ) -> None:
        self.x0 = x0
        self.dim = objective.spec.dim
        self.dtype = objective.spec.dtype
        self.n_samples = samples.n
        self.threads = _read_threads(threads)
        self._threads_asked = threads
        self._spec = objective.spec
        self._samples = samples
        self._objective = objective
        if samples.n == 0 and (workers is not None or weights is not None):
            raise ValueError("workers and weights need data, and this oracle has none")
        self._shards = read_shards(workers, samples.n) if samples.n else []
        self._weights = self._read_weights(weights)
        self._evaluators: dict[tuple[str, bool], _core.Evaluator] = {}
        # Those of unweighted calls, by the method that answers with them: `_core.QuickMethod` looks
        # here, and only calls the method itself where it finds none or weights are given. They are
        # slots, which are found sooner than entries of __dict__.
        self._quick_value: _core.Evaluator | None = None
        self._quick_grad: _core.Evaluator | None = None
        self._quick_value_and_grad: _core.Evaluator | None = None
        self._quick_step: _core.Evaluator | None = None

    def __repr__(self) -> str:
        return (
            f"Oracle(dim={self.dim}, n_samples={self.n_samples}, n_workers={self.n_workers}, "
            f"dtype={self.dtype}, threads={self.threads})"
        )

    def _repr_html_(self) -> str:
        parameters = zip(self._spec.paths, self._spec.shapes, strict=True)
        rows = [
            ("parameters", f"{self.dim}, of {self.dtype}"),
            ("samples", self.n_samples or "none: a plain function"),
            ("workers", self.n_workers),
            ("threads", self.threads),
            *parameters,
        ]
        return facts("Oracle", rows, "describe() says what has been compiled")

    def unflatten(self, x: Array) -> Any:
        """Give the parameters of a flat vector (dim,) as x0 was given: nested, as views of `x`."""
        return self._spec.unflatten(x)

    def flatten(self, tree: Any) -> Array:
        """Put parameters nested as x0 was given into a new vector, shape (dim,)."""
        return self._spec.flatten(tree)

    # Value and gradient

    @_core.QuickMethod
    def value(
        self, x: ArrayLike, idx: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> float:
        """f(x): the mean of the picked samples' losses (all by default) plus the regularizer.

        Raises
        ------
        ValueError, TypeError, IndexError
            If `x`, `idx` or `weights` have a wrong shape or type, or a sample number does not
            exist.
        """
        evaluator, weights = self._choose("value", weights, idx)
        value: float = evaluator.evaluate(x, idx, weights, None)
        return value

    @_core.QuickMethod
    def grad(
        self,
        x: ArrayLike,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """Gradient of `value` at x, shape of `x`; raises as `value` does."""
        evaluator, weights = self._choose("grad", weights, idx)
        gradient: Array = evaluator.evaluate(x, idx, weights, out)
        return gradient

    @_core.QuickMethod
    def value_and_grad(
        self,
        x: ArrayLike,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        out: Array | None = None,
    ) -> tuple[float, Array]:
        """`value` and `grad` from one pass over the samples; raises as `value` does."""
        evaluator, weights = self._choose("value_and_grad", weights, idx)
        both: tuple[float, Array] = evaluator.evaluate(x, idx, weights, out)
        return both

    @_core.QuickMethod
    def step(
        self,
        x: Array,
        step_size: float,
        idx: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Take a step of (stochastic) gradient descent in place, in one call.

        The same numbers as ``x -= step_size * oracle.grad(x, idx, weights)``, but for subnormal
        ones of float32, which may count as 0.

        Parameters
        ----------
        x : ndarray, shape (dim,) or that of x0
            Point that moves. C-contiguous, of the oracle's dtype.
        step_size : float
            Rounded to the oracle's dtype.
        idx, weights : array, optional
            As for `grad`.

        Raises
        ------
        ValueError, TypeError, IndexError
            As `grad` does, and if x cannot be written in place or step_size is no finite number; x
            is then as it was.
        """
        try:
            is_finite = math.isfinite(step_size)
        except TypeError:
            raise TypeError(f"step_size must be a number, got {step_size!r}") from None
        if not is_finite:
            raise ValueError(f"step_size must be finite, got {step_size!r}; x is as it was")
        evaluator, weights = self._choose("step", weights, idx)
        evaluator.step(x, step_size, idx, weights)

    def bind(self, x: Array, g: Array) -> _core.BoundCall:
        """Bind a call to two fixed arrays: no conversion, no check, no allocation.

        A bound call is for one thread at a time. Threads that work at the same time bind a call
        each, with arrays of their own.

        Parameters
        ----------
        x : ndarray, shape (dim,)
            Read at every call. C-contiguous, of the oracle's dtype.
        g : ndarray, shape (dim,)
            The gradient is written here at every call.

        Returns
        -------
        callable
            ``call()`` returns f(x) over all samples as a float and leaves the gradient in `g`.
        """
        evaluator = self._evaluator("value_and_grad", self._weights is not None)
        return _core.BoundCall(evaluator, x, g, self._weights)

    # Saving and copying

    def save(self, path: str | PathLike[str], *, data: bool = True) -> None:
        """Save the oracle in one file, which `buropt.load` reads.

        Parameters
        ----------
        path : path
            Written at once: a file of that name is replaced when the new one is complete.
        data : bool
            Whether to save the data as well, with weights and workers. Without, they are given
            to `load`.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        from buropt.oracle.saving import write_oracle  # here, since few programs save anything

        write_oracle(path, self._parts(), data)

    def _linear_loops(self) -> tuple[_core.LinearLoops, LinearModel]:
        """The core of `LinearLoops`, and the slopes of all samples."""
        roles, dense, csr = self._objective.sources(self._samples)
        first = len(self._spec.offsets)
        sources = [(kind, k) for kind, k, _ in roles[first : first + len(self._samples.arrays)]]
        graph = self._objective.functions.graph
        loops = _core.LinearLoops(graph, sources, dense, csr, self.n_samples)
        model = self._linear_model
        if not loops.applies or model is None or self._weights is not None:
            raise ValueError(
                "LinearLoops needs an unweighted loss phi(a @ x, ...) of one CSR row a and of "
                "numbers, one parameter vector x, and no other use of either; for other losses "
                "take oracle.grad(x, idx) or oracle.step"
            )
        return loops, model

    def _general_loops(self, weighted: bool) -> _core.GeneralLoops:
        """The core of the inner loops of any loss."""
        roles, dense, csr = self._objective.sources(self._samples)
        outputs = [(1, offset) for offset in self._spec.offsets]
        graph = self._objective.graph("grad", weighted)
        n, threads = self.n_samples, self.threads
        return _core.GeneralLoops(graph, roles, outputs, self.dim, dense, csr, n, threads)

    def _parts(self) -> Parts:
        return Parts(
            self._objective.functions,
            self._spec,
            self.x0,
            self._samples,
            self._weights,
            self._shards,
            self._threads_asked,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Programs, threads and scratch memory are made anew where the copy lives.
        return _from_parts, (self._parts(),)

    # Looking inside

    def describe(self) -> Description:
        """What has been compiled; ``print`` it for a report.

        Returns
        -------
        dict
            Of the program of `value_and_grad`: nodes, instructions, executor ("scalar" or "tile"),
            tile (samples), slots (of the full batch), arena_bytes, accumulator_bytes,
            scratch_bytes, constant_bytes, copied_bytes (data that are mostly zeros, without
            them), sliced_bytes (copies of sparse data by rows and by columns, made when a full
            batch first needs them and shared by all programs: 4 to 24 bytes an entry),
            table_samples (a batch of so many multiplies looked-up rows once for all samples; 0 for
            none), work_per_sample (multiply-adds, roughly; sparse rows not counted), stages
            (instructions once for a call, for each tile, and once for a batch) and primitives (how
            many of each). Under "programs" the same of every program that
            exists by now; and oracle (a line of text), data_bytes.
        """
        weighted = self._weights is not None
        program = self._evaluator("value_and_grad", weighted).describe()
        programs = {
            kind + " with weights" * weighted: evaluator.describe()
            for (kind, weighted), evaluator in self._evaluators.items()
        }
        return Description(
            program,
            oracle=repr(self),
            data_bytes=sum(map(nbytes, self._samples.arrays)),
            programs=programs | self._queries.describe(),
        )

    @property
    def graph(self) -> _core.Graph:
        """The graph of `value_and_grad`; ``str`` lists its nodes."""
        return self._objective.graph("value_and_grad", False)

    # Evaluators are made when first asked for.

    def _choose(
        self, kind: str, weights: ArrayLike | None, idx: ArrayLike | None
    ) -> tuple[_core.Evaluator, ArrayLike | None]:
        weights = self._weights_for(weights, idx)
        evaluator = self._evaluator("grad" if kind == "step" else kind, weights is not None)
        if weights is None:
            setattr(self, f"_quick_{kind}", evaluator)
        return evaluator, weights

    def _weights_for(self, weights: ArrayLike | None, idx: ArrayLike | None) -> ArrayLike | None:
        if weights is None and self._weights is not None:
            return self._weights if idx is None else self._weights_of(np.asarray(idx))
        if weights is not None and self.n_samples == 0:
            raise ValueError("weights cannot be given: this oracle was compiled without data")
        return weights

    def _evaluator(self, kind: str, weighted: bool) -> _core.Evaluator:
        evaluator = self._evaluators.get((kind, weighted))
        if evaluator is None:
            evaluator = self._objective.evaluator(
                kind, weighted, self._samples, self._x_shape(), self.threads
            )
            evaluator.set_workers(self._shards)
            self._evaluators[kind, weighted] = evaluator
        return evaluator

    def _x_shape(self) -> tuple[int, ...]:
        shapes = self._spec.shapes
        return shapes[0] if len(shapes) == 1 else (self.dim,)

    def _read_weights(self, weights: ArrayLike | None) -> Array | None:
        if weights is None:
            return None
        check_plain(weights, "weights")
        array = np.asarray(weights)
        check_real(array, "weights")
        if array.shape != (self.n_samples,):
            raise ValueError(
                f"weights must have one entry per sample, shape ({self.n_samples},), "
                f"got {array.shape}"
            )
        return np.ascontiguousarray(array, self.dtype)

    def _weights_of(self, idx: NDArray[Any]) -> Array | None:
        """The weights of the picked samples; of an `idx` that the core will refuse, any."""
        if self._weights is None or idx.dtype.kind not in "iu":
            return self._weights
        return self._weights.take(idx.ravel().astype(np.int64, copy=False), mode="clip")


def _from_parts(parts: Parts) -> Oracle:
    objective = Objective(parts.functions, parts.spec, parts.samples.rows)
    workers = parts.shards or None
    return Oracle(objective, parts.x0, parts.samples, parts.weights, parts.threads, workers)


def _read_threads(threads: int | None) -> int:
    if threads is None:
        return _core.default_threads()
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ValueError(f"threads must be a positive whole number or None, got {threads!r}")
    return int(threads)
