"""`grad` and `value_and_grad`: derivatives of plain functions of arrays.

The first call with new shapes traces the function, differentiates the graph and plans a program;
later calls only run the program. What may differ between calls without a new trace is the value of
every array and every float among the arguments. Python ints, booleans, strings, functions and
`None` are part of the recording: each new value is a new trace, and the function may branch on it.
Values that the function takes from outside are read, and arrays copied, when it is traced; call
`grad` again after they have changed.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from buropt import _core
from buropt.autodiff.program import Program, Run, gradient_dtype
from buropt.trace import DisconnectedInputWarning, Trace, TraceError, Tracer
from buropt.trace.arguments import Arguments, Input, Static, common_dtype
from buropt.trace.errors import definition, function_name, warn
from buropt.trace.operators import Memory
from buropt.tree import Structure

_MAX_PROGRAMS = 64
_FAST_SCALARS = frozenset((float, np.float64, np.float32))


class CacheInfo(NamedTuple):
    """What a derivative has compiled: traces so far, programs kept, and the most it keeps."""

    n_traces: int
    n_programs: int
    max_programs: int


class Derivative(Protocol):
    """What `grad` and `value_and_grad` return: a function with a cache of programs."""

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Evaluate at the arguments; `out` takes the gradient."""

    def cache_info(self) -> CacheInfo:
        """How often the function was traced, and how many programs are kept."""

    def cache_clear(self) -> None:
        """Forget all programs; the next call traces again."""


def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Derivative:
    """The gradient of a scalar function of arrays.

    ::

        bo.grad(lambda x, c: np.sum(c * x**2))(np.ones(3), 2.0)     # array([4., 4., 4.])

    Parameters
    ----------
    fun : callable
        Returns one number; written with NumPy. Its arguments may be arrays, numbers, and nested
        dicts, lists and tuples of them.
    argnums : int or sequence of int
        The positional arguments to differentiate by; negative ones count from the end.

    Returns
    -------
    callable
        `gradient(*args, out=None, **kwargs)`. The gradient has the structure and the shapes of the
        argument and its dtype (integers and Python numbers are promoted, as a rule to float64);
        for a sequence of argnums it is a tuple. A scalar argument gives a NumPy scalar. `out` is
        an array, or a structure of arrays, that receives the gradient and is returned.
        `gradient.cache_info()` tells how often `fun` was traced.

    Raises
    ------
    TraceError
        (a TypeError) If `fun` does something that cannot be traced or does not return one number,
        or if an argument to differentiate by does not hold real numbers.

    Warns
    -----
    DisconnectedInputWarning
        If an argument does not influence the result; its gradient is zero.
    """
    return _derivative(fun, argnums, with_value=False)


def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Derivative:
    """The value and the gradient of a scalar function in one evaluation.

    Like `grad`, but the result is the pair `(value, gradient)`; `out` receives the gradient.
    """
    return _derivative(fun, argnums, with_value=True)


def _derivative(
    fun: Callable[..., Any], argnums: int | Sequence[int], with_value: bool
) -> Derivative:
    compiler = _Compiler(fun, argnums, with_value)
    find = compiler.fast.get

    def derivative(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        # The short way for floats and arrays: one look-up by their types, shapes and dtypes.
        if not kwargs:
            run = find(tuple([_fast_key(arg) for arg in args]))
            if run is not None:
                return run(args, out)
        return compiler.call(args, kwargs, out)

    kind = "value_and_grad" if with_value else "grad"
    name = f"{kind}({function_name(fun)})"
    derivative.__name__ = derivative.__qualname__ = name
    derivative.__doc__ = f"The {kind} of {definition(fun)}."
    wrapped = cast(Any, derivative)
    wrapped.__wrapped__ = fun  # inspect.signature and error messages look through
    wrapped.cache_info = compiler.cache_info
    wrapped.cache_clear = compiler.cache_clear
    return cast(Derivative, derivative)


def _fast_key(arg: Any) -> Any:
    """What a program depends on, for arrays and floats; None for everything else."""
    kind = type(arg)
    if kind is np.ndarray:
        return arg.shape, arg.dtype
    return kind if kind in _FAST_SCALARS else None


class _Compiler:
    """The programs of one derivative, by the structure, shapes and dtypes of the arguments."""

    def __init__(
        self, fun: Callable[..., Any], argnums: int | Sequence[int], with_value: bool
    ) -> None:
        if not callable(fun):
            raise TypeError(f"the first argument must be a function, got {fun!r}")
        self._is_single = not isinstance(argnums, Sequence)
        numbers = [argnums] if self._is_single else list(cast(Sequence[int], argnums))
        if any(isinstance(number, bool) for number in numbers):
            raise TypeError(f"argnums must be an int or a sequence of ints, got {argnums!r}")
        self._argnums = tuple(operator.index(cast(int, number)) for number in numbers)
        self._fun = fun
        self._with_value = with_value
        self._programs: OrderedDict[Any, Run] = OrderedDict()
        self._lock = threading.RLock()
        self._n_traces = 0
        # Programs whose arguments are floats and arrays only, by `_fast_key`.
        self.fast: dict[Any, Run] = {}

    def cache_info(self) -> CacheInfo:
        return CacheInfo(self._n_traces, len(self._programs), _MAX_PROGRAMS)

    def cache_clear(self) -> None:
        with self._lock:
            self._programs.clear()
            self.fast.clear()

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        arguments = Arguments(self._fun, args, kwargs, self._argnums)
        if arguments.has_tracers():
            if out is not None:
                raise TraceError(
                    f"the derivative of {function_name(self._fun)} is traced and cannot write "
                    "into out=. Instead: use its result."
                )
            return self._inline(arguments)
        kinds = arguments.classify()
        key = (arguments.structure, kinds)
        with self._lock:
            run = self._programs.get(key)
            if run is None:
                run = self._compile(arguments, kinds)
                self._programs[key] = run
                if len(self._programs) > _MAX_PROGRAMS:
                    self._programs.popitem(last=False)
                    self.fast.clear()
            self._programs.move_to_end(key)
            fast_key = tuple(_fast_key(arg) for arg in args)
            if not kwargs and None not in fast_key:
                self.fast[fast_key] = run
        leaves = [
            leaf
            for leaf, kind in zip(arguments.leaves, kinds, strict=True)
            if isinstance(kind, Input)
        ]
        return run(leaves, out)

    # From arguments to a program

    def _compile(self, arguments: Arguments, kinds: tuple[Input | Static, ...]) -> Run:
        self._n_traces += 1
        paths = arguments.paths()
        named = [
            (path, kind) for path, kind in zip(paths, kinds, strict=True) if isinstance(kind, Input)
        ]
        inputs = [kind for _, kind in named]
        dtype = common_dtype(inputs)
        with Trace(dtype) as trace:
            leaves = list(arguments.leaves)
            for k, kind in enumerate(kinds):
                if isinstance(kind, Input):
                    leaves[k] = trace.input(
                        paths[k], kind.shape, kind=kind.kind, is_array=kind.is_array
                    )
            args, kwargs = arguments.structure.unflatten(leaves)
            value = trace.call(self._fun, *args, **kwargs)
        by = [leaves[k].node for k in arguments.by]
        self._warn_disconnected(arguments, trace.builder.depends_on(value.node, by))
        outputs = trace.builder.grad(value.node, by)
        names = [f"d/d {paths[k]}" for k in arguments.by]
        if self._with_value:
            outputs, names = [value.node, *outputs], ["value", *names]
        graph = trace.builder.build(outputs, names)
        return Program(
            program=_core.Program(graph),
            dtype=dtype,
            masks=tuple(k for k, kind in enumerate(inputs) if kind.kind == "b"),
            integers=tuple((k, name) for k, (name, kind) in enumerate(named) if kind.kind == "i"),
            shapes=tuple(cast(Input, kinds[k]).shape for k in arguments.by),
            dtypes=tuple(gradient_dtype(cast(Input, kinds[k]), dtype) for k in arguments.by),
            structure=self._result_structure(arguments),
            with_value=self._with_value,
        ).shortest_run()

    def _result_structure(self, arguments: Arguments) -> Structure:
        if self._is_single:
            return arguments.by_structures[0]
        return Structure("tuple", tuple(arguments.by_structures))

    def _warn_disconnected(self, arguments: Arguments, connected: list[bool]) -> None:
        paths = arguments.paths()
        lost = [paths[k] for k, is_used in zip(arguments.by, connected, strict=True) if not is_used]
        if lost:
            warn(
                f"{definition(self._fun)} does not depend on {', '.join(lost)}, so the gradient "
                "there is zero. Instead: leave it out of argnums, or check that it is used.",
                DisconnectedInputWarning,
            )

    # Inside of another traced function

    def _inline(self, arguments: Arguments) -> Any:
        """Add the derivative to the graph that is being recorded."""
        tracers = [leaf for leaf in arguments.leaves if isinstance(leaf, Tracer)]
        trace = tracers[0].trace
        for tracer in tracers:
            trace.lift(tracer)
        by = self._independent(arguments, trace)
        trace.enter_derivative(by)
        try:
            leaves = [
                Tracer(trace, leaf.node, leaf.kind, Memory(path) if leaf.shape else None)
                if isinstance(leaf, Tracer)
                else leaf
                for leaf, path in zip(arguments.leaves, arguments.paths(), strict=True)
            ]
            args, kwargs = arguments.structure.unflatten(leaves)
            value = trace.call(self._fun, *args, **kwargs)
            if trace.builder.batched(value.node):
                raise TraceError(
                    f"the derivative of {definition(self._fun)} is taken inside of the loss of a "
                    "sample, which is not supported. Instead: write that derivative out."
                )
            nodes = trace.builder.grad(value.node, [tracer.node for tracer in by])
        finally:
            trace.leave_derivative()
        gradients = [Tracer(trace, node, "f", None) for node in nodes]
        tree = self._result_structure(arguments).unflatten(gradients)
        return (trace.fresh(value), tree) if self._with_value else tree

    def _independent(self, arguments: Arguments, trace: Trace) -> list[Tracer]:
        """The tracers to differentiate by, if they and the other arguments are independent."""
        paths = arguments.paths()
        by = []
        for k in arguments.by:
            leaf = arguments.leaves[k]
            if not isinstance(leaf, Tracer) or trace.builder.constant_value(leaf.node) is not None:
                raise TraceError(
                    f"{function_name(self._fun)} is differentiated inside of a traced function by "
                    f"{paths[k]}, which is a constant there. Instead: differentiate by values "
                    "that depend on the outer function's arguments, or compute the derivative "
                    "outside."
                )
            by.append(leaf)
        for k, leaf in enumerate(arguments.leaves):
            others = [arguments.leaves[j].node for j in arguments.by if j != k]
            if isinstance(leaf, Tracer) and others and trace.depends_on(leaf, others):
                raise TraceError(
                    f"{function_name(self._fun)} is differentiated inside of a traced function, "
                    f"and its argument {paths[k]} depends on another one to differentiate by. "
                    "Instead: pass the independent values only and compute the others inside."
                )
        return by
