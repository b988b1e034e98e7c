"""`Trace`: one recording of a function, which owns the graph's builder and makes the tracers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from buropt import _core
from buropt.trace.base import Memory, TracedValue
from buropt.trace.errors import (
    TraceError,
    UnsupportedOpError,
    definition,
    function_name,
    location,
)
from buropt.trace.hints import shape_hint
from buropt.trace.indices import Indices, IntegerInput
from buropt.trace.kinds import Kind, inexact, inexact_text, kind_of
from buropt.trace.randomness import watch_random_draws
from buropt.trace.scipy_shims import scipy_functions
from buropt.trace.sparse import SparseRow
from buropt.trace.tracer import Tracer
from buropt.tree import Structure, flatten_leaves, is_masked

_NONE: dict[str, Any] = {}
_SUPPORTED_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


class ForeignTracerError(TraceError):
    """A traced value was used outside of its recording.

    Attributes
    ----------
    traces : tuple of Trace
        The recording that it belongs to, and the one in which it was used: either may be that of
        an outer function, as its values may stand on either side of an operator.
    """

    def __init__(self, message: str, traces: tuple[Trace, Trace]) -> None:
        super().__init__(message)
        self.traces = traces


class Trace:
    """A recording: make inputs, call the function with them, read the node of the result.

    ::

        with Trace("float64") as trace:
            x = trace.input("x", (3,))
            a = trace.input("a", (3,), batched=True)
            loss = trace.call(lambda x, a: np.sum((x - a) ** 2), x, a)
        trace.builder.grad(loss.node, [x.node])

    Parameters
    ----------
    dtype : float64 or float32
        The one float dtype in which the graph computes; constants are cast to it and copied.

    Attributes
    ----------
    builder : _core.Builder
        The graph under construction.
    dtype : numpy.dtype
    name : str
        The function being traced, for error messages.
    indices : Indices
        Which inputs of integers are used as indices.
    tags : dict
        The values that were given a name by `tag`.
    """

    def __init__(self, dtype: DTypeLike = np.float64) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        if self.dtype not in _SUPPORTED_DTYPES:
            raise TypeError(f"a graph computes in float64 or float32, got dtype {self.dtype}")
        self.builder = _core.Builder(self.dtype.name)
        self.name = "a function"
        self.indices = Indices()
        self.tags: dict[str, Tracer] = {}
        self._is_open = True
        self._check_op: Callable[[str], None] | None = None
        self._shims = scipy_functions()

    def __enter__(self) -> Trace:
        self._shims.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_open = False
        self._shims.__exit__(kind, error, traceback)

    @property
    def is_open(self) -> bool:
        """Whether the function is still being traced."""
        return self._is_open

    # Inputs and constants

    def input(
        self,
        name: str,
        shape: Sequence[int],
        *,
        batched: bool = False,
        kind: Kind = "f",
        is_array: bool | None = None,
    ) -> Tracer:
        """A new input.

        Parameters
        ----------
        name : str
            The input's name in the graph and in error messages.
        shape : sequence of int
            The shape; for a batched input, the shape of one sample.
        batched : bool
            Whether the value differs from sample to sample.
        kind : str
            "f" for floats, "i" for integers, "b" for a mask; integers and masks are given as
            floats when the graph is run.
        is_array : bool, optional
            Whether the function gets an array, which in-place operators would change, and not a
            scalar. Left out: an array if it has an axis.
        """
        node = self.builder.input(name, tuple(shape), batched=batched)
        if kind == "i":
            self.indices.add_input(node, IntegerInput(name, tuple(shape), self.dtype, batched))
        owned = len(shape) > 0 if is_array is None else is_array
        return Tracer(self, node, kind, Memory(name) if owned else None)

    def csr_input(self, name: str, n_features: int) -> SparseRow:
        """A new input that is one row of a CSR matrix in each sample."""
        return SparseRow(self, self.builder.csr_input(name, n_features), name, n_features)

    def constant(self, value: NDArray[Any] | float, kind: Kind = "f") -> Tracer:
        """A constant, cast to the graph's dtype and copied."""
        node = self.builder.constant(np.asarray(value, self.dtype))
        if kind == "i":
            self.indices.add_constant(node, np.asarray(value))
        return Tracer(self, node, kind, None)

    def lift(self, value: Any) -> Tracer:
        """The operand as a tracer of this recording: a tracer, array, number or nested list.

        Raises
        ------
        TraceError
            If it is a tracer of another recording, or does not hold real numbers.
        """
        if isinstance(value, Tracer):
            if value.recording is not self or not self._is_open:
                raise self._foreign(value)
            return value
        if type(value) is float:
            return self.constant(value)
        array = self._real_array(value)
        kind = kind_of(array.dtype)
        if kind == "i":
            self._check_exact(array)
        return self.constant(array, kind)

    def _check_exact(self, array: NDArray[Any]) -> None:
        if array.ndim == 0 and int(self.dtype.type(array)) == int(array):
            return
        integer = inexact(array, self.dtype)
        if integer is not None:
            what = "an integer operand" if array.ndim == 0 else "an operand of integers"
            text, instead = inexact_text(integer, self.dtype)
            raise TraceError(f"{what} {text}. {location(self.name)} Instead: {instead}.")

    def _large_integer(self, value: int) -> NDArray[Any]:
        try:
            number = float(value)
            if number == value:
                return np.asarray(number)
            text, instead = inexact_text(value, self.dtype)
        except OverflowError:
            text, instead = "is beyond the range of floats", "a formula of its logarithm"
        raise TraceError(f"an integer operand {text}. {location(self.name)} Instead: {instead}.")

    def _real_array(self, value: Any) -> NDArray[Any]:
        instead = "NumPy arrays of real numbers"
        if isinstance(value, SparseRow):
            what = f"the sparse row {value.name} is only supported in products with x"
            instead = f"{value.name} @ x"
        elif is_masked(value) or isinstance(value, np.matrix):
            what = f"an operand of type {type(value).__name__} cannot be traced"
            instead = "np.asarray(...) of it, or np.where(mask, a, b)"
        elif hasattr(value, "tocsr"):
            what = f"the SciPy sparse matrix of shape {value.shape} cannot be a traced operand"
            instead = "pass it as the data of bo.compile, or use its toarray()"
        elif value is None or isinstance(value, str | bytes | dict | set):
            what = f"{value!r} is not a number and cannot be an operand of a traced value"
        else:
            array = np.asarray(value)
            if array.dtype.kind in "fiub":
                return array
            if isinstance(value, int):  # beyond 64 bits, where NumPy knows objects only
                return self._large_integer(value)
            what = f"an operand of dtype {array.dtype} cannot be traced"
        raise TraceError(f"{what}. {location(self.name)} Instead: {instead}.")

    # Nodes

    def emit(
        self,
        op: str,
        operands: Sequence[Tracer | SparseRow],
        attributes: dict[str, Any] | None = None,
        *,
        kind: Kind = "f",
    ) -> Tracer:
        """A new node.

        Raises
        ------
        ValueError
            If the shapes do not fit; the builder's text with the user's line added.
        """
        if self._check_op is not None:
            self._check_op(op)
        try:
            nodes = [operand.node for operand in operands]
            node = self.builder.emit(op, nodes, attributes or _NONE)
        except ValueError as error:
            text = str(error).rstrip(".?")
            raise ValueError(
                f"{text}. {location(self.name)} Instead: {shape_hint(op)}, seen while tracing by "
                "print(x.shape)."
            ) from None
        if kind == "i":
            self.indices.add_node(node, op, nodes, attributes)
        return Tracer(self, node, kind, None)

    @contextmanager
    def restricted(self, ops: Collection[str], what: str, instead: str) -> Iterator[None]:
        """Refuse nodes other than `ops` in this block, in which `what` is traced."""

        def check(op: str) -> None:
            if op not in ops:
                raise UnsupportedOpError(
                    f"{what} must work element by element, but uses {op}. {location(self.name)} "
                    f"Instead: {instead}."
                )

        before, self._check_op = self._check_op, check
        try:
            yield
        finally:
            self._check_op = before

    def fresh(self, tracer: Tracer) -> Tracer:
        """The same value in memory of its own, as after a copy."""
        return Tracer(self, tracer.node, tracer.kind, None)

    def number(self, tracer: Tracer) -> Tracer:
        """The same value as a float, 0 or 1 for a mask, in memory of its own."""
        return Tracer(self, tracer.node, "f", None)

    def integer(self, tracer: Tracer) -> Tracer:
        """The same value as an integer, 0 or 1 for a mask; it must be whole."""
        return Tracer(self, tracer.node, "i", None)

    def view(self, tracer: Tracer, base: Tracer) -> Tracer:
        """The same value as a view, in NumPy's sense, of `base`."""
        if base.memory is None:
            base.memory = Memory()
            base.memory.add(base)
        return Tracer(self, tracer.node, tracer.kind, base.memory)

    # Calls

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Tracer:
        """Trace `function(*args, **kwargs)`, whose result must be one number.

        Raises
        ------
        TraceError
            If it returns anything else than one real number.
        """
        return self._scalar(self._run(function, args, kwargs), function)

    def call_nested(
        self, function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> tuple[list[Tracer], Structure]:
        """Trace `function(*args, **kwargs)`, whose result may be nested; give its leaves and form.

        Raises
        ------
        TraceError
            If the result holds anything else than real numbers and arrays of them.
        """
        name = definition(function)
        results, structure = flatten_leaves(self._run(function, args, kwargs))
        if structure.kind == "none":
            raise TraceError(f"{name} returned None. Instead: return arrays or numbers.")
        leaves = [self._lift_result(result, name) for result in results]
        for leaf, path in zip(leaves, structure.paths("result"), strict=True):
            if leaf.is_bool:
                raise TraceError(
                    f"{name} returned booleans ({path}), which have no derivative. Instead: return "
                    "numbers, e.g. np.where(condition, 1.0, 0.0)."
                )
        return leaves, structure

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        outer, self.name = self.name, function_name(function)
        try:
            with watch_random_draws(function):
                return function(*args, **kwargs)
        except ValueError as error:
            # NumPy hides the tracer's own error when a number of an array is assigned.
            if isinstance(error.__cause__, TraceError):
                raise error.__cause__.with_traceback(error.__traceback__) from None
            raise
        finally:
            self.name = outer

    def _lift_result(self, result: Any, name: str) -> Tracer:
        if not isinstance(result, Tracer | int | float | np.ndarray | np.generic):
            raise TraceError(
                f"{name} returned a {type(result).__name__}, which is not a real number. Instead: "
                "return arrays and numbers that NumPy's functions have made."
            )
        return self.lift(result)

    def _scalar(self, result: Any, function: Callable[..., Any]) -> Tracer:
        name = definition(function)
        if result is None:
            raise TraceError(f"{name} returned None. Instead: return the value of the loss.")
        if isinstance(result, tuple | list | dict):
            raise TraceError(
                f"{name} returned a {type(result).__name__}. Instead: return one number; a second "
                "function can compute further results."
            )
        value = self._lift_result(result, name)
        if value.shape != ():
            raise TraceError(
                f"{name} returned an array of shape {value.shape}, but a loss must be one number "
                "of shape (). Instead: reduce it, e.g. by np.sum(...) or np.mean(...)."
            )
        if value.is_bool:
            raise TraceError(
                f"{name} returned a boolean. Instead: return a number, e.g. "
                "np.where(condition, 1.0, 0.0)."
            )
        return value

    def _foreign(self, tracer: Tracer) -> ForeignTracerError:
        trace = recording_of(tracer)
        return ForeignTracerError(
            f"a value traced in {trace.name} is used outside of that recording, where it has no "
            f"meaning. {location(self.name)} Instead: pass it as an argument or return it, and do "
            "not keep traced values in globals or attributes.",
            (trace, self),
        )


def recording_of(value: TracedValue | SparseRow) -> Trace:
    """The recording of a traced value, which itself knows it as a `Recording` only."""
    return cast(Trace, value.recording)
