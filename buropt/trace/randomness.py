"""Random numbers drawn while a function is traced: they would be replayed by every later call."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

import numpy as np

from buropt.trace.errors import RandomDrawWarning, definition, warn


@contextmanager
def watch_random_draws(function: Callable[..., Any]) -> Iterator[None]:
    """Warn if `function` draws from a generator that can be seen from outside.

    These are Python's and NumPy's global generators and the `np.random.Generator` objects that the
    function refers to by name. One made inside of the function is not seen; it draws the same
    numbers in every call anyway if it has a seed.
    """
    generators = _named_generators(function)
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


def _states(generators: list[np.random.Generator], with_numpy: bool) -> list[Any]:
    states: list[Any] = [repr(generator.bit_generator.state) for generator in generators]
    states.append(hash(random.getstate()))
    if with_numpy:
        _, key, position, has_gauss, _ = np.random.get_state()  # noqa: NPY002 (watched, not used)
        states.append((hash(np.asarray(key).tobytes()), position, has_gauss))
    return states


def _named_generators(function: Callable[..., Any]) -> list[np.random.Generator]:
    """The generators among a function's closure variables, defaults and globals."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    values = list(getattr(function, "__defaults__", None) or ())
    values += [cell.cell_contents for cell in function.__closure__ or () if _is_set(cell)]
    names = function.__globals__
    values += [names[name] for name in code.co_names if name in names]
    return [value for value in values if _is_generator(value)]


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that is assigned later
        return False


def _is_generator(value: Any) -> bool:
    return "numpy.random" in sys.modules and isinstance(value, np.random.Generator)
