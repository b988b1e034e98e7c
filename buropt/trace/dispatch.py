"""Which NumPy functions can be traced: tables, filled by `ufuncs/`, `functions/`, `indexing/`.

A row maps NumPy's own function object to a rule, a Python function that emits nodes. Whatever has
no row raises `UnsupportedOpError`; keyword arguments that a rule does not know raise as well, so
nothing is ever dropped silently.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from buropt.trace.base import Recording
from buropt.trace.errors import UnsupportedOpError, library_function, location
from buropt.trace.hints import HINTS
from buropt.trace.kinds import Kind

UfuncRule: TypeAlias = Callable[..., Any]
FunctionRule: TypeAlias = Callable[..., Any]
Rule = TypeVar("Rule", bound=FunctionRule)

# Values of keyword arguments that change nothing, accepted for keywords a rule does not know.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "order": ("C", "K", "A"),  # of copies; rules that give elements another order take it
    "subok": (True, False),
    "casting": ("same_kind", "safe"),
    "where": (True,),
    "optimize": (True, False),
    "copy": (True,),
}


@dataclass(frozen=True)
class FunctionRow:
    """A rule for a NumPy function that is not a ufunc.

    Attributes
    ----------
    rule : callable
        `rule(trace, **arguments)`, with NumPy's own argument names.
    parameters : tuple of str
        All of NumPy's parameters, in positional order; a name that starts with a star takes the
        remaining positional arguments, and those behind it are given by name.
    known : frozenset of str
        The parameters that the rule takes.
    """

    rule: FunctionRule
    parameters: tuple[str, ...]
    known: frozenset[str]


UFUNCS: dict[np.ufunc, UfuncRule] = {}
FUNCTIONS: dict[Callable[..., Any], FunctionRow] = {}
# ufunc.reduce, for the ufuncs whose reduction is a function of its own.
REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
# scipy.special's ufuncs by name: importing that package just to list it would double start-up.
SCIPY_UFUNCS: dict[str, UfuncRule] = {}
# scipy.special's functions in Python, by name; `scipy_shims.py` has more on them.
SCIPY_FUNCTIONS: dict[str, FunctionRow] = {}
# What no function of NumPy does, but arrays do: `x[key]`, `x.astype`, `round(x)`; by the method.
ARRAY_RULES: dict[str, FunctionRule] = {}

GENERIC_ALTERNATIVE = (
    "compose it from functions that can be traced (buropt.trace.supported_functions() lists them)"
)


def function(numpy_function: Callable[..., Any], parameters: str) -> Callable[[Rule], Rule]:
    """Decorate a rule for `numpy_function`, whose parameters are listed in NumPy's order."""

    def register(rule: Rule) -> Rule:
        FUNCTIONS[numpy_function] = _row(rule, parameters)
        return rule

    return register


def scipy_function(name: str, parameters: str) -> Callable[[Rule], Rule]:
    """Decorate a rule for scipy.special's function of that name."""

    def register(rule: Rule) -> Rule:
        SCIPY_FUNCTIONS[name] = _row(rule, parameters)
        return rule

    return register


def array_rule(method: str) -> Callable[[Rule], Rule]:
    """Decorate a rule for the method of arrays of that name."""

    def register(rule: Rule) -> Rule:
        ARRAY_RULES[method] = rule
        return rule

    return register


def _row(rule: FunctionRule, parameters: str) -> FunctionRow:
    code = rule.__code__  # inspect.signature of all the rules would take a while at every start
    known = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) - {"trace"}
    return FunctionRow(rule, tuple(parameters.split()), known)


def find_ufunc(trace: Recording, ufunc: np.ufunc) -> UfuncRule:
    """The rule of a ufunc of NumPy or scipy.special, or `UnsupportedOpError`."""
    rule = UFUNCS.get(ufunc)
    if rule is None and _is_scipy(ufunc):
        rule = SCIPY_UFUNCS.get(ufunc.__name__)
    if rule is None:
        raise unsupported(trace, public_name(ufunc))
    return rule


def call_ufunc(trace: Recording, ufunc: np.ufunc, *operands: Any) -> Any:
    """Trace a ufunc; operands may be tracers, arrays and numbers."""
    return find_ufunc(trace, ufunc)(trace, *[trace.lift(operand) for operand in operands])


def call_function(
    trace: Recording,
    numpy_function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """Trace `numpy_function(*args, **kwargs)` by its row, or raise `UnsupportedOpError`."""
    row = FUNCTIONS.get(numpy_function)
    name = public_name(numpy_function)
    if row is None:
        raise unsupported(trace, name)
    return _call_row(trace, row, name, args, kwargs)


def call_scipy_function(
    trace: Recording, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Trace scipy.special's function of that name."""
    return _call_row(trace, SCIPY_FUNCTIONS[name], f"scipy.special.{name}", args, kwargs)


def _call_row(
    trace: Recording, row: FunctionRow, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    given = _bind(row, name, args, kwargs)
    refused = [key for key, value in given.items() if not _can_drop(trace, row, key, value)]
    if refused:
        raise unsupported_keyword(trace, name, refused[0])
    return row.rule(trace, **{key: value for key, value in given.items() if key in row.known})


def _bind(
    row: FunctionRow, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    names = row.parameters
    given: dict[str, Any] = {}
    star = next((k for k, one in enumerate(names) if one.startswith("*")), None)
    if star is not None:
        given[names[star][1:]] = args[star:]
        args, names = args[:star], names[:star]
    if len(args) > len(names):
        raise TypeError(f"{name} takes at most {len(names)} arguments, got {len(args)}")
    given |= zip(names, args, strict=False)
    given |= kwargs
    missing = np._NoValue  # NumPy passes it on for "not given"
    return {key: value for key, value in given.items() if value is not missing}


def _can_drop(trace: Recording, row: FunctionRow, key: str, value: Any) -> bool:
    """Whether the rule knows a keyword, or its value changes nothing."""
    if key in row.known or value is None:
        return True
    if key == "dtype":
        return is_graph_dtype(trace, value)
    return any(
        value is neutral or value == neutral
        for neutral in _NEUTRAL.get(key, ())
        if isinstance(value, type(neutral))
    )


def is_graph_dtype(trace: Recording, dtype: Any) -> bool:
    """Whether `dtype` names the float dtype that the graph computes in anyway."""
    return graph_kind(trace, dtype) == "f"


def graph_kind(trace: Recording, dtype: Any) -> Kind | None:
    """The kind of traced values of that dtype; None if the graph has no such values.

    Integers are exact but have no width, so that those of NumPy's that wrap around early, and
    unsigned ones, do not exist.
    """
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        return None
    if wanted in (np.int64, np.int32):
        return "i"
    if wanted == np.bool_:
        return "b"
    return "f" if wanted == trace.dtype else None


def unsupported(trace: Recording, name: str) -> UnsupportedOpError:
    """The error for a function or method without a rule: an alternative or the nearest names.

    Inside of a function of SciPy's that cannot be traced, it is of that one.
    """
    caller = untraceable()
    name = name if caller is None else caller
    return UnsupportedOpError(
        f"{name} cannot be traced. {location(trace.name)} Instead: {alternative(name)}."
    )


def untraceable() -> str | None:
    """SciPy's function in Python that the user's line calls and that has no rule, or None."""
    name = library_function()
    if name is None or not name.startswith("scipy.") or name in supported_functions():
        return None
    return name


def unsupported_keyword(trace: Recording, name: str, keyword: str) -> UnsupportedOpError:
    """The error for a keyword argument that a rule does not support."""
    hint = HINTS.get(f"{keyword}=", f"leave {keyword} out")
    return UnsupportedOpError(
        f"{name}: the argument {keyword}= cannot be traced. {location(trace.name)} Instead: {hint}."
    )


def alternative(name: str) -> str:
    """What to write instead of an untraceable function, as half a sentence."""
    package, _, rest = name.partition(".")
    hint = HINTS.get(name) or (HINTS.get(rest) if package in ("np", "scipy", "ndarray") else None)
    if hint is not None:
        return hint
    import difflib  # here, since most programs need no alternative

    supported = supported_functions()
    if f"np.{rest}" in supported:  # np.linalg.solve for scipy.linalg.solve
        return f"np.{rest}"
    if name.startswith("scipy.linalg."):  # whose names are near others: expm is not np.exp
        supported = [full for full in supported if full.startswith("np.linalg.")]
    full_names = {full.split(".")[-1]: full for full in supported}
    near = difflib.get_close_matches(name.split(".")[-1], full_names, n=3, cutoff=0.75)
    if near:
        return "perhaps " + ", ".join(full_names[short] for short in near)
    return GENERIC_ALTERNATIVE


def supported_functions() -> list[str]:
    """The public names of all functions that can be traced, such as `np.exp`, sorted."""
    rows: list[Any] = [*UFUNCS, *FUNCTIONS]
    names = {public_name(row) for row in rows}
    return sorted(names | {f"scipy.special.{name}" for name in (*SCIPY_UFUNCS, *SCIPY_FUNCTIONS)})


def public_name(numpy_function: Any) -> str:
    """How a user writes a function: `np.exp`, `np.linalg.norm`, `scipy.special.expit`."""
    name = str(numpy_function.__name__)
    if isinstance(numpy_function, np.ufunc):
        if _is_scipy(numpy_function):
            return f"scipy.special.{name}"
        return f"np.{name}" if getattr(np, name, None) is numpy_function else name
    module = str(getattr(numpy_function, "__module__", "") or "")
    if module.split(".")[0] == "numpy":
        return ".".join(["np", *module.split(".")[1:], name])
    return f"{module}.{name}" if module else name


def _is_scipy(ufunc: np.ufunc) -> bool:
    special = sys.modules.get("scipy.special")
    return special is not None and getattr(special, ufunc.__name__, None) is ufunc
