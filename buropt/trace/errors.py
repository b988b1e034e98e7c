"""What tracing can complain about, and where in the user's code it happened.

A message has three parts: what was wrong, where it was written (file and line of the user's
expression), what to write instead.
"""

from __future__ import annotations

import linecache
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType

# Frames of these modules are machinery; the first frame outside them is the user's expression.
_MACHINERY = (
    "buropt.trace",
    "buropt.autodiff",
    "buropt.nn",
    "buropt.oracle",
    "buropt.scipy",
    "buropt.tree",
    "numpy",
    "scipy",
    "contextlib",
)


class TraceError(TypeError):
    """A traced value was used in a way that a recording cannot follow."""


class UnsupportedOpError(TraceError):
    """A function, method or keyword that cannot be traced; the text names it and an alternative."""


class UnsupportedAttributeError(UnsupportedOpError, AttributeError):
    """An attribute of NumPy arrays that traced values do not have (`hasattr` says False)."""


class DisconnectedInputWarning(UserWarning):
    """An input does not influence the result, so its derivative is zero everywhere."""


class RandomDrawWarning(UserWarning):
    """Random numbers were drawn while tracing; every later call would replay the same numbers."""


def location(name: str) -> str:
    """Say where the user's expression stands: `Raised while tracing loss, at model.py:17: a @ x`.

    Parameters
    ----------
    name : str
        The function being traced.
    """
    return f"Raised while tracing {place(name)}"


def place(name: str) -> str:
    """Where the user's expression stands: `loss, at model.py:17: a @ x`, with a full stop."""
    frame = _user_frame()
    if frame is None:
        return f"{name}."
    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line, frame.f_globals).strip()
    source = source if len(source) <= 60 else source[:57] + "..."
    return f"{name}, at {path}:{line}" + (f": `{source}`." if source else ".")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line, however deep in the machinery this is called."""
    frame = _user_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__")
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, module, registry
    )


def definition(function: Callable[..., object]) -> str:
    """Name a function and the place where it is defined: `loss (model.py:12)`."""
    name = function_name(function)
    code = getattr(_unwrap(function), "__code__", None)
    if isinstance(code, CodeType):
        return f"{name} ({code.co_filename}:{code.co_firstlineno})"
    return name


def function_name(function: Callable[..., object]) -> str:
    """The short name of a function, of a `functools.partial`'s target, or of a callable's class."""
    inner = _unwrap(function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _unwrap(function: Callable[..., object]) -> object:
    inner: object = function
    while True:  # partials and decorated functions, in any nesting
        deeper = getattr(inner, "func", None) or getattr(inner, "__wrapped__", None)
        if not callable(deeper):
            return inner
        inner = deeper


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_machinery(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def is_machinery(module: str) -> bool:
    """Whether a module of that name is machinery, and not the user's."""
    return any(module == name or module.startswith(name + ".") for name in _MACHINERY)
