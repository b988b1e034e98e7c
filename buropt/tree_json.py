"""Structures of nested parameters and data as JSON."""

from __future__ import annotations

import collections
import sys
from typing import Any, cast

from buropt.tree import Structure


def to_json(structure: Structure) -> Any:
    """A leaf is "array"; a container is {kind: parts}, for dicts as pairs of key and part."""
    if structure.kind in ("leaf", "none"):
        return "array" if structure.kind == "leaf" else None
    parts = [to_json(child) for child in structure.children]
    if structure.kind == "dict":
        keys = map(_key_to_json, structure.keys)
        return {"dict": [list(pair) for pair in zip(keys, parts, strict=True)]}
    if structure.kind == "namedtuple":
        container = cast(type, structure.container)
        return {
            "namedtuple": [list(pair) for pair in zip(structure.keys, parts, strict=True)],
            "class": f"{container.__module__}:{container.__qualname__}",
        }
    return {structure.kind: parts}


def from_json(tree: Any) -> Structure:
    """What `to_json` gave; of anything else, one of the errors of looking at it wrongly."""
    if tree == "array" or tree is None:
        return Structure("leaf" if tree == "array" else "none")
    kind = next(iter(tree), None)
    if kind in ("list", "tuple"):
        return Structure(kind, tuple(from_json(part) for part in tree[kind]))
    pairs = tree[kind if kind in ("dict", "namedtuple") else "dict"]
    children = tuple(from_json(part) for _, part in pairs)
    if kind == "dict":
        keys = tuple(_key_from_json(key) for key, _ in pairs)
        return Structure("dict", children, keys)
    fields = tuple(str(field) for field, _ in pairs)
    return Structure("namedtuple", children, fields, _named_tuple(tree["class"], fields))


def _named_tuple(name: str, fields: tuple[str, ...]) -> type:
    """The class of that name if its module is loaded (none is imported), or one like it."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    is_tuple = isinstance(found, type) and issubclass(found, tuple)
    if is_tuple and getattr(found, "_fields", None) == fields:
        return cast(type, found)
    return cast(type, collections.namedtuple(path.split(".")[-1], fields))


def _key_to_json(key: Any) -> Any:
    if key is None or type(key) in (str, bool, int):
        return key
    if type(key) is float:
        return {"float": key.hex()}
    if type(key) is tuple:
        return {"tuple": [_key_to_json(part) for part in key]}
    raise TypeError(
        f"the key {key!r} cannot be saved. Use strings, numbers, booleans, None, "
        "or tuples of them as keys."
    )


def _key_from_json(key: Any) -> Any:
    if isinstance(key, dict):
        if "float" in key:
            return float.fromhex(key["float"])
        return tuple(_key_from_json(part) for part in key["tuple"])
    return key
