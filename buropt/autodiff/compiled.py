"""`Compiled`: a derivative, traced and compiled once for each set of shapes and dtypes.

The first call with new shapes traces the function, differentiates the graph and plans a program;
later calls only run the program. What may differ between calls without a new trace is the value of
every array and every float among the arguments. Python ints, booleans, strings, functions and
`None` are part of the recording: each new value is a new trace, and the function may branch on it.
Values that the function takes from outside are read, and arrays copied, when it is traced; call
`grad` again after they have changed.

Called while another function is traced, the derivative is recorded there instead.
"""

from __future__ import annotations

import sys
import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType
from typing import Any, NamedTuple, cast

from buropt import _core
from buropt.autodiff.program import Program, gradient_dtype
from buropt.autodiff.transforms import Recorded, Transform
from buropt.trace import DisconnectedInputWarning, Trace, TraceError, Tracer
from buropt.trace.arguments import Arguments, Input, Static, common_dtype
from buropt.trace.errors import definition, warn
from buropt.trace.recording import ForeignTracerError, recording_of

_MAX_PROGRAMS = 64


class CacheInfo(NamedTuple):
    """What a derivative has compiled: traces so far, programs kept, and the most it keeps."""

    n_traces: int
    n_programs: int
    max_programs: int


class Derivative:
    """What `grad` and its siblings return: a function with a cache of programs.

    It can be pickled if the function can; a copy is the derivative itself. Programs are not
    pickled, but compiled again where they are needed.
    """

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._compiled = self._compile(transform)
        self.__name__ = self.__qualname__ = transform.name
        self.__doc__ = f"The {transform.kind} of {definition(transform.fun)}."
        self.__wrapped__ = transform.fun  # inspect.signature and error messages look through

    def _compile(self, transform: Transform) -> tuple[Compiled, ...]:
        return (Compiled(transform),)

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate at the arguments."""

    def cache_info(self) -> CacheInfo:
        """How often the function was traced, and how many programs are kept."""
        infos = [one.cache_info() for one in self._compiled]
        n_traces, n_programs = (sum(column) for column in zip(*(i[:2] for i in infos), strict=True))
        return CacheInfo(n_traces, n_programs, _MAX_PROGRAMS)

    def cache_clear(self) -> None:
        """Forget all programs; the next call traces again."""
        for one in self._compiled:
            one.cache_clear()

    def __repr__(self) -> str:
        return f"<{self.__doc__.rstrip('.')}>" if self.__doc__ else super().__repr__()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """In a class body it is a method, as any function."""
        return self if instance is None else MethodType(self, instance)

    def __copy__(self) -> Derivative:
        return self

    def __deepcopy__(self, memo: Any) -> Derivative:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        check_picklable(self._transform.fun, self.__name__)
        return type(self), (self._transform,)


class Direct(_core.QuickCall, Derivative):
    """A derivative that is called with its transform's arguments and `out`."""

    def __init__(self, transform: Transform) -> None:
        Derivative.__init__(self, transform)
        (compiled,) = self._compiled
        _core.QuickCall.__init__(self, compiled.quick, compiled.evaluate)


def check_picklable(fun: Callable[..., Any], name: str) -> None:
    """Refuse to pickle a function by name that has none, which pickle would say less clearly."""
    if not isinstance(fun, FunctionType) or _pickled_by_value():
        return
    found: Any = sys.modules.get(fun.__module__)
    for part in fun.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not fun:
        raise TypeError(
            f"{name} cannot be pickled: pickle stores a function by its name, and "
            f"{definition(fun)} cannot be found by it. Define it with def at the top of a module, "
            "or pickle with cloudpickle."
        )


def _pickled_by_value() -> bool:
    """Whether a pickler is at work that stores functions themselves."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not {"cloudpickle", "dill"}.isdisjoint(module.split(".")):
            return True
        frame = frame.f_back
    return False


class Compiled:
    """The programs of one derivative, by the structure, shapes and dtypes of the arguments."""

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._lock = threading.RLock()
        self._n_traces = 0
        # The short way to the programs whose arguments are floats and arrays only.
        self.quick = _core.QuickPrograms()

    def cache_info(self) -> CacheInfo:
        """As of the derivative."""
        return CacheInfo(self._n_traces, len(self._programs), _MAX_PROGRAMS)

    def cache_clear(self) -> None:
        """As of the derivative."""
        with self._lock:
            self._programs.clear()
            self.quick.clear()

    def evaluate(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """`call` with the arguments as the user gave them."""
        return self.call(args, kwargs, out)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        """Run the program for such arguments, compiled before or now."""
        transform = self._transform
        arguments = Arguments(
            transform.fun, args, kwargs, transform.argnums(len(args)), transform.names
        )
        if not arguments.has_tracers():
            try:
                return self._run(arguments, args, kwargs, out)
            except ForeignTracerError as error:
                # The function takes a value from outside that is being traced there.
                around = [trace for trace in error.traces if trace.is_open]
                if not around:
                    raise
                trace = around[0]
        else:
            traced = next(leaf for leaf in arguments.leaves if isinstance(leaf, Tracer))
            trace = recording_of(traced)
        if out is not None:
            raise TraceError(
                f"{transform.name} is traced and cannot write into out=. Instead: use its result."
            )
        return self._record_inside(trace, arguments)

    def _run(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> Any:
        kinds = arguments.classify()
        key = (arguments.structure, kinds)
        with self._lock:
            program = self._programs.get(key)
            if program is None:
                program = self._compile(arguments, kinds)
                self._programs[key] = program
                if len(self._programs) > _MAX_PROGRAMS:
                    self._programs.popitem(last=False)
                    self.quick.clear()
            self._programs.move_to_end(key)
            if not kwargs:
                program.add_to(self.quick, args)
        leaves = [
            leaf
            for leaf, kind in zip(arguments.leaves, kinds, strict=True)
            if isinstance(kind, Input)
        ]
        return program.run(leaves, out)

    def _compile(self, arguments: Arguments, kinds: tuple[Input | Static, ...]) -> Program:
        self._n_traces += 1
        paths = arguments.paths()
        named = [
            (path, kind) for path, kind in zip(paths, kinds, strict=True) if isinstance(kind, Input)
        ]
        inputs = [kind for _, kind in named]
        axes = self._transform.axes(arguments)
        dtype = common_dtype(inputs)
        with Trace(dtype) as trace:
            leaves = list(arguments.leaves)
            for k, kind in enumerate(kinds):
                if isinstance(kind, Input):
                    shape = _without(kind.shape, axes[k])
                    leaves[k] = trace.input(
                        paths[k],
                        shape,
                        batched=axes[k] is not None,
                        kind=kind.kind,
                        is_array=kind.is_array and (axes[k] is None or len(shape) > 0),
                    )
            nodes = [
                leaf.node
                for leaf, kind in zip(leaves, kinds, strict=True)
                if isinstance(kind, Input)
            ]
            recorded = self._transform.record(trace, arguments.with_leaves(leaves), is_whole=True)
        self._warn_disconnected(trace, recorded, paths, leaves)
        graph = trace.builder.build([leaf.node for leaf in recorded.leaves], recorded.names)
        batch = recorded.batch
        input_axes = [
            axis for axis, kind in zip(axes, kinds, strict=True) if isinstance(kind, Input)
        ]
        program: Any
        if batch is None:
            program = _core.Program(graph)
        else:
            program = batch.program(
                graph,
                [
                    (path, _without(kind.shape, axis), axis is not None)
                    for (path, kind), axis in zip(named, input_axes, strict=True)
                ],
            )
        return Program(
            program=program,
            dtype=dtype,
            axes=tuple((k, axis) for k, axis in enumerate(input_axes) if axis),
            masks=tuple(k for k, kind in enumerate(inputs) if kind.kind == "b"),
            integers=trace.indices.inputs_among(nodes),
            arrays=(True,) * len(recorded.like)
            if batch is not None
            else tuple(leaf.shape != () for leaf in recorded.leaves),
            dtypes=tuple(
                dtype if k is None else gradient_dtype(cast(Input, kinds[k]), dtype)
                for k in recorded.like
            ),
            structure=recorded.structure,
            out_structure=recorded.out_structure,
            first_out=recorded.first_out,
        )

    def _warn_disconnected(
        self, trace: Trace, recorded: Recorded, paths: list[str], leaves: list[Any]
    ) -> None:
        by = [leaves[k].node for k in recorded.by]
        used = [False] * len(by)
        for value in recorded.values:
            connected = trace.builder.depends_on(value.node, by)
            used = [a or b for a, b in zip(used, connected, strict=True)]
        lost = [paths[k] for k, is_used in zip(recorded.by, used, strict=True) if not is_used]
        if lost and recorded.values:
            warn(
                f"{definition(self._transform.fun)} does not depend on {', '.join(lost)}, so the "
                f"{self._transform.result} there is zero. Instead: leave it out of argnums, or "
                "check that it is used.",
                DisconnectedInputWarning,
            )

    def _record_inside(self, trace: Trace, arguments: Arguments) -> Any:
        """Add the derivative to a recording that is under way."""
        for leaf in arguments.leaves:
            if isinstance(leaf, Tracer):
                trace.lift(leaf)  # refuses one of another recording
        recorded = self._transform.record(trace, arguments, is_whole=False)
        return recorded.structure.unflatten([trace.fresh(leaf) for leaf in recorded.leaves])


def _without(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    """The shape of a sample of an array that has them along this axis."""
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]
