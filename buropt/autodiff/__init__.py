"""Derivatives of plain functions of arrays, by transforming the graph that tracing records.

Start reading at `derivative.py`, which has what users call. `transforms.py` and `jacobian.py` say
what each derivative records, `compiled.py` keeps the programs, and `program.py` is what happens on
each call. `check.py` compares derivatives with differences.
"""

from buropt.autodiff.check import GradientError as GradientError
from buropt.autodiff.check import check_grads as check_grads
from buropt.autodiff.compiled import CacheInfo as CacheInfo
from buropt.autodiff.compiled import Derivative as Derivative
from buropt.autodiff.derivative import grad as grad
from buropt.autodiff.derivative import hessian as hessian
from buropt.autodiff.derivative import hvp as hvp
from buropt.autodiff.derivative import jacobian as jacobian
from buropt.autodiff.derivative import jvp as jvp
from buropt.autodiff.derivative import value_and_grad as value_and_grad
from buropt.autodiff.derivative import vjp as vjp
from buropt.autodiff.derivative import vmap as vmap

__all__ = [
    "CacheInfo",
    "Derivative",
    "GradientError",
    "check_grads",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vjp",
    "vmap",
]
