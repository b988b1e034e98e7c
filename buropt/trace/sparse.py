"""`SparseRow`: one row of a CSR matrix while a function is recorded.

A row that is known by its non-zeros only supports products with dense vectors and matrices; that
is what keeps the cost of a sample at O(nnz).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from buropt.trace.base import Recording
from buropt.trace.errors import UnsupportedAttributeError, UnsupportedOpError, location


class SparseRow:
    """A sparse sample of shape (n_features,): only its products `a @ x` and `x @ a` exist.

    Attributes
    ----------
    recording : Recording
        What it belongs to.
    node : int
        The id of the node in the recording's builder.
    name : str
        What error messages call it.
    shape : tuple of int
        `(n_features,)`.
    """

    __slots__ = ("name", "node", "recording", "shape")
    __array_priority__ = 2000.0
    ndim = 1

    def __init__(self, trace: Recording, node: int, name: str, n_features: int) -> None:
        self.recording = trace
        self.node = node
        self.name = name
        self.shape = (n_features,)

    @property
    def size(self) -> int:
        """The number of features."""
        return self.shape[0]

    @property
    def T(self) -> SparseRow:
        """Itself: a row has one axis."""
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"SparseRow({self.name}, n_features={self.shape[0]})"

    def __matmul__(self, other: Any) -> Any:
        return self._product(other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._product(other, other_first=True)

    def dot(self, other: Any) -> Any:
        """`self @ other`."""
        return self._product(other)

    def _product(self, other: Any, other_first: bool = False) -> Any:
        """`self @ other`, or `other @ self`; for a vector they are the same."""
        if isinstance(other, SparseRow):
            self._refuse("the product of two sparse rows")
        dense = self.recording.lift(other)
        if other_first and dense.ndim == 2:
            dense = dense.T
        if dense.ndim not in (1, 2):
            self._refuse(f"a product with an array of shape {dense.shape}")
        return self.recording.emit("sparse_dot", (self, dense))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not kwargs:
            left, right = inputs
            return self._product(right) if left is self else self._product(left, other_first=True)
        self._refuse(f"np.{ufunc.__name__}")

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if func in (np.dot, np.inner, np.vdot) and len(args) == 2 and not kwargs:
            left, right = args
            other_first = left is not self
            if func is np.inner:  # its second operand is contracted over the last axis
                return self._product(left if other_first else right, other_first=True)
            return self._product(left if other_first else right, other_first)
        if func in (np.shape, np.ndim, np.size) and len(args) == 1:
            return {np.shape: self.shape, np.ndim: 1, np.size: self.size}[func]
        self._refuse(f"np.{func.__name__}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self._refuse("a conversion to a NumPy array")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"sparse rows have no attribute {name!r}")
        raise UnsupportedAttributeError(self._text(f"the attribute {name}"))

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedOpError(self._text(what))

    def _text(self, what: str) -> str:
        return (
            f"{self.name} is a sparse row, and sparse rows only support products with x; "
            f"{what} cannot be traced. {location(self.recording.name)} Instead: {self.name} @ x, "
            "or pass the data as a dense array."
        )


def _refusing(what: str) -> Callable[..., NoReturn]:
    def method(self: SparseRow, *operands: Any) -> NoReturn:
        self._refuse(what)

    return method


_UNSUPPORTED = {
    "an arithmetic operator": "add radd iadd sub rsub isub mul rmul imul truediv rtruediv "
    "itruediv pow rpow ipow floordiv rfloordiv mod rmod neg pos abs",
    "a comparison": "lt le gt ge eq ne bool",
    "indexing": "getitem setitem iter contains",
}
for _what, _names in _UNSUPPORTED.items():
    for _name in _names.split():
        setattr(SparseRow, f"__{_name}__", _refusing(_what))
