"""Random numbers drawn while a function is traced: they would be replayed by every later call."""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from buropt.trace.errors import RandomDrawWarning, definition, is_machinery, warn

_MOST_OBJECTS = 1000  # that are looked at for generators
_MOST_ITEMS = 100  # of a container


@contextmanager
def watch_random_draws(function: Callable[..., Any]) -> Iterator[None]:
    """Warn if `function` draws from a generator that can be seen from outside.

    These are Python's and NumPy's global generators and the generators of both that the function,
    or a function that it refers to, can reach by name: as a variable, a default, an attribute, in a
    container. One made inside of the function is not seen; it draws the same numbers in every call
    anyway if it has a seed.
    """
    generators = _reachable_generators(function)
    with_numpy = "numpy.random" in sys.modules
    before = _states(generators, with_numpy)
    yield
    if _states(generators, with_numpy) != before:
        warn(
            f"{definition(function)} drew random numbers while it was traced; every later call "
            "replays the same numbers. Instead: draw them outside and pass them as an argument "
            "or as data.",
            RandomDrawWarning,
        )


def _states(generators: list[Any], with_numpy: bool) -> list[Any]:
    states = [_state(generator) for generator in generators]
    states.append(hash(random.getstate()))
    if with_numpy:
        states.append(_legacy_state(np.random.get_state()))  # noqa: NPY002 (watched, not used)
    return states


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return hash(generator.getstate())
    if isinstance(generator, np.random.RandomState):
        return _legacy_state(generator.get_state())
    return repr(generator.bit_generator.state)


def _legacy_state(state: Any) -> Any:
    _, key, position, has_gauss, _ = state
    return hash(np.asarray(key).tobytes()), position, has_gauss


def _reachable_generators(function: Callable[..., Any]) -> list[Any]:
    """The generators that a function can reach by the names in its code."""
    found: list[Any] = []
    seen: dict[tuple[int, frozenset[str]], Any] = {}  # keeps them alive, so that ids are unique
    # Each with the names in the code that refers to it: its attributes of these names are used.
    pending: list[tuple[Any, frozenset[str]]] = [(function, frozenset())]
    while pending and len(seen) < _MOST_OBJECTS:
        value, names = pending.pop()
        if (id(value), names) in seen:
            continue
        seen[id(value), names] = value
        if _is_generator(value):
            found.append(value)
        else:
            pending += _parts(value, names)
    return found


def _parts(value: Any, names: frozenset[str]) -> list[tuple[Any, frozenset[str]]]:
    """What the code that has `names` may use of a value."""
    if isinstance(value, FunctionType):
        return _used_by(value)
    if isinstance(value, MethodType):
        function = value.__func__
        used = _names(function.__code__) if isinstance(function, FunctionType) else names
        return [(function, names), (value.__self__, used)]
    if isinstance(value, functools.partial):
        return [(part, names) for part in (value.func, *value.args, *value.keywords.values())]
    if isinstance(value, list | tuple | set | frozenset):
        return [(part, names) for part in value] if len(value) <= _MOST_ITEMS else []
    if isinstance(value, dict):
        return [(part, names) for part in value.values()] if len(value) <= _MOST_ITEMS else []
    if isinstance(value, ModuleType) and is_machinery(value.__name__):
        return []
    attributes = getattr(value, "__dict__", {})
    parts = [(attributes[name], names) for name in names if name in attributes]
    for name in (*names, "__call__"):  # methods, and properties, which are methods as well
        member = inspect.getattr_static(type(value), name, None)
        member = member.fget if isinstance(member, property) else member
        if isinstance(member, FunctionType):
            parts.append((MethodType(member, value), names))
    return parts


def _used_by(function: FunctionType) -> list[tuple[Any, frozenset[str]]]:
    """The closure variables, defaults and globals of a function, unless it is a library's."""
    if is_machinery(str(function.__module__)):
        return []
    names = _names(function.__code__)
    values = list(function.__defaults__ or ()) + list((function.__kwdefaults__ or {}).values())
    values += [cell.cell_contents for cell in function.__closure__ or () if _is_set(cell)]
    values += [function.__globals__[name] for name in names if name in function.__globals__]
    return [(value, names) for value in values]


@functools.lru_cache(maxsize=256)
def _names(code: CodeType) -> frozenset[str]:
    """The names of globals and attributes in a code object and in those inside it."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*inner)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that is assigned later
        return False


def _is_generator(value: Any) -> bool:
    if isinstance(value, random.Random):
        return True
    if "numpy.random" not in sys.modules:
        return False
    return isinstance(value, np.random.Generator | np.random.RandomState)
