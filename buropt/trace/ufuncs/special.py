"""Functions of scipy.special."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from buropt.trace.dispatch import SCIPY_UFUNCS, UfuncRule
from buropt.trace.errors import TraceError, location
from buropt.trace.kinds import distinct
from buropt.trace.ufuncs.rules import node

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


def _member(op: str, n: int) -> UfuncRule:
    """A rule that emits the n-th function of a family."""

    def rule(trace: Trace, x: Tracer) -> Tracer:
        return trace.emit(op, (x,), {"n": n})

    return rule


def _of_constant_order(op: str) -> UfuncRule:
    """A rule for functions whose first operand, the order, must be one constant integer."""

    def rule(trace: Trace, order: Tracer, x: Tracer) -> Tracer:
        constant = trace.builder.constant_value(order.node)
        orders = distinct(constant) if constant is not None else np.empty(0)
        if orders.size != 1 or not float(orders[0]).is_integer():
            raise TraceError(
                f"scipy.special.{op} of an order that is not one constant whole number cannot be "
                f"traced. {location(trace.name)} Instead: a Python int as the order."
            )
        n = abs(operator.index(int(orders[0])))  # those of orders n and -n are the same
        result = trace.emit(op, (x,), {"n": n})
        shape = np.broadcast_shapes(order.shape, x.shape)
        if shape == x.shape:
            return result
        return trace.emit("broadcast_to", (result,), {"shape": list(shape)})

    return rule


def _log_expit(trace: Trace, x: Tracer) -> Tracer:
    minus_x = trace.emit("negative", (x,))
    return trace.emit("negative", (trace.emit("logaddexp", (trace.constant(0.0), minus_x)),))


def _round(trace: Trace, x: Tracer) -> Tracer:
    """As `np.rint`, but what is rounded up to 0 is 0 and not -0."""
    return trace.emit("add", (trace.emit("rint", (x,)), trace.constant(0.0)))


def _loggamma(trace: Trace, x: Tracer) -> Tracer:
    """`gammaln` where it is the logarithm of a real number's gamma function, which is positive."""
    nan = trace.constant(math.nan)
    return trace.emit("where", (x < 0, nan, trace.emit("gammaln", (x,))))


_OF_THE_SAME_NAME = (
    "exp2 exp10 expm1 log1p expit logit cbrt cosm1 "
    "erf erfc erfinv erfcinv ndtr log_ndtr ndtri "
    "gamma gammaln beta betaln "
    "xlogy xlog1py entr rel_entr kl_div boxcox inv_boxcox huber pseudo_huber"
)

SCIPY_UFUNCS.update({name: node(name) for name in _OF_THE_SAME_NAME.split()})
SCIPY_UFUNCS.update(
    {
        "digamma": _member("polygamma", 0),
        "erfcx": _member("erfcx", 0),
        "exprel": _member("exprel", 0),
        "i0": _member("iv", 0),
        "i0e": _member("ive", 0),
        "i1": _member("iv", 1),
        "i1e": _member("ive", 1),
        "iv": _of_constant_order("iv"),
        "ive": _of_constant_order("ive"),
        "log_expit": _log_expit,
        "loggamma": _loggamma,
        "psi": _member("polygamma", 0),
        "round": _round,
    }
)
