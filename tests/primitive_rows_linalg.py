"""The rows of linear algebra: see primitive_rows.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from primitive_rows import Example, Row


def _with_factors(builder: Any, nodes: list[int]) -> list[int]:
    """A matrix, its factors, and the rest."""
    return [nodes[0], builder.emit("lu", [nodes[0]]), *nodes[1:]]


def _regular(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(-1, 1, shape) + 2.5 * np.eye(shape[-1])


def _positive_definite(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    factor = rng.uniform(-1, 1, shape)
    return factor @ np.swapaxes(factor, -1, -2) + 2 * np.eye(shape[-1])


def _solve(a: Any, b: Any, transpose: int = 0) -> Any:
    b = b.reshape((1,) * (a.ndim - b.ndim) + b.shape)  # NumPy 1 would take it for vectors
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transpose else a, b)


def _inv(a: Any, transpose: int = 0) -> Any:
    return np.linalg.inv(np.swapaxes(a, -1, -2) if transpose else a)


def _with_eigenvectors(builder: Any, nodes: list[int]) -> list[int]:
    return [nodes[0], builder.emit("eigh", nodes)]


def _eigenvectors(a: Any) -> Any:
    """With the largest element of each positive."""
    v = np.linalg.eigh(a)[1]
    largest = np.take_along_axis(v, np.argmax(np.abs(v), axis=-2, keepdims=True), axis=-2)
    return v * np.sign(largest)


_MATRIX = ((3, 3), _regular)
_STACK = ((2, 1, 2, 2), _regular)
_NOT_SQUARE = Example(((3, 4),))

LINALG_ROWS: dict[str, Row] = {
    "solve": Row(
        _solve,
        (
            Example((_MATRIX, (3, 2))),
            Example((_MATRIX, (3, 1)), {"transpose": 1}),
            Example((_MATRIX, (3, 2)), {"transpose": 1}),
            Example((((12, 12), _regular), (12, 1))),
            Example((((2, 3, 3), _regular), (3, 2))),
            Example((_MATRIX, (2, 3, 1)), {"transpose": 1}),
            Example((_STACK, (3, 2, 2))),
            Example((((0, 0), _regular), (0, 2))),
        ),
        (
            (Example((_MATRIX, (2, 2))), r"solve: sizes differ: a is \(3, 3\), b is \(2, 2\)"),
            (Example((_MATRIX, (3,))), r"solve: an array of shape \(3,\) is not a matrix"),
            (Example((((2, 3, 3), _regular), (4, 3, 1))), "do not broadcast together"),
        ),
        operands=_with_factors,
        ulp=16,
    ),
    "inv": Row(
        _inv,
        (
            Example((_MATRIX,)),
            Example((_MATRIX,), {"transpose": 1}),
            Example((_STACK,)),
            Example((_STACK,), {"transpose": 1}),
            Example((((1, 1), _regular),)),
            Example((((0, 0), _regular),)),
        ),
        ((_NOT_SQUARE, r"lu: the last two axes of an array of shape \(3, 4\) differ"),),
        operands=_with_factors,
        ulp=16,
    ),
    "det": Row(
        np.linalg.det,
        (
            Example((_MATRIX,)),
            Example((_STACK,)),
            Example((((12, 12), _regular),)),
            Example((((1, 1), _regular),)),
            Example((((0, 0), _regular),)),
        ),
        ((_NOT_SQUARE, "lu"),),
        operands=_with_factors,
        ulp=16,
    ),
    "logabsdet": Row(
        lambda a: np.linalg.slogdet(a)[1],
        (Example((_MATRIX,)), Example((_STACK,)), Example((((0, 0), _regular),))),
        ((_NOT_SQUARE, "lu"),),
        operands=_with_factors,
        ulp=16,
    ),
    "sign_det": Row(
        lambda a: np.linalg.slogdet(a)[0],
        (Example(((3, 3),)), Example(((5, 2, 2),))),
        ((_NOT_SQUARE, "lu"),),
        constant=True,
        operands=lambda builder, nodes: [builder.emit("lu", nodes)],
    ),
    "eigvalsh": Row(
        np.linalg.eigvalsh,
        (Example((_MATRIX,)), Example((_STACK,)), Example((((12, 12), _regular),))),
        ((_NOT_SQUARE, "eigh"),),
        operands=_with_eigenvectors,
        ulp=64,
    ),
    "eigvecsh": Row(
        _eigenvectors,
        (Example((_MATRIX,)), Example((_STACK,)), Example((((5, 5), _regular),))),
        ((_NOT_SQUARE, "eigh"),),
        operands=_with_eigenvectors,
        ulp=1000,
    ),
    "cholesky": Row(
        np.linalg.cholesky,
        (
            Example((((3, 3), _positive_definite),)),
            Example((((12, 12), _positive_definite),)),
            Example((((2, 1, 2, 2), _positive_definite),)),
            Example((((0, 0), _positive_definite),)),
        ),
        ((_NOT_SQUARE, "cholesky"),),
        ulp=16,
    ),
}
