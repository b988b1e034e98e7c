"""What tracing can complain about, and where in the user's code it happened.

A message has three parts: what was wrong, where it was written (file and line of the user's
expression), what to write instead.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

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


def library_function() -> str | None:
    """The public function of NumPy or SciPy, written in Python, that the user's line calls.

    None if it calls none, or one that asks its arguments: then a rule has been looked for.
    """
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_machinery(frame.f_globals.get("__name__", "")):
        frames.append(frame)
        frame = frame.f_back
    for frame in reversed(frames):  # from the user's line inwards: decorators come first
        if frame.f_globals["__name__"].partition(".")[0] not in ("numpy", "scipy"):
            return None
        name = _public_name(frame)
        if name is not None:
            return name
    return None


def _public_name(frame: FrameType) -> str | None:
    """How a user writes the function of the frame, or the one that it decorates or calls for."""
    code = frame.f_code
    inner = [frame.f_locals.get(name) for name in code.co_freevars]
    if code.co_name == "__call__":
        inner.append(frame.f_locals.get("self"))
    inner = [inspect.unwrap(one) for one in inner if callable(one)]
    modules = [frame.f_globals["__name__"], *(getattr(one, "__module__", "") for one in inner)]
    for module in modules:
        package = str(module).partition("._")[0]
        while package:
            for name, found in vars(sys.modules.get(package, object)).items():
                if not name.startswith("_") and callable(found) and _leads_to(found, code, inner):
                    return f"{package}.{name}".replace("numpy.", "np.")
            package = package.rpartition(".")[0]
    return None


def _leads_to(found: Callable[..., object], code: CodeType, inner: list[Any]) -> bool:
    """Whether a public function is that of the code, or one of those inside of a decorator."""
    function = inspect.unwrap(found)
    if getattr(function, "__code__", None) is code or any(function is one for one in inner):
        return True
    # A multimethod, as in scipy.fft, is no Python function and leads to one of its name.
    is_multimethod = function is not found and not isinstance(found, FunctionType)
    return is_multimethod and getattr(found, "__name__", None) == code.co_name


def is_machinery(module: str) -> bool:
    """Whether a module of that name is machinery, and not the user's."""
    return any(module == name or module.startswith(name + ".") for name in _MACHINERY)
