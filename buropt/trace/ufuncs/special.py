"""Functions of scipy.special."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buropt.trace.dispatch import SCIPY_UFUNCS, UfuncRule
from buropt.trace.ufuncs.rules import node

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def _indexed(op: str, n: int) -> UfuncRule:
    """A rule that emits the n-th function of a family."""

    def rule(trace: Trace, x: Tracer) -> Tracer:
        return trace.emit(op, (x,), {"n": n})

    return rule


def _log_expit(trace: Trace, x: Tracer) -> Tracer:
    minus_x = trace.emit("negative", (x,))
    return trace.emit("negative", (trace.emit("logaddexp", (trace.constant(0.0), minus_x)),))


_SAME_NAME = (
    "exp2 exp10 expm1 log1p expit logit cbrt cosm1 erf erfc erfinv erfcinv ndtr log_ndtr ndtri"
)

SCIPY_UFUNCS.update({name: node(name) for name in _SAME_NAME.split()})
SCIPY_UFUNCS.update(
    {
        "erfcx": _indexed("erfcx", 0),
        "log_expit": _log_expit,
        "round": node("rint"),
    }
)
