"""Methods of arrays: each is a NumPy function of the array, and exists if that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import FUNCTIONS, UFUNCS

if TYPE_CHECKING:
    from buropt.trace.tracer import Tracer

# Methods whose arguments are those of the function of that name, after the array.
_SAME_NAME = (
    "all any argmax argmin argsort choose clip conj conjugate copy cumprod cumsum diagonal max "
    "mean min nonzero prod ravel repeat round searchsorted squeeze std sum swapaxes take trace var"
)
METHODS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name) for name in _SAME_NAME.split() if hasattr(np.ndarray, name)
}


def method(array: Tracer, name: str) -> Callable[..., Any] | None:
    """The method of that name, bound to a traced array; None if it cannot be traced."""
    if name == "compress" and np.compress in FUNCTIONS:  # the array is its second argument
        return lambda condition, *args, **kwargs: np.compress(condition, array, *args, **kwargs)
    numpy_function = METHODS.get(name)
    if numpy_function is None or not (numpy_function in FUNCTIONS or numpy_function in UFUNCS):
        return None
    return lambda *args, **kwargs: numpy_function(array, *args, **kwargs)
