"""Functions of scipy.special in traced functions; their accuracy is in test_special.py."""

import numpy as np
import pytest
import scipy.special

import buropt as bo
from buropt.trace import TraceError

# Calls with a matrix with both signs, a vector with both, a positive vector.
VALUES = {
    "scipy.special.beta": lambda a, v, p: scipy.special.beta(p, 0.5),
    "scipy.special.betaln": lambda a, v, p: scipy.special.betaln(2, p),
    "scipy.special.boxcox": lambda a, v, p: scipy.special.boxcox(p, v),
    "scipy.special.cbrt": lambda a, v, p: scipy.special.cbrt(a),
    "scipy.special.cosm1": lambda a, v, p: scipy.special.cosm1(a),
    "scipy.special.digamma": lambda a, v, p: scipy.special.digamma(a),
    "scipy.special.entr": lambda a, v, p: scipy.special.entr(p),
    "scipy.special.erf": lambda a, v, p: scipy.special.erf(a),
    "scipy.special.erfc": lambda a, v, p: scipy.special.erfc(a),
    "scipy.special.erfcinv": lambda a, v, p: scipy.special.erfcinv(p / 8),
    "scipy.special.erfcx": lambda a, v, p: scipy.special.erfcx(a),
    "scipy.special.erfinv": lambda a, v, p: scipy.special.erfinv(a / 4),
    "scipy.special.exp10": lambda a, v, p: scipy.special.exp10(a),
    "scipy.special.exp2": lambda a, v, p: scipy.special.exp2(a),
    "scipy.special.exprel": lambda a, v, p: scipy.special.exprel(a),
    "scipy.special.gamma": lambda a, v, p: scipy.special.gamma(a - 0.1),
    "scipy.special.gammaln": lambda a, v, p: scipy.special.gammaln(a - 0.1),
    "scipy.special.huber": lambda a, v, p: scipy.special.huber(p, a),
    "scipy.special.i0": lambda a, v, p: scipy.special.i0(a),
    "scipy.special.i0e": lambda a, v, p: scipy.special.i0e(a),
    "scipy.special.i1": lambda a, v, p: scipy.special.i1(a),
    "scipy.special.i1e": lambda a, v, p: scipy.special.i1e(a),
    "scipy.special.inv_boxcox": lambda a, v, p: scipy.special.inv_boxcox(p, 0.25 * p),
    "scipy.special.iv": lambda a, v, p: scipy.special.iv(3, a) + scipy.special.iv([[-2.0]] * 2, a),
    "scipy.special.ive": lambda a, v, p: scipy.special.ive(2, a),
    "scipy.special.kl_div": lambda a, v, p: scipy.special.kl_div(p, 1 + p),
    "scipy.special.log_ndtr": lambda a, v, p: scipy.special.log_ndtr(9 * a),
    "scipy.special.loggamma": lambda a, v, p: scipy.special.loggamma(p),
    "scipy.special.logit": lambda a, v, p: scipy.special.logit(p / 8),
    "scipy.special.ndtr": lambda a, v, p: scipy.special.ndtr(a),
    "scipy.special.ndtri": lambda a, v, p: scipy.special.ndtri(p / 8),
    "scipy.special.pseudo_huber": lambda a, v, p: scipy.special.pseudo_huber(p, a),
    "scipy.special.psi": lambda a, v, p: scipy.special.psi(p),
    "scipy.special.rel_entr": lambda a, v, p: scipy.special.rel_entr(p, 1 + p),
    "scipy.special.round": lambda a, v, p: scipy.special.round(a),
    "scipy.special.xlog1py": lambda a, v, p: scipy.special.xlog1py(a, p),
    "scipy.special.xlogy": lambda a, v, p: scipy.special.xlogy(a, p),
}


@pytest.mark.parametrize("order", [0.5, [[0.0], [1.0]]])
def test_orders_are_constant_whole_numbers(order):
    with pytest.raises(TraceError, match="one constant whole number cannot be traced"):
        bo.grad(lambda x: np.sum(scipy.special.iv(order, x)))(np.ones(2))
    with pytest.raises(TraceError, match="Instead: a Python int as the order"):
        bo.grad(lambda x: np.sum(scipy.special.ive(x, 1.0)))(np.ones(2))
