"""What each derivative adds to a recording: `Transform` and, but for Jacobians, its kinds.

A transform calls the function on copies of the values to differentiate by, variables that nothing
else depends on. So it does not matter what else the function uses of the outside, nor how the
values came about.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from buropt import _core
from buropt.trace import Trace, TraceError, Tracer
from buropt.trace.arguments import Arguments, parameter_names
from buropt.trace.base import Memory
from buropt.trace.errors import definition, function_name
from buropt.tree import Structure

LEAF = Structure("leaf")


class Batch(Protocol):
    """What becomes of batched leaves."""

    def program(
        self, graph: _core.Graph, inputs: Sequence[tuple[str, tuple[int, ...], bool]]
    ) -> Any:
        """Something that gives the results for the inputs: name, shape, and whether batched."""


@dataclass(frozen=True)
class Recorded:
    """What a transform has recorded.

    Attributes
    ----------
    leaves : list of Tracer
        The results, in order.
    structure : Structure
        Their containers.
    names : list of str
        Their names in the graph.
    like : list of int or None
        For each result the leaf of the arguments whose dtype it takes; None for the graph's.
    by : list of int
        The leaves of the arguments that were differentiated by.
    values : list of Tracer
        What was differentiated.
    first_out : int
        The results from here on are what an `out` receives.
    out_structure : Structure or None
        The containers of `out`.
    batch : Batch or None
        Given if the leaves are batched.
    """

    leaves: list[Tracer]
    structure: Structure
    names: list[str]
    like: list[int | None]
    by: list[int]
    values: list[Tracer]
    first_out: int = 0
    out_structure: Structure | None = None
    batch: Batch | None = None


class Transform(ABC):
    """A kind of derivative of one function."""

    kind: str
    result = "derivative"

    def __init__(self, fun: Callable[..., Any]) -> None:
        if not callable(fun):
            raise TypeError(f"the first argument must be a function, got {fun!r}")
        self.fun = fun

    @property
    def name(self) -> str:
        """Such as ``grad(loss)``."""
        return f"{self.kind}({function_name(self.fun)})"

    def names(self) -> list[str]:
        """What error messages call the arguments."""
        return parameter_names(self.fun)

    @abstractmethod
    def argnums(self, n_args: int) -> tuple[int, ...]:
        """The positional arguments that must hold real numbers."""

    def axes(self, arguments: Arguments) -> list[int | None]:
        """By leaf, the axis along which the samples of a batch lie, if there is one."""
        return [None] * len(arguments.leaves)

    @abstractmethod
    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """Record the function and the derivative; `is_whole`: and nothing else, on inputs."""


class ByArgument(Transform):
    """A derivative by one or several of a function's arguments."""

    def __init__(self, fun: Callable[..., Any], argnums: int | Sequence[int]) -> None:
        super().__init__(fun)
        self.is_single = not isinstance(argnums, Sequence)
        numbers: Any = [argnums] if self.is_single else argnums
        if any(isinstance(number, bool) for number in numbers):
            raise TypeError(f"argnums must be an int or a sequence of ints, got {argnums!r}")
        self._argnums = tuple(operator.index(number) for number in numbers)

    def argnums(self, n_args: int) -> tuple[int, ...]:
        """Those that were chosen."""
        return self._argnums

    def by_structure(self, arguments: Arguments) -> Structure:
        """The containers of a gradient."""
        if self.is_single:
            return arguments.by_structures[0]
        return Structure("tuple", tuple(arguments.by_structures))


class Gradient(ByArgument):
    """`grad` and `value_and_grad`."""

    result = "gradient"

    def __init__(
        self,
        fun: Callable[..., Any],
        argnums: int | Sequence[int],
        with_value: bool,
        has_aux: bool = False,
    ) -> None:
        super().__init__(fun, argnums)
        self.kind = "value_and_grad" if with_value else "grad"
        self._with_value = with_value
        self._has_aux = has_aux

    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """One sweep in reverse."""
        copies = Copies(trace, arguments, arguments.by, is_whole)
        if self._has_aux:
            return self._record_pair(trace, arguments, copies)
        value = trace.call(self.fun, *copies.args, **copies.kwargs)
        leaves = copies.gradient(value)
        names = [f"d/d {arguments.paths()[k]}" for k in arguments.by]
        like: list[int | None] = list(arguments.by)
        structure = tree = self.by_structure(arguments)
        if self._with_value:
            leaves, names, like = [value, *leaves], ["value", *names], [None, *like]
            structure = Structure("tuple", (LEAF, tree))
        return Recorded(
            leaves, structure, names, like, arguments.by, [value], int(self._with_value), tree
        )

    def _record_pair(self, trace: Trace, arguments: Arguments, copies: Copies) -> Recorded:
        """Of a function that returns its value and something else, which is passed on."""
        (value, *aux), pair = trace.call_nested(self.fun, *copies.args, **copies.kwargs)
        is_pair = pair.kind == "tuple" and len(pair.children) == 2 and pair.children[0] == LEAF
        if not is_pair or value.shape != ():
            raise TraceError(
                f"{definition(self.fun)} must return a pair, one number and what else there is, "
                f"for {self.kind}(..., has_aux=True). Instead: return value, aux."
            )
        gradient, tree = copies.gradient(value), self.by_structure(arguments)
        paths = arguments.paths()
        names = [f"d/d {paths[k]}" for k in arguments.by]
        others = pair.children[1].paths("aux")
        like: list[int | None] = list(arguments.by)
        if self._with_value:
            leaves, names = [value, *aux, *gradient], ["value", *others, *names]
            like = [*[None] * (1 + len(aux)), *like]
            structure = Structure("tuple", (pair, tree))
        else:
            leaves, names = [*gradient, *aux], [*names, *others]
            like += [None] * len(aux)
            structure = Structure("tuple", (tree, pair.children[1]))
        return Recorded(leaves, structure, names, like, arguments.by, [value])


class HessianVector(Transform):
    """`hvp`: arguments are x, v, and the rest."""

    kind = "hvp"
    result = "product"

    def names(self) -> list[str]:
        """The function's own, with v in the second place."""
        first, *rest = super().names() or ["x"]
        return [first, "v", *rest]

    def argnums(self, n_args: int) -> tuple[int, ...]:
        """X and v."""
        if n_args < 2:
            raise TypeError(f"{self.name} takes x and v, then the function's other arguments")
        return 0, 1

    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """Forward over reverse: the gradient's derivative along v."""
        xs, vs = arguments.leaves_of(0), arguments.leaves_of(1)
        check_alike(self.name, arguments, 0, 1)
        copies = Copies(trace, arguments, xs, is_whole)
        x, _, *rest = copies.args
        value = trace.call(self.fun, x, *rest, **copies.kwargs)
        products = copies.pushed(copies.gradient(value), [arguments.leaves[k] for k in vs])
        names = [f"hvp {arguments.paths()[k]}" for k in xs]
        structure = arguments.by_structures[0]
        return Recorded(products, structure, names, list(xs), xs, [value], 0, structure)


class Value(Transform):
    """The function itself; all arguments are what another transform differentiates by."""

    kind = "value"

    def argnums(self, n_args: int) -> tuple[int, ...]:
        """All."""
        return tuple(range(n_args))

    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """The function's nodes alone."""
        args, kwargs = arguments.structure.unflatten(arguments.leaves)
        values, structure = trace.call_nested(self.fun, *args, **kwargs)
        names = structure.paths("value")
        return Recorded(values, structure, names, [None] * len(values), arguments.by, values)


class Forward(Value):
    """`jvp`: arguments are the primals, then as many tangents."""

    kind = "jvp"
    result = "tangent"

    def argnums(self, n_args: int) -> tuple[int, ...]:
        """All; there are as many tangents as primals."""
        self._n = n_args // 2
        return super().argnums(n_args)

    def names(self) -> list[str]:
        """The function's own, twice."""
        primals = super().names()[: self._n]
        primals += [f"primals[{k}]" for k in range(len(primals), self._n)]
        return [*primals, *(f"the tangent of {name}" for name in primals)]

    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """The function's nodes, then their tangents."""
        n = len(arguments.by_structures) // 2
        for k in range(n):
            check_alike(self.name, arguments, k, n + k)
        pairs = [(arguments.leaves_of(k), arguments.leaves_of(n + k)) for k in range(n)]
        by = [k for primal, _ in pairs for k in primal]
        copies = Copies(trace, arguments, by, is_whole)
        values, structure = trace.call_nested(self.fun, *copies.args[:n])
        tangents = copies.pushed(
            values, [arguments.leaves[k] for _, tangent in pairs for k in tangent]
        )
        names = structure.paths("value") + structure.paths("tangent")
        both = Structure("tuple", (structure, structure))
        return Recorded([*values, *tangents], both, names, [None] * len(names), by, values)


class Reverse(Value):
    """The function that `vjp` returns: arguments are the cotangent, then the primals."""

    kind = "vjp"
    result = "cotangent"

    def names(self) -> list[str]:
        """The function's own after the cotangent."""
        return ["cotangent", *super().names()]

    def record(self, trace: Trace, arguments: Arguments, *, is_whole: bool) -> Recorded:
        """One sweep in reverse from the cotangent."""
        given = arguments.leaves_of(0)
        by = [k for k in arguments.by if k not in given]
        copies = Copies(trace, arguments, by, is_whole)
        values, structure = trace.call_nested(self.fun, *copies.args[1:])
        cotangents = [arguments.leaves[k] for k in given]
        check_cotangent(self.fun, structure, values, arguments.by_structures[0], cotangents)
        leaves = copies.pulled(values, cotangents)
        names = [f"d/d {arguments.paths()[k]}" for k in by]
        result = Structure("tuple", tuple(arguments.by_structures[1:]))
        return Recorded(leaves, result, names, list(by), by, values)


class Copies:
    """A function's arguments with copies of the leaves to differentiate by.

    Attributes
    ----------
    args, kwargs
        What to call the function with.
    variables : list of Tracer
        The copies.
    """

    def __init__(
        self, trace: Trace, arguments: Arguments, by: Sequence[int], is_whole: bool
    ) -> None:
        self._trace = trace
        leaves = list(arguments.leaves)
        paths = arguments.paths()
        for k, leaf in enumerate(leaves):
            if k in by and not is_whole:
                leaves[k] = self._copy(leaf, paths[k])
            elif isinstance(leaf, Tracer) and not is_whole:
                leaves[k] = Tracer(
                    trace, leaf.node, leaf.kind, Memory(paths[k]) if leaf.shape else None
                )
        self.variables: list[Tracer] = [leaves[k] for k in by]
        self._nodes = [leaves[k].node for k in by]
        self.args, self.kwargs = arguments.structure.unflatten(leaves)

    def _copy(self, leaf: Any, path: str) -> Tracer:
        original = self._trace.lift(leaf)
        if original.is_bool:
            raise TraceError(
                f"the argument {path} is a mask; a derivative needs real numbers. Instead: "
                f"1.0 * {path}."
            )
        copy = self._trace.emit("independent", (original,))
        if copy.shape:
            copy.memory = Memory(path)
        return copy

    def gradient(self, value: Tracer) -> list[Tracer]:
        """The gradient of a scalar by the copies."""
        return self.pulled([value], [1.0])

    def pulled(self, values: Sequence[Tracer], cotangents: Sequence[Any]) -> list[Tracer]:
        """The cotangents of the copies."""
        given = [self._trace.lift(cotangent).node for cotangent in cotangents]
        nodes = self._trace.builder.vjp(
            [value.node for value in values], given, self._nodes, per_sample=True
        )
        return [Tracer(self._trace, node, "f", None) for node in nodes]

    def pushed(self, values: Sequence[Tracer], tangents: Sequence[Any]) -> list[Tracer]:
        """The tangents of the values."""
        given = [self._trace.lift(tangent).node for tangent in tangents]
        nodes = self._trace.builder.jvp([value.node for value in values], self._nodes, given)
        return [Tracer(self._trace, node, "f", None) for node in nodes]


def check_alike(name: str, arguments: Arguments, primal: int, tangent: int) -> None:
    """Refuse a tangent that is not nested like its primal or has other shapes."""
    paths = arguments.paths()
    pairs = arguments.leaves_of(primal), arguments.leaves_of(tangent)
    if arguments.by_structures[primal] != arguments.by_structures[tangent]:
        wanted, given = (", ".join(paths[k] for k in leaves) or "nothing" for leaves in pairs)
        raise TraceError(
            f"{name}: a tangent must be nested like its primal, with one array for each of "
            f"{wanted}; got {given}."
        )
    for k, j in zip(*pairs, strict=True):
        shape, given_shape = _shape(arguments.leaves[k]), _shape(arguments.leaves[j])
        if shape != given_shape:
            raise TraceError(
                f"{name}: {paths[j]} must have the shape {shape} of {paths[k]}, got {given_shape}."
            )


def check_cotangent(
    fun: Callable[..., Any],
    structure: Structure,
    values: Sequence[Tracer],
    given: Structure,
    cotangents: Sequence[Any],
) -> None:
    """Refuse a cotangent that is not like the function's result."""
    if given != structure:
        raise TraceError(
            f"the cotangent must be nested like the result of {definition(fun)}, with one array "
            f"for each of {', '.join(structure.paths('result'))}."
        )
    for value, cotangent, path in zip(
        values, cotangents, structure.paths("cotangent"), strict=True
    ):
        if _shape(cotangent) != value.shape:
            raise TraceError(
                f"{path} must have the shape {value.shape} of the result of {definition(fun)}, "
                f"got {_shape(cotangent)}."
            )


def _shape(leaf: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = getattr(leaf, "shape", ())
    return shape
