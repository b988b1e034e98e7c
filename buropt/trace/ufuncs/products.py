"""Products of vectors and matrices, of which there may be stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.trace.dispatch import UFUNCS
from buropt.trace.ufuncs.arithmetic import matmul

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def _vecdot(trace: Trace, a: Tracer, b: Tracer) -> Tracer:
    product: Any = a * b  # of masks, where both are true
    total: Tracer = product.any(axis=-1) if product.is_bool else product.sum(axis=-1)
    return total


def _matvec(trace: Trace, a: Tracer, b: Tracer) -> Tracer:
    return matmul(trace, a, b[..., None])[..., 0]


def _vecmat(trace: Trace, a: Tracer, b: Tracer) -> Tracer:
    return matmul(trace, a[..., None, :], b)[..., 0, :]


for _name, _rule in (("vecdot", _vecdot), ("matvec", _matvec), ("vecmat", _vecmat)):
    if hasattr(np, _name):  # from NumPy 2.0 or 2.2 on
        UFUNCS[getattr(np, _name)] = _rule
