"""Rules for questions about dtypes, which traced values answer like the arrays they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import function

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer

_astype: Any = getattr(np, "astype", None)  # from NumPy 2.1 on


@function(np.iscomplexobj, "x")
def iscomplexobj(trace: Trace, x: Any) -> bool:
    """False: there are no complex traced values."""
    return False


@function(np.isrealobj, "x")
def isrealobj(trace: Trace, x: Any) -> bool:
    """True: there are no complex traced values."""
    return True


@function(np.isreal, "x")
def isreal(trace: Trace, x: Any) -> Tracer:
    """True everywhere."""
    return np.ones_like(trace.lift(x), dtype=bool)  # type: ignore[return-value]


@function(np.iscomplex, "x")
def iscomplex(trace: Trace, x: Any) -> Tracer:
    """False everywhere."""
    return np.zeros_like(trace.lift(x), dtype=bool)  # type: ignore[return-value]


@function(np.real_if_close, "a tol")
def real_if_close(trace: Trace, a: Any, tol: Any = 100) -> Tracer:
    """The array itself."""
    return trace.lift(a)


@function(np.result_type, "*arrays_and_dtypes")
def result_type(trace: Trace, arrays_and_dtypes: Any) -> Any:
    """The dtype that NumPy's rules give, with the traced values' dtypes."""
    return np.result_type(*[_dtype_of(value) for value in arrays_and_dtypes])


@function(np.common_type, "*arrays")
def common_type(trace: Trace, arrays: Any) -> Any:
    """The float type that can hold all arrays."""
    return np.common_type(*[np.empty(0, _dtype_of(value)) for value in arrays])


@function(np.can_cast, "from_ to casting")
def can_cast(trace: Trace, from_: Any, to: Any, casting: Any = "safe") -> Any:
    """Whether NumPy casts the dtype of a traced value to another one."""
    return np.can_cast(_dtype_of(from_), to, casting)


def _dtype_of(value: Any) -> Any:
    is_array = isinstance(value, np.ndarray) or hasattr(value, "node")  # a traced array
    return value.dtype if is_array else value


if _astype is not None:

    @function(_astype, "x dtype copy device")
    def astype(trace: Trace, x: Any, dtype: Any, copy: bool = True) -> Any:
        """The same values as the graph's float dtype, as integers, or as booleans."""
        array = trace.lift(x)
        return array if array.dtype == dtype and not copy else array.astype(dtype)
