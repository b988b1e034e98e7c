"""SciPy's functions in Python, which convert their arguments to arrays before anyone is asked.

NumPy's functions and SciPy's ufuncs hand a call on a traced value back to it. `logsumexp` and its
like do not. While a function is traced, their code is therefore exchanged for one that looks for
traced values among the arguments first: the function objects stay the same, so that it does not
matter how and when they were imported. Calls without traced values, also those of other threads,
get the original code.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from buropt.trace.base import TracedValue
from buropt.trace.dispatch import call_scipy_function


def _logsumexp(*args: Any, **kwargs: Any) -> Any:
    from buropt.trace.scipy_shims import call

    return call("logsumexp", args, kwargs)


def _softmax(*args: Any, **kwargs: Any) -> Any:
    from buropt.trace.scipy_shims import call

    return call("softmax", args, kwargs)


def _log_softmax(*args: Any, **kwargs: Any) -> Any:
    from buropt.trace.scipy_shims import call

    return call("log_softmax", args, kwargs)


# The code runs with SciPy's global names, hence the import in each; it has no other difference.
_SHIMS: dict[str, CodeType] = {
    "logsumexp": _logsumexp.__code__,
    "softmax": _softmax.__code__,
    "log_softmax": _log_softmax.__code__,
}


class _Installed:
    """How many recordings are open, and what was exchanged for them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.originals: dict[str, FunctionType] = {}  # copies with the original code
        self.exchanged: dict[str, tuple[FunctionType, CodeType]] = {}

    def enter(self) -> None:
        with self.lock:
            self.count += 1
            special = sys.modules.get("scipy.special")
            if special is None:
                return
            for name, shim in _SHIMS.items():
                function: Any = getattr(special, name, None)
                if name not in self.exchanged and _is_plain(function):
                    self.originals[name] = _copy(function)
                    self.exchanged[name] = (function, function.__code__)
                    function.__code__ = shim

    def leave(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0:
                for function, code in self.exchanged.values():
                    function.__code__ = code
                self.exchanged.clear()  # the copies stay: a thread may be about to call one


_installed = _Installed()


@contextmanager
def scipy_functions() -> Iterator[None]:
    """Let SciPy's functions be traced, if scipy.special is imported."""
    _installed.enter()
    try:
        yield
    finally:
        _installed.leave()


def are_late() -> bool:
    """Whether scipy.special was imported by the function that is traced, too late for this."""
    return _installed.count > 0 and not _installed.exchanged and "scipy.special" in sys.modules


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Trace SciPy's function of that name if a traced value is among the arguments, or call it."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, TracedValue):
            return call_scipy_function(value.recording, name, args, kwargs)
    return _installed.originals[name](*args, **kwargs)


def _is_plain(function: Any) -> bool:
    """Whether its code can be exchanged: a Python function without variables of a closure."""
    return isinstance(function, FunctionType) and not function.__code__.co_freevars


def _copy(function: FunctionType) -> FunctionType:
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
