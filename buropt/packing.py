"""A method's state, and what else a run consists of, as JSON and arrays, and back.

Numbers, text, None, arrays, SciPy's CSR and CSC matrices, tuples, lists, dictionaries, named tuples
and dataclasses can be packed, in each other to any depth; so can a class that is made from one
array and is one again for NumPy (`__array__`), such as SAGA's table. All bits come back: the types
of NumPy's numbers, the order in memory, inf and nan.

Nothing is imported and nothing but constructors is called when packed values are read: a record's
class must be known already, by a module that the reader names.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARSE = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")


def pack(value: Any, members: dict[str, NDArray[Any]]) -> Any:
    """`value` as JSON; its arrays go to `members` under names of their own.

    Raises
    ------
    TypeError
        If it holds something of another kind.
    """
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        return {"array": _member(value, members), "fortran": _is_fortran(value)}
    if isinstance(value, np.generic):
        return {"number": _member(np.asarray(value), members)}
    if isinstance(value, Mapping):
        items = [[pack(key, members), pack(item, members)] for key, item in value.items()]
        return {"dict": items}
    if hasattr(value, "_fields") or (
        dataclasses.is_dataclass(value) and not isinstance(value, type)
    ):
        fields = {name: pack(getattr(value, name), members) for name in _field_names(type(value))}
        return {"record": _name(type(value)), "fields": fields}
    if type(value) in (tuple, list):
        return {type(value).__name__: [pack(item, members) for item in value]}
    if type(value).__name__ in SPARSE and type(value).__module__.startswith("scipy.sparse"):
        parts = [_member(part, members) for part in (value.data, value.indices, value.indptr)]
        return {"sparse": type(value).__name__, "parts": parts, "shape": list(value.shape)}
    if hasattr(value, "__array__"):
        return {"made_of": _name(type(value)), "array": _member(np.asarray(value), members)}
    raise TypeError(
        f"{type(value).__name__} cannot be saved: make it of numbers, text, arrays, tuples and "
        "dataclasses"
    )


def unpack(
    content: Any, array: Callable[[str], NDArray[Any]], modules: Collection[str] = ()
) -> Any:
    """The value that `pack` has made `content` of.

    Parameters
    ----------
    content
        JSON.
    array : callable
        Gives the member of a name.
    modules : collection of str
        Where classes of records may come from, besides buropt.

    Raises
    ------
    ValueError, LookupError, TypeError
        If `content` is not as `pack` writes it, or names a class that is not a record's.
    """
    if not isinstance(content, dict):
        return content

    def inner(part: Any) -> Any:
        return unpack(part, array, modules)

    match content:
        case {"float": text}:
            return float(text)
        case {"number": name}:
            return array(name)[()]
        case {"made_of": name, "array": member}:
            return _class(name, modules)(array(member))
        case {"array": name, "fortran": fortran}:
            return np.asfortranarray(array(name)) if fortran else array(name)
        case {"dict": items}:
            return {inner(key): inner(item) for key, item in items}
        case {"tuple": items}:
            return tuple(inner(item) for item in items)
        case {"list": items}:
            return [inner(item) for item in items]
        case {"record": name, "fields": fields}:
            cls = _class(name, modules)
            if set(fields) != set(_field_names(cls)):
                raise ValueError(f"{name} has other fields: {', '.join(_field_names(cls))}")
            return cls(**{key: inner(item) for key, item in fields.items()})
        case {"sparse": kind, "parts": [data, indices, indptr], "shape": shape}:
            if kind not in SPARSE:
                raise ValueError(f"{kind} is not a sparse matrix")
            import scipy.sparse

            parts = array(data), array(indices), array(indptr)
            return getattr(scipy.sparse, kind)(parts, shape=tuple(shape))
    raise ValueError(f"not a packed value: {content!r:.60}")


def _member(value: NDArray[Any], members: dict[str, NDArray[Any]]) -> str:
    if value.dtype.kind not in "fiub":
        raise TypeError(f"an array of {value.dtype} cannot be saved: make it one of numbers")
    name = f"{len(members)}.npy"
    members[name] = value
    return name


def _is_fortran(value: NDArray[Any]) -> bool:
    """A product may round differently by the order of its operands in memory."""
    return bool(value.flags.f_contiguous and not value.flags.c_contiguous)


def _field_names(cls: Any) -> list[str]:
    if hasattr(cls, "_fields"):
        return list(cls._fields)
    return [field.name for field in dataclasses.fields(cls) if field.init]


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _class(name: str, modules: Collection[str]) -> Any:
    module, _, path = name.partition(":")
    if module not in modules and module.partition(".")[0] != "buropt":
        raise ValueError(f"{name} is not a record of this run")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    is_record = isinstance(found, type) and (
        hasattr(found, "_fields") or dataclasses.is_dataclass(found) or hasattr(found, "__array__")
    )
    if not is_record:
        raise ValueError(f"{name} is not a record of this run")
    return found
