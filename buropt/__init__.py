"""buropt: optimization research with a compiled gradient oracle.

Write the loss of one sample in NumPy; `compile` makes an oracle of it, and the methods in
`buropt.optim` run on a problem of `buropt.problems`, from Python or by ``python -m buropt.run``.
"""

from buropt import _interrupt as _interrupt  # isort: skip  first: it guards the other imports

try:
    from buropt import _core as _core
except ImportError as error:
    raise ImportError(
        f"buropt in {__path__[0]} cannot load its compiled core ({error}). If this is a source "
        "checkout, run `pip install -e .` in it, or leave its folder to use an installed buropt."
    ) from error

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from buropt import nn as nn
from buropt._core import Value as Value
from buropt.autodiff import GradientError as GradientError
from buropt.autodiff import check_grads as check_grads
from buropt.autodiff import grad as grad
from buropt.autodiff import hessian as hessian
from buropt.autodiff import hvp as hvp
from buropt.autodiff import jacobian as jacobian
from buropt.autodiff import jvp as jvp
from buropt.autodiff import value_and_grad as value_and_grad
from buropt.autodiff import vjp as vjp
from buropt.autodiff import vmap as vmap
from buropt.oracle import Oracle as Oracle
from buropt.oracle import compile as compile
from buropt.trace import DisconnectedInputWarning as DisconnectedInputWarning
from buropt.trace import TraceError as TraceError
from buropt.trace import UnsupportedOpError as UnsupportedOpError
from buropt.trace import tag as tag

if _TYPE_CHECKING:
    from buropt.oracle.loading import load as load
    from buropt.results import load_results as load_results
    from buropt.saving import load_arrays as load_arrays
    from buropt.saving import save_arrays as save_arrays

    __version__: str

# What few programs use, and what takes long to import: looked up when first asked for.
_LATER = {
    "load": "oracle.loading",
    "load_arrays": "saving",
    "load_results": "results",
    "save_arrays": "saving",
}

# What JAX has under names that are not here, and what to write.
_INSTEAD = {
    "hess": "bo.hessian",
    "jacfwd": "bo.jacobian, which takes the cheaper direction",
    "jacrev": "bo.jacobian, which takes the cheaper direction",
    "jit": "nothing: bo.grad, bo.vmap and bo.compile compile what they are given",
    "numpy": "NumPy itself",
    "scan": "a Python loop over the rows of an array, which is unrolled",
}


def __getattr__(name: str) -> _Any:
    value: _Any
    if name == "__version__":
        from importlib.metadata import version

        value = version("buropt")
    elif name in _LATER:
        from importlib import import_module

        value = getattr(import_module(f"buropt.{_LATER[name]}"), name)
    else:
        instead = f". Instead: {_INSTEAD[name]}." if name in _INSTEAD else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "__version__"})


__all__ = [
    "DisconnectedInputWarning",
    "GradientError",
    "Oracle",
    "TraceError",
    "UnsupportedOpError",
    "Value",
    "__version__",
    "check_grads",
    "compile",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "load",
    "load_arrays",
    "load_results",
    "nn",
    "save_arrays",
    "tag",
    "value_and_grad",
    "vjp",
    "vmap",
]
