"""`Tracer`: the value that stands for an array while a function is recorded.

NumPy hands every function call on a tracer back to it (`__array_ufunc__`, `__array_function__`),
Python every operator; both look the rule up in the tables of `dispatch.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from buropt.trace import scipy_shims
from buropt.trace.base import TracedValue
from buropt.trace.dispatch import (
    ARRAY_RULES,
    REDUCTIONS,
    call_function,
    call_ufunc,
    find_ufunc,
    is_graph_dtype,
    public_name,
    unsupported,
    unsupported_keyword,
    untraceable,
)
from buropt.trace.errors import UnsupportedAttributeError, location
from buropt.trace.methods import method
from buropt.trace.operators import binary, in_place, reflected, unary
from buropt.trace.sparse import SparseRow


class Tracer(TracedValue):
    """A traced array: a node of the graph under construction, which behaves like an ndarray.

    Supports NumPy's operators, ufuncs and functions, basic indexing and iteration. Its value is
    not known while tracing, so a Python branch on it, a conversion to a number and an assignment
    to its items raise `TraceError`.
    """

    __slots__ = ()
    __array_priority__ = 1000.0

    @property
    def real(self) -> Tracer:
        """Itself: there are no complex numbers."""
        return self

    @property
    def imag(self) -> Tracer:
        """Zeros."""
        return self._method(np.zeros_like)

    @property
    def mT(self) -> Tracer:
        """The transpose of the last two axes."""
        if self.ndim < 2:
            raise ValueError(
                f"an array of shape {self.shape} has no mT, which needs 2 axes. "
                f"{location(self.recording.name)} Instead: x[:, None], which has them."
            )
        return self._method(np.swapaxes, -1, -2)

    @property
    def T(self) -> Tracer:
        """The transpose."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            self.refuse("a traced value of shape () has no len()", "an array with an axis")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tracer]:
        if not self.shape:
            self.refuse(
                "a traced value of shape () cannot be iterated over or unpacked",
                "an array with an axis",
            )
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"Tracer(shape={self.shape}, dtype={self.dtype})"

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        for value in inputs:
            if isinstance(value, SparseRow):
                return NotImplemented
        if method == "__call__" and not kwargs:
            return call_ufunc(self.recording, ufunc, *inputs)
        trace, name = self.recording, public_name(ufunc)
        if kwargs.get("out") is not None:
            self._refuse_out(name, kwargs["out"])
        if method == "reduce" and ufunc in REDUCTIONS:
            return call_function(trace, REDUCTIONS[ufunc], inputs, {"axis": 0} | kwargs)
        if method != "__call__":
            raise unsupported(trace, f"{name}.{method}")
        operands = [trace.lift(value) for value in inputs]
        all_floats = all(operand.kind == "f" for operand in operands)
        for keyword, value in kwargs.items():
            same_dtype = keyword == "dtype" and all_floats and is_graph_dtype(trace, value)
            if not (same_dtype or value is None or (keyword == "where" and value is True)):
                raise unsupported_keyword(trace, name, keyword)
        return find_ufunc(trace, ufunc)(trace, *operands)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if SparseRow in types:
            return NotImplemented
        return call_function(self.recording, func, args, kwargs)

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise `TraceError`; of SciPy's functions that cannot be traced, with their names."""
        if untraceable() is not None:
            raise unsupported(self.recording, what)
        super().refuse(what, instead)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        if self.kind == "i":
            self.refuse(
                "a traced integer cannot be an index into an array that is not traced, nor be "
                "converted to a NumPy array",
                "np.choose(i, array) for array[i], or np.take_along_axis for more than one row",
            )
        if scipy_shims.are_late():
            self.refuse(
                "a traced value cannot be converted to a NumPy array, perhaps by a function of "
                "scipy.special, which the traced function has imported",
                "import scipy.special at the top of the file",
            )
        self.refuse(
            "a traced value cannot be converted to a NumPy array, nor put into one by item "
            "assignment (out[i] = x)",
            "np.stack([...]) or np.concatenate([...]) instead of np.array([...]), and NumPy "
            "functions that can be traced instead of those of other libraries (np.linalg.solve "
            "for scipy.linalg.solve)",
        )

    def _refuse_out(self, name: str, out: Any) -> NoReturn:
        if any(isinstance(target, np.ndarray) for target in out):
            self.refuse(
                f"{name} would write a traced value into an array that is not traced (out= or "
                "an augmented assignment such as acc += x)",
                "acc = acc + x, which makes a new array",
            )
        raise unsupported_keyword(self.recording, name, "out")

    # Operators

    __add__, __radd__, __iadd__ = binary(np.add), reflected(np.add), in_place(np.add, "+=")
    __sub__, __rsub__ = binary(np.subtract), reflected(np.subtract)
    __isub__ = in_place(np.subtract, "-=")
    __mul__, __rmul__ = binary(np.multiply), reflected(np.multiply)
    __imul__ = in_place(np.multiply, "*=")
    __truediv__, __rtruediv__ = binary(np.divide), reflected(np.divide)
    __itruediv__ = in_place(np.divide, "/=")
    __pow__, __rpow__, __ipow__ = binary(np.power), reflected(np.power), in_place(np.power, "**=")
    __matmul__, __rmatmul__ = binary(np.matmul), reflected(np.matmul)
    __imatmul__ = in_place(np.matmul, "@=")
    __floordiv__, __rfloordiv__ = binary(np.floor_divide), reflected(np.floor_divide)
    __ifloordiv__ = in_place(np.floor_divide, "//=")
    __mod__, __rmod__ = binary(np.remainder), reflected(np.remainder)
    __imod__ = in_place(np.remainder, "%=")
    __divmod__, __rdivmod__ = binary(np.divmod), reflected(np.divmod)
    __and__, __rand__ = binary(np.bitwise_and), reflected(np.bitwise_and)
    __iand__ = in_place(np.bitwise_and, "&=")
    __or__, __ror__ = binary(np.bitwise_or), reflected(np.bitwise_or)
    __ior__ = in_place(np.bitwise_or, "|=")
    __xor__, __rxor__ = binary(np.bitwise_xor), reflected(np.bitwise_xor)
    __ixor__ = in_place(np.bitwise_xor, "^=")
    __lt__, __le__ = binary(np.less), binary(np.less_equal)
    __lshift__, __rlshift__ = binary(np.left_shift), reflected(np.left_shift)
    __rshift__, __rrshift__ = binary(np.right_shift), reflected(np.right_shift)
    __gt__, __ge__ = binary(np.greater), binary(np.greater_equal)
    __eq__, __ne__ = binary(np.equal), binary(np.not_equal)
    __hash__ = None  # type: ignore[assignment]  # `==` is elementwise, as for ndarrays

    __neg__, __pos__ = unary(np.negative), unary(np.positive)
    __abs__, __invert__ = unary(np.absolute), unary(np.invert)

    def __getitem__(self, key: Any) -> Tracer:
        result: Tracer = ARRAY_RULES["__getitem__"](self.recording, self, key)
        return result

    # What would need the value

    def __bool__(self) -> NoReturn:
        self.refuse(
            "a Python branch (if, while, and, or, not, max, min, assert) depends on a traced "
            "value, which is not known while tracing",
            "np.where(condition, a, b), np.maximum or np.minimum, and &, | and ~ for masks",
        )

    def __float__(self) -> NoReturn:
        self.refuse(
            "a traced value cannot be converted to a Python float, nor put into an array by item "
            "assignment (out[i] = x)",
            "NumPy's functions, such as np.exp(x) for math.exp(x); np.stack([...]) for arrays "
            "of traced values",
        )

    def __int__(self) -> NoReturn:
        self.refuse(
            "a traced value cannot be converted to a Python int",
            "an int that does not depend on the traced arguments",
        )

    def __complex__(self) -> NoReturn:
        self.refuse("a traced value cannot be converted to a Python complex", "real arithmetic")

    def __index__(self) -> NoReturn:
        self.refuse(
            "a traced value cannot be an index of a list or tuple, a shape or a loop bound",
            "np.choose(i, choices) to look something up, np.where(condition, a, b) to select, "
            " or an int that does not depend on the traced arguments",
        )

    def __round__(self, digits: int | None = None) -> Any:
        return ARRAY_RULES["__round__"](self.recording, self, digits)

    def __format__(self, spec: str) -> str:
        if spec:
            self.refuse(
                f"a traced value has no digits to format with {spec!r}",
                "repr(x), which shows its shape and dtype",
            )
        return repr(self)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self.refuse(
            "item assignment changes a traced array in place, which cannot be traced",
            "np.where(mask, new, old), or build the array with np.stack([...]) or "
            "np.concatenate([...])",
        )

    def __contains__(self, value: Any) -> NoReturn:
        self.refuse(
            "`in` depends on a traced value, which is not known while tracing",
            "np.sum(x == value), or np.where(x == value, a, b)",
        )

    # Methods

    def dot(self, other: Any, **kwargs: Any) -> Any:
        """`np.dot(self, other)`."""
        if isinstance(other, SparseRow):
            return self @ other
        return self._method(np.dot, other, **kwargs)

    def reshape(self, *shape: Any, **kwargs: Any) -> Tracer:
        """`np.reshape(self, shape)`; the shape may be given as separate integers."""
        return self._method(np.reshape, shape[0] if len(shape) == 1 else shape, **kwargs)

    def transpose(self, *axes: Any) -> Tracer:
        """`np.transpose(self, axes)`; the axes may be given as separate integers."""
        if len(axes) == 1 and not isinstance(axes[0], int):
            axes = axes[0]
        return self._method(np.transpose, axes or None)

    def ravel(self, order: str = "C") -> Tracer:
        """`np.ravel(self)`."""
        return self._method(np.ravel, order)

    def flatten(self, order: str = "C") -> Tracer:
        """A copy of shape (size,)."""
        return self.ravel(order).copy()

    def copy(self, order: str = "C") -> Tracer:
        """The same values in memory of their own."""
        return self._method(np.copy, order)

    def __copy__(self) -> Tracer:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self.copy()

    def astype(self, dtype: Any, **kwargs: Any) -> Any:
        """A copy as the graph's float dtype, as integers, or as booleans (`x != 0`)."""
        if kwargs:
            raise unsupported_keyword(self.recording, "ndarray.astype", next(iter(kwargs)))
        return ARRAY_RULES["astype"](self.recording, self, dtype)

    def _method(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Tracer:
        result: Tracer = call_function(self.recording, function, (self, *args), kwargs)
        return result

    def __getattr__(self, name: str) -> Any:
        """The other methods of arrays, which `methods.py` lists."""
        if name.startswith("_") or not (hasattr(np.ndarray, name) or name == "at"):
            raise AttributeError(f"traced values have no attribute {name!r}")
        found = method(self, name)
        if found is not None:
            return found
        raise UnsupportedAttributeError(str(unsupported(self.recording, f"ndarray.{name}")))
