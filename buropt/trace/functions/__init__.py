"""Rules for NumPy functions that are not ufuncs: one row each, in terms of a few nodes.

Each module registers its rules when it is imported, and importing this package imports them all;
a new module needs no entry anywhere.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
