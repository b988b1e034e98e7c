"""Rules for ufuncs: one row each. Most are a node of the same name; the rest are short formulas.

Importing this package imports all of its modules, each of which registers its rows.
"""

import importlib
import pkgutil

from buropt.trace.ufuncs.arithmetic import matmul
from buropt.trace.ufuncs.rules import as_mask, cast, number_kind

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["as_mask", "cast", "matmul", "number_kind"]
