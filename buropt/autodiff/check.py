"""`check_grads`: compares derivatives with differences of the plain NumPy function.

The reference along a direction is a complex step where the function runs on complex numbers and
that agrees with central differences; otherwise it is central differences extrapolated to step 0.
Only when a direction disagrees are single entries looked at, to name the worst one.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from buropt.autodiff.derivative import grad, jvp, value_and_grad
from buropt.autodiff.differences import Differences
from buropt.trace import DisconnectedInputWarning
from buropt.trace.arguments import Arguments, Input
from buropt.trace.errors import definition
from buropt.tree import flatten_leaves

Vector: TypeAlias = NDArray[Any]
Mode: TypeAlias = Literal["rev", "fwd"]
Form: TypeAlias = Callable[[Vector], float]  # the derivative along any direction

_MODES = {"rev": "reverse", "fwd": "forward"}
_DIRECTIONS = 2
_SINGLY = 200  # so many entries are looked at one by one; of more, the worse half first


class GradientError(AssertionError):
    """A derivative differs from differences of the function.

    Attributes
    ----------
    name : str
        The entry of the arguments that is furthest off, such as ``params['w'][2, 1]``; ``value``
        if the value of the function differs already.
    expected, got : float
        The entry by differences, and as computed.
    relative_error : float
    order : int
        The order of the derivative, 0 for the value.
    """

    def __init__(self, message: str, worst: tuple[str, float, float, float, int]) -> None:
        super().__init__(message)
        self.name, self.expected, self.got, self.relative_error, self.order = worst


def check_grads(
    f: Callable[..., Any],
    x: Any,
    order: int = 2,
    *,
    args: Sequence[Any] = (),
    argnums: int | Sequence[int] = 0,
    modes: Sequence[Mode] = ("rev", "fwd"),
    eps: float | None = None,
    rtol: float | None = None,
    seed: int = 0,
) -> None:
    """Compare the derivatives of a function with differences of its values.

    ::

        bo.check_grads(loss, {"w": np.ones((3, 2)), "b": 0.5}, args=(data,))

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` in NumPy, as for `grad`; it may also return an array or nested arrays, which
        are then contracted with random weights.
    x : array or nested dict, list, tuple of arrays
        Where to look. At kinks no difference means anything; choose another point.
    order : int
        Up to which order: of order 2 and more, derivatives of derivatives are compared with
        differences of derivatives.
    args : sequence
        Further arguments of `f`.
    argnums : int or sequence of int
        The arguments among ``(x, *args)`` to differentiate by.
    modes : sequence of "rev" and "fwd"
        Reverse and forward mode; of higher order every combination is compared.
    eps : float, optional
        The step of plain central differences, relative to the entries of x. Left out: a complex
        step, or extrapolated differences that choose their steps.
    rtol : float, optional
        Largest relative difference along a random direction. Left out: 1e-7 in float64 and 1e-3
        in float32; with `eps` given, at least 1e-5.
    seed : int
        Of the random directions; the same seed compares the same numbers.

    Raises
    ------
    GradientError
        (an AssertionError) If a derivative is off; it names the entry that is furthest off.
    TraceError, TypeError, ValueError
        As for `grad`; and ValueError if `f` is not finite at x.
    """
    if order < 1:
        raise ValueError(f"order must be at least 1, got {order}")
    if not modes or not set(modes) <= _MODES.keys():
        raise ValueError(f"modes must be among 'rev' and 'fwd', got {modes!r}")
    point = _Point(f, (x, *args), argnums)
    if rtol is None:
        rtol = 1e-3 if point.is_single else 1e-7 if eps is None else 1e-5
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DisconnectedInputWarning)
        _Check(f, point, tuple(dict.fromkeys(modes)), eps, rtol, seed).run(order)


class _Point:
    """The arguments as one float64 vector, and functions of vectors as functions of arguments."""

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], argnums: int | Sequence[int]
    ) -> None:
        numbers = [argnums] if isinstance(argnums, int) else list(argnums)
        arguments = Arguments(f, args, {}, tuple(numbers))
        kinds = arguments.classify()
        self._args = args
        self._numbers = [number % len(args) for number in numbers]
        self._structures = arguments.by_structures
        self._leaves = [arguments.leaves[k] for k in arguments.by]
        self._paths = [arguments.paths()[k] for k in arguments.by]
        floats = [cast(Input, kinds[k]).dtype for k in arguments.by]
        self.is_single = bool(floats) and all(dtype == np.float32 for dtype in floats)
        self.vector = np.concatenate(
            [np.ravel(np.asarray(leaf, np.float64)) for leaf in self._leaves] or [np.zeros(0)]
        )
        if not np.isfinite(self.vector).all():
            raise ValueError("x has entries that are not finite; check at another point")

    def parts(self, vector: Vector | None = None, *, own_dtype: bool = False) -> tuple[Any, ...]:
        """The differentiated arguments, at the point itself or from another vector."""
        leaves: list[Any] = []
        start = 0
        for leaf in self._leaves:
            size = np.size(leaf)
            part = (self.vector if vector is None else vector)[start : start + size]
            array = part.reshape(np.shape(leaf))
            if own_dtype and getattr(leaf, "dtype", None) == np.float32:
                array = array.astype(np.float32)
            # A number stays a number: in-place operators tell it from an array.
            leaves.append(array if isinstance(leaf, np.ndarray) else array[()])
            start += size
        rest = iter(leaves)
        return tuple(
            structure.unflatten(list(itertools.islice(rest, structure.n_leaves)))
            for structure in self._structures
        )

    def arguments(self, parts: Sequence[Any]) -> list[Any]:
        """All arguments of f, with these in place of the differentiated ones."""
        args = list(self._args)
        for number, part in zip(self._numbers, parts, strict=True):
            args[number] = part
        return args

    def flatten(self, parts: Any) -> Vector:
        """The vector of a gradient by the differentiated arguments."""
        leaves, _ = flatten_leaves(parts)
        return np.concatenate(
            [np.ravel(np.asarray(leaf, np.float64)) for leaf in leaves] or [np.zeros(0)]
        )

    def entry(self, number: int) -> str:
        """The name of an entry of the vector."""
        for leaf, path in zip(self._leaves, self._paths, strict=True):
            if number < np.size(leaf):
                index = np.unravel_index(number, np.shape(leaf))
                return path + (f"[{', '.join(map(str, index))}]" if index else "")
            number -= np.size(leaf)
        raise IndexError(number)


class _Contraction:
    """A function's result as one number: itself, or a weighted sum of all its entries."""

    def __init__(self, f: Callable[..., Any], point: _Point, rng: np.random.Generator) -> None:
        self._f = f
        self._point = point
        leaves, _ = flatten_leaves(f(*point.arguments(point.parts())))
        shapes = [np.shape(leaf) for leaf in leaves]
        self._weights = [rng.standard_normal(shape) for shape in shapes] if shapes != [()] else None

    def __call__(self, *parts: Any) -> Any:
        result = self._f(*self._point.arguments(parts))
        leaves, _ = flatten_leaves(result)
        if self._weights is None:
            return leaves[0]
        terms = [np.sum(w * leaf) for w, leaf in zip(self._weights, leaves, strict=True)]
        return sum(terms[1:], terms[0]) if terms else 0.0


class _Check:
    """One call of `check_grads`."""

    def __init__(
        self,
        f: Callable[..., Any],
        point: _Point,
        modes: tuple[Mode, ...],
        eps: float | None,
        rtol: float,
        seed: int,
    ) -> None:
        self._name = definition(f)
        self._point = point
        self._modes = modes
        self._eps = eps
        self._rtol = rtol
        self._rng = np.random.default_rng(seed)
        self._total = _Contraction(f, point, self._rng)

    def run(self, order: int) -> None:
        """Compare the value, then the derivatives up to the given order."""

        def plain(vector: Vector) -> Any:
            return self._total(*self._point.parts(vector))

        value = plain(self._point.vector)
        if not np.isfinite(value):
            raise ValueError(f"{self._name} is {value} at x. Instead: check at another point.")
        self._check_value(float(value))
        reference = Differences(plain, self._point.vector, self._eps, try_complex=True)
        self._compare(self._total, reference, order, ())

    def _check_value(self, expected: float) -> None:
        parts = self._point.parts(own_dtype=True)
        got = float(value_and_grad(self._total, tuple(range(len(parts))))(*parts)[0])
        error = _relative(expected, got)
        if error > self._rtol and not abs(got - expected) < 1e-300:
            raise GradientError(
                f"the value of {self._name} as traced is {got!r}, but called with arrays it "
                f"returns {expected!r} (relative error {error:.1e}). Instead: look for what it "
                "does differently while it is traced, and for what it reads from outside.",
                ("value", expected, got, error, 0),
            )

    def _compare(
        self,
        function: Callable[..., Any],
        reference: Differences,
        order: int,
        outer: tuple[Mode, ...],
    ) -> None:
        """Compare the first derivatives of `function`, then go on with them as functions."""
        for mode in self._modes:
            along = self._derivative(function, mode)
            for _ in range(_DIRECTIONS):
                self._check_direction(along, reference, self._direction(), (*outer, mode))
            if order > 1:
                direction = self._direction()
                derived = self._along(function, mode, direction)
                if outer:  # differences of differences of differences are worth little
                    differences = self._differences_of(derived)
                else:
                    differences = reference.derived(direction)
                self._compare(derived, differences, order - 1, (*outer, mode))

    def _differences_of(self, function: Callable[..., Any]) -> Differences:
        def of_vector(vector: Vector) -> Any:
            return function(*self._point.parts(vector))

        return Differences(of_vector, self._point.vector, self._eps)

    def _derivative(self, function: Callable[..., Any], mode: Mode) -> Form:
        """The computed derivative along any direction, in the dtype of the arguments."""
        parts = self._point.parts(own_dtype=True)
        if mode == "fwd":
            push = jvp(function)
            return lambda d: float(push(parts, self._point.parts(d, own_dtype=True))[1])
        gradient = grad(function, tuple(range(len(parts))))(*parts)
        vector = self._point.flatten(gradient)
        return lambda d: float(vector @ d)

    def _along(self, function: Callable[..., Any], mode: Mode, direction: Vector) -> Any:
        """The derivative along a fixed direction as a function, to be differentiated again."""
        tangents = self._point.parts(direction)
        if mode == "fwd":
            push = jvp(function)
            return lambda *parts: push(parts, tangents)[1]
        gradient = grad(function, tuple(range(len(tangents))))
        weights, _ = flatten_leaves(tangents)

        def product(*parts: Any) -> Any:
            leaves, _ = flatten_leaves(gradient(*parts))
            return sum(np.sum(w * leaf) for w, leaf in zip(weights, leaves, strict=True))

        return product

    def _direction(self, chosen: slice | None = None) -> Vector:
        """A random direction in proportion to the entries of x, or some of its entries."""
        scale = self._scale()
        direction = self._rng.standard_normal(scale.size) * scale
        if chosen is None:
            return direction
        part = np.zeros_like(direction)
        part[chosen] = direction[chosen]
        return part

    def _scale(self) -> Vector:
        scale: Vector = np.maximum(np.abs(self._point.vector), 0.1)
        return scale

    def _check_direction(
        self, along: Form, reference: Differences, direction: Vector, modes: tuple[Mode, ...]
    ) -> None:
        expected, uncertainty, _ = reference.along(direction)
        got = along(direction)
        tolerance = self._rtol * max(abs(expected), abs(got)) + uncertainty
        if abs(expected - got) <= tolerance:
            return
        name = "along a random direction"
        worst = self._worst_entry(along, reference)
        if worst is not None:
            entry, expected, got = worst
            name = f"by {entry}"
        error = _relative(expected, got)
        order = len(modes)
        how = " over ".join(_MODES[mode] for mode in reversed(modes))
        raise GradientError(
            f"the derivative of {self._name} of order {order} ({how} mode) is off, most of all "
            f"{name}: expected {expected!r} by {reference.method}, got {got!r} (relative error "
            f"{error:.1e}). Instead: check at another point if this is a kink; otherwise look for "
            "what the function does differently while it is traced.",
            (name.removeprefix("by "), expected, got, error, order),
        )

    def _worst_entry(self, along: Form, reference: Differences) -> tuple[str, float, float] | None:
        """The entry of x that is furthest off, and its derivative: expected and computed."""
        low, high = 0, self._point.vector.size
        while high - low > _SINGLY:  # of many entries, follow the half that is off by more
            middle = (low + high) // 2
            halves = []
            for part in (slice(low, middle), slice(middle, high)):
                direction = self._direction(part)
                halves.append(abs(reference.along(direction).value - along(direction)))
            low, high = (low, middle) if halves[0] >= halves[1] else (middle, high)
        scale = self._scale()
        entries = []
        for k in range(low, high):
            direction = np.zeros_like(scale)
            direction[k] = scale[k]
            expected, uncertainty, _ = reference.along(direction)
            entries.append((expected, along(direction), uncertainty))
        expected, got, uncertainty = np.array(entries).T
        typical = np.mean(np.abs(expected)) + 1e-300
        excess = np.abs(expected - got) - uncertainty
        error = excess / (np.maximum(np.abs(expected), np.abs(got)) + typical)
        worst = int(np.nanargmax(np.where(np.isnan(error), np.inf, error)))
        if error[worst] <= 0:
            return None
        by = scale[low + worst]
        name = self._point.entry(low + worst)
        return name, float(expected[worst] / by), float(got[worst] / by)


def _relative(expected: float, got: float) -> float:
    return abs(expected - got) / max(abs(expected), abs(got), 1e-300)
