"""Methods of arrays: each is a NumPy function of the array, and exists if that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from buropt.trace.base import TracedValue
from buropt.trace.dispatch import FUNCTIONS, UFUNCS, call_function

# Methods whose arguments are those of the function of that name, after the array.
_SAME_NAME = (
    "all any argmax argmin argsort choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal max mean min nonzero prod ravel repeat round searchsorted squeeze std sum swapaxes "
    "take trace var"
)
METHODS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name) for name in _SAME_NAME.split() if hasattr(np.ndarray, name)
}


def method(array: TracedValue, name: str) -> Callable[..., Any] | None:
    """The method of that name, bound to a traced array; None if it cannot be traced."""
    numpy_function = METHODS.get(name)
    if numpy_function in UFUNCS:
        return lambda: numpy_function(array)
    if numpy_function not in FUNCTIONS:
        return None

    def bound(*args: Any, **kwargs: Any) -> Any:
        # `compress` has the array as its second argument, all others as their first.
        args = (args[0], array, *args[1:]) if name == "compress" and args else (array, *args)
        return call_function(array.recording, numpy_function, args, kwargs)

    return bound
