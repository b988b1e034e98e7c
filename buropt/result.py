"""`result.json`: what one must know about a finished run, written at once or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt.files import replacing

PACKAGES = (
    "buropt",
    "numpy",
    "scipy",
    "hydra-core",
    "omegaconf",
    "scikit-learn",
    "matplotlib",
    "rich",
)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write strict JSON atomically: a reader sees the old file or the new one, never a part."""
    text = json.dumps(jsonable(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    with replacing(path) as file:
        file.write(text.encode())


def write_array(path: Path, x: NDArray[Any]) -> None:
    """Write a .npy file, atomically as well."""
    with replacing(path) as file:
        np.save(file, x)


def jsonable(value: Any) -> Any:
    """Plain JSON for records, arrays, dataclasses and NumPy scalars; inf and nan become null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return [jsonable(item) for item in value.tolist()]
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):  # a named tuple keeps its names
        return jsonable(value._asdict())
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        content = {name: jsonable(getattr(value, name)) for name in names}
        return {"name": type(value).__name__, **content}
    return str(value)


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested configuration as one of dotted keys: optimizer.step_size, as on the command line.

    Without `_target_`, which says what a choice stands for. A list is one value.
    """
    content: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            content |= flat(value, f"{prefix}{key}.")
        elif key != "_target_":
            content[f"{prefix}{key}"] = value
    return content


def fingerprint(x: NDArray[Any]) -> str:
    """SHA-256 of `x` in little-endian bytes: equal exactly when two runs ended at the same bits."""
    x = np.ascontiguousarray(x)
    return hashlib.sha256(x.astype(x.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()


def versions() -> dict[str, str]:
    """Python's and the packages' versions."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def version() -> str:
    """What --version prints: a line for a report of a fault."""
    found = versions()
    parts = [f"Python {found['python']} on {platform.machine()}"]
    for name, package in (("NumPy", "numpy"), ("SciPy", "scipy"), ("Hydra", "hydra-core")):
        parts.append(f"{name} {found[package]}")
    return f"buropt {found['buropt']} ({', '.join(parts)})"


def machine() -> dict[str, Any]:
    """The computer, as far as it explains a speed."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "cpus": os.cpu_count(),
        "usable_cpus": len(affinity(0)) if affinity is not None else os.cpu_count(),
        "host": platform.node(),
        "pid": os.getpid(),
    }


def command() -> list[str]:
    """The command line, for running it again."""
    return [sys.executable, *sys.argv]


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
