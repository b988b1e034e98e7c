"""What the tests of tracing share: run a traced function, compare values and slopes with NumPy."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import settings
from numpy.typing import NDArray

from buropt import _core
from buropt.trace import Trace
from buropt.trace.kinds import kind_of

# For properties whose every example traces a function several times.
few = settings(max_examples=25)


def rooms() -> list[ModuleType]:
    """The files test_functions_*.py.

    Each has a table VALUES: the name of a NumPy function that can be traced, and a function of a
    (2, 3) matrix and two (3,) vectors, the second positive, that uses it.
    """
    paths = sorted(Path(__file__).parent.glob("test_functions_*.py"))
    return [importlib.import_module(path.stem) for path in paths]


def evaluate(function: Callable[..., Any], *values: Any, dtype: Any = np.float64) -> Any:
    """Trace a function and run the graph: an array like the result, or a list of them.

    Floats, integers and masks are inputs of these kinds.
    """
    arrays = [np.asarray(value) for value in values]
    with Trace(dtype) as trace:
        inputs = [
            trace.input(f"x{i}", array.shape, kind=kind_of(array.dtype))
            for i, array in enumerate(arrays)
        ]
        results = function(*inputs)
        several = isinstance(results, tuple | list)
        parts = [trace.lift(part) for part in (results if several else [results])]
    nodes = [part.node for part in parts] + [one.node for one in inputs]
    graph = trace.builder.build(nodes, [f"y{i}" for i in range(len(nodes))])
    numbers = [array.astype(dtype) for array in arrays]
    outputs = _core.Program(graph)(*numbers)
    got = [np.asarray(y).astype(part.dtype) for y, part in zip(outputs, parts, strict=False)]
    return got if several else got[0]


def assert_like_numpy(
    function: Callable[..., Any], *values: Any, rtol: float = 1e-13, atol: float = 1e-300
) -> None:
    """The traced function gives NumPy's values, shapes and kinds of dtype."""
    results, references = evaluate(function, *values), function(*values)
    if not isinstance(references, tuple | list):
        results, references = [results], [references]
    assert len(results) == len(references)
    for got, reference in zip(results, references, strict=True):
        expected = np.asarray(reference)
        assert got.shape == expected.shape
        assert got.dtype.kind == expected.dtype.kind
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def numbers(shape: int | tuple[int, ...], seed: int = 0) -> NDArray[np.float64]:
    """Normal numbers, of both signs and none of them 0."""
    return np.random.default_rng(seed).normal(size=shape)


def check(function: Callable[..., Any], *values: NDArray[np.float64]) -> None:
    """The same values for floats, integers and masks, and the slopes."""
    assert_like_numpy(function, *values)
    assert_slopes(function, *values)
    assert_like_numpy(function, *[np.trunc(10 * value).astype(int) for value in values])
    assert_like_numpy(function, *[value > 0 for value in values])


def assert_slopes(
    function: Callable[..., Any], *values: Any, rtol: float = 1e-9, atol: float = 1e-9
) -> None:
    """The gradient agrees with a complex step of NumPy's function.

    The function must be analytic, and every part of it take complex numbers; of the values, floats
    are varied.
    """
    arrays = [np.asarray(value) for value in values]
    varied = [i for i, array in enumerate(arrays) if array.dtype.kind == "f"]
    rng = np.random.default_rng(len(arrays))
    directions = [rng.normal(size=arrays[i].shape) for i in varied]
    stepped: list[Any] = list(arrays)
    for i, direction in zip(varied, directions, strict=True):
        stepped[i] = arrays[i] + 1e-200j * direction
    result = function(*stepped)
    references = result if isinstance(result, tuple | list) else [result]
    derivatives = [np.imag(reference) / 1e-200 for reference in references]
    weights = [rng.normal(size=np.shape(derivative)) for derivative in derivatives]

    with Trace() as trace:
        inputs = [
            trace.input(f"x{i}", array.shape, kind=kind_of(array.dtype))
            for i, array in enumerate(arrays)
        ]
        results = function(*inputs)
        parts = results if isinstance(results, tuple | list) else [results]
        total = trace.constant(0.0)
        for weight, part in zip(weights, parts, strict=True):
            total = total + np.sum(weight * part)
    gradients = trace.builder.grad(total.node, [inputs[i].node for i in varied])
    nodes = gradients + [one.node for one in inputs]
    graph = trace.builder.build(nodes, [f"y{i}" for i in range(len(nodes))])
    outputs = _core.Program(graph)(*[array.astype(float) for array in arrays])
    got = sum(
        np.sum(gradient * direction)
        for gradient, direction in zip(outputs, directions, strict=False)
    )
    expected = sum(
        np.sum(weight * derivative) for weight, derivative in zip(weights, derivatives, strict=True)
    )
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
