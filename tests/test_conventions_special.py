"""Conventions of special functions: see test_conventions.py."""

import numpy as np
import pytest
import scipy.special as sp
from pointwise import INF, NAN, check

import buropt as bo


def second(f, *orders):
    """The derivative by two operands, which may be the same one."""
    for k in orders:
        f = bo.grad(f, argnums=k)
    return f


def test_xlogy_at_zero():
    check(sp.xlogy, [0, 2], 0, None, 0)
    check(sp.xlogy, [0, 1], 0, 0, 0)
    check(sp.xlogy, [0, 0], 0, -INF, 0)
    check(sp.xlogy, [0, NAN], NAN)
    check(sp.xlog1py, [0, -1], 0, -INF, 0)
    assert second(sp.xlogy, 0, 1)(0.0, 4.0) == second(sp.xlogy, 1, 0)(0.0, 4.0) == 0.25
    assert second(sp.xlog1py, 1, 0)(0.0, 3.0) == 0.25


def test_entr_at_zero():
    check(sp.entr, [0], 0, INF)
    check(sp.entr, [1], 0, -1)
    check(sp.entr, [-1], -INF)
    check(lambda x: 0 * sp.entr(x), [0], 0, 0)


def test_divergences_at_zero_and_of_equals():
    check(sp.rel_entr, [0, 2], 0, -INF, 0)
    check(sp.kl_div, [0, 2], 2, -INF, 1)
    check(sp.kl_div, [0, 0], 0)
    check(sp.rel_entr, [-1, 2], INF)
    check(sp.kl_div, [1, 0], INF)
    check(sp.rel_entr, [3, 3], 0, 1, -1)
    check(sp.kl_div, [3, 3], 0, 0, 0)
    assert second(sp.rel_entr, 0, 1)(0.0, 4.0) == second(sp.rel_entr, 1, 0)(0.0, 4.0) == -0.25


def test_huber_on_its_border():
    check(sp.huber, [1, 1], 0.5, 0, 1)
    check(sp.huber, [1, -1], 0.5, 0, -1)
    check(sp.huber, [1, 3], 2.5, 2, 1)
    check(sp.huber, [-1, 3], INF, 0, 0)
    curvature = second(sp.huber, 1, 1)
    assert [curvature(1.0, r) for r in (0.0, 1.0, -1.0, 1.1)] == [1, 1, 1, 0]


def test_pseudo_huber_at_zero():
    check(sp.pseudo_huber, [2, 0], 0, 0, 0)
    check(sp.pseudo_huber, [0, 2], 0, 2, 0)
    check(sp.pseudo_huber, [0, 0], 0, 0, 0)
    assert second(sp.pseudo_huber, 1, 1)(2.0, 0.0) == 1


def test_sinc_at_zero():
    check(np.sinc, [0], 1, 0)
    check(np.sinc, [3], 0)
    assert second(np.sinc, 0, 0)(0.0) == pytest.approx(-(np.pi**2) / 3, rel=1e-15)


def test_formulas_that_cancel():
    tiny = 2.0**-40
    assert bo.value_and_grad(sp.cosm1)(tiny) == (-(tiny**2) / 2, -tiny)
    assert second(sp.cosm1, 0, 0)(tiny) == -1
    assert bo.grad(sp.exprel)(0.0) == bo.grad(sp.exprel)(1e-200) == 0.5
    assert second(sp.exprel, 0, 0)(0.0) == pytest.approx(1 / 3, rel=1e-15)
    assert bo.value_and_grad(sp.logit)(0.5 + tiny) == pytest.approx((4 * tiny, 4), rel=1e-15)
    assert second(sp.logit, 0, 0)(0.5) == 0


def test_boxcox_at_lambda_zero():
    x = 3.0
    value, (by_x, by_power) = bo.value_and_grad(sp.boxcox, argnums=(0, 1))(x, 0.0)
    expected = (np.log(x), 1 / x, np.log(x) ** 2 / 2)
    assert (value, by_x, by_power) == pytest.approx(expected, rel=1e-15)
    value, (by_y, by_power) = bo.value_and_grad(sp.inv_boxcox, argnums=(0, 1))(2.0, 0.0)
    assert (value, by_y, by_power) == pytest.approx((np.exp(2), np.exp(2), -2 * np.exp(2)))


def test_log_ndtr_tail():
    assert bo.grad(sp.log_ndtr)(-1e9) == pytest.approx(1e9, rel=1e-15)
    assert second(sp.log_ndtr, 0, 0)(-1e9) == pytest.approx(-1, rel=1e-15)
    assert second(sp.log_ndtr, 0, 0)(40.0) == pytest.approx(0, abs=1e-300)


def test_poles_of_gamma():
    check(sp.gamma, [0], INF)
    check(sp.gamma, [-0.0], -INF)
    check(sp.gamma, [-2], NAN)
    check(sp.gammaln, [-2], INF)
    check(sp.loggamma, [-0.5], NAN)  # complex
    check(sp.psi, [0], -INF)
    check(sp.psi, [-0.0], INF)
    check(sp.psi, [-2], NAN)
    for f in (sp.gamma, sp.gammaln, sp.psi):
        assert not np.isfinite(bo.grad(f)(0.0))
        assert not np.isfinite(bo.grad(f)(-2.0))


def test_i0e_at_zero():
    check(sp.i0e, [0], 1, 0)
