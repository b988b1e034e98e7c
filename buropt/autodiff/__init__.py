"""Derivatives of plain functions of arrays, by transforming the graph that tracing records.

`derivative.py` has `grad` and `value_and_grad`, and the cache of compiled programs; `program.py`
what happens on each call.
"""

from buropt.autodiff.derivative import CacheInfo as CacheInfo
from buropt.autodiff.derivative import Derivative as Derivative
from buropt.autodiff.derivative import grad as grad
from buropt.autodiff.derivative import value_and_grad as value_and_grad

__all__ = ["CacheInfo", "Derivative", "grad", "value_and_grad"]
