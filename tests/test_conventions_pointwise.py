"""Conventions at kinks, poles, borders, infinities, and of special functions.

See test_conventions.py.
"""

import numpy as np
import pytest
from pointwise import INF, NAN, check
from scipy.special import erfcinv, erfinv, logit, ndtri

import buropt as bo

# Kinks


def test_abs_at_zero():
    check(np.abs, [0], 0, 0)
    check(np.abs, [-2], 2, -1)


@pytest.mark.parametrize("x", [-3, 0, 3])
def test_sign_has_slope_zero(x):
    check(np.sign, [x], np.sign(x), 0)


def test_ties_share_equally():
    for f in (np.maximum, np.minimum):
        check(f, [1, 1], 1, 0.5, 0.5)
        check(f, [INF, INF], INF, 0.5, 0.5)
        check(f, [0.0, -0.0], 0, 0.5, 0.5)


def test_maximum_propagates_nan():
    for f in (np.maximum, np.minimum):
        check(f, [NAN, 1], NAN, NAN, NAN)
        check(f, [1, NAN], NAN, NAN, NAN)


def test_fmax_passes_over_nan():
    for f in (np.fmax, np.fmin):
        check(f, [1, 1], 1, 0.5, 0.5)
        check(f, [NAN, 1], 1, 0, 1)
        check(f, [1, NAN], 1, 1, 0)
        check(f, [NAN, NAN], NAN, NAN, NAN)
    check(np.fmax, [2, 1], 2, 1, 0)
    check(np.fmin, [2, 1], 1, 0, 1)


def test_clip_on_its_border():
    for x, slope in [(-1, 0), (0, 1), (0.5, 1), (1, 1), (2, 0), (NAN, 1)]:
        check(lambda x: np.clip(x, 0, 1), [x], np.clip(x, 0, 1), slope)


def test_rounding_has_slope_zero():
    for f in (np.floor, np.ceil, np.trunc, np.rint, np.round, lambda x: x // 1.0):
        check(f, [2], 2, 0)
        check(f, [2.5], f(2.5), 0)


def test_integers_divided_by_zero():
    """The integers are an argument that is not differentiated by, so they stay integers."""
    n, x = np.array([7, 0, -7]), np.ones(3)
    quotients = bo.jacobian(lambda x, n: x * (n // 0))(x, n).diagonal()
    np.testing.assert_array_equal(quotients, [np.inf, np.nan, -np.inf])
    assert np.isnan(bo.jacobian(lambda x, n: x * (n % 0))(x, n).diagonal()).all()


def test_slopes_of_remainders():
    check(np.remainder, [7, 2], 1, 1, -3)
    check(np.remainder, [-7, 2], 1, 1, 4)
    check(np.remainder, [6, 2], 0, 1, -3)
    check(np.fmod, [-7, 2], -1, 1, 3)
    check(np.fmod, [-6, 2], -0.0, 1, 3)


def test_copysign_at_zero():
    check(np.copysign, [0, -1], -0.0, 0, 0)
    check(np.copysign, [-2, -0.0], -2, 1, 0)
    check(np.copysign, [2, -3], -2, -1, 0)


@pytest.mark.filterwarnings("ignore::buropt.DisconnectedInputWarning")
def test_heaviside():
    check(np.heaviside, [0, 0.25], 0.25, 0, 1)
    check(np.heaviside, [-1, 0.25], 0, 0, 0)
    check(np.heaviside, [2, 0.25], 1, 0, 0)
    check(np.heaviside, [NAN, 0.25], NAN, 0, 0)


def test_questions_about_numbers_are_masks():
    check(lambda x: x + 2 * np.isfinite(x), [3], 5, 1)
    check(lambda x: np.where(np.isnan(x) | np.isinf(x), 1, x), [-INF], 1, 0)
    check(lambda x: x * np.signbit(x), [-3], -3, 1)


def test_nan_to_num_passes_what_is_finite():
    check(np.nan_to_num, [3], 3, 1)
    check(np.nan_to_num, [NAN], 0, 0)
    check(lambda x: np.nan_to_num(x, posinf=4), [INF], 4, 0)
    check(lambda x, v: np.nan_to_num(x, neginf=v), [-INF, 4], 4, 0, 1)


def test_hypot_at_zero():
    check(np.hypot, [0, 0], 0, 0, 0)
    check(np.hypot, [-0.0, 2], 2, 0, 1)
    assert bo.grad(bo.grad(np.hypot))(0.0, 0.0) == 0.0


def test_arctan2_at_zero():
    check(np.arctan2, [0, 0], 0, 0, 0)
    check(np.arctan2, [0, 2], 0, 0.5, 0)


def test_comparisons_have_derivative_zero():
    check(lambda x: (x >= 0) * x, [2], 2, 1)
    check(lambda x: x + (x > 1) * ~(x < 0), [2], 3, 1)


def test_masks_are_zero_or_one():
    x = np.array([-1.0, 0.0, 2.0, 3.0])
    count, slope = bo.value_and_grad(lambda x: np.sum(x > 0) + 0 * x[0])(x)
    assert (count, list(slope)) == (2.0, [0.0] * 4)


def test_nan_as_a_condition_is_true():
    check(lambda x, a, b: np.where(x, a, b), [NAN, 1, 2], 1, 0, 1, 0)


# Poles, borders and infinities


def test_division_by_zero():
    check(np.divide, [1, 0], INF, INF, -INF)
    check(np.divide, [0, 0], NAN, INF, NAN)
    check(np.reciprocal, [0], INF, -INF)
    check(lambda x: x**-2, [0], INF, -INF)


def test_sqrt_at_zero():
    check(np.sqrt, [0], 0, INF)
    check(np.sqrt, [-1], NAN, NAN)


def test_zero_cotangent_meets_infinite_slope():
    check(lambda x: 0 * np.sqrt(x), [0], 0, 0)
    check(lambda x: 0 * np.log(x + 1), [-1], NAN, 0)  # the value itself is 0 times -inf
    check(lambda x: 0 * np.log1p(x), [-1], NAN, 0)
    check(lambda a, b: 0 * (a / b), [1, 0], NAN, 0, 0)
    check(lambda x: 0 * np.reciprocal(x), [0], NAN, 0)
    check(lambda a, b: 0 * a**b, [0, 0.25], 0, 0, 0)


def test_cbrt_at_zero():
    check(np.cbrt, [0], 0, INF)
    check(lambda x: np.cbrt(x) ** 3, [0], 0, 0)
    check(np.cbrt, [-8], -2)


def test_zero_cotangent_at_the_ends_of_inverse_functions():
    ends = {np.arcsin: 1, np.arccos: 1, np.arccosh: 1, np.arctanh: -1, np.log2: 0, np.log10: 0}
    ends |= {np.cbrt: 0, logit: 1, erfinv: 1, erfcinv: 0, ndtri: 0}
    for f, x in ends.items():
        assert abs(bo.grad(f)(float(x))) == INF
        assert bo.grad(lambda x, f=f: 0 * f(x))(float(x)) == 0


def test_log_at_and_below_zero():
    check(np.log, [0], -INF, INF)
    check(np.log, [-2], NAN, -0.5)


def test_branch_not_taken_contributes_zero():
    check(lambda x: np.where(x > 0, np.sqrt(x), 0.0), [0], 0, 0)
    check(lambda x: np.where(x > 0, 1 / x, x), [0], 0, 1)
    check(lambda x: np.where(x > 0, np.log(x), x), [-1], -1, 1)
    check(lambda x: np.where(x < 9, x, np.exp(np.exp(np.exp(x)))), [8], 8, 1)
    curvature = bo.grad(bo.grad(lambda x: np.where(x > 0, np.sqrt(x), x * x)))
    assert curvature(0.0) == 2.0
    M, x = np.array([[INF, 1.0], [2.0, NAN]]), np.array([1.0, 2.0])
    for product in (lambda x: M[0] @ x, lambda x: x @ M[1], lambda x: np.sum(M @ x.reshape(2, 1))):
        gradient = bo.grad(lambda x, f=product: np.where(x[0] > 5, f(x), x[1]))(x)
        np.testing.assert_array_equal(gradient, [0.0, 1.0])


def test_norm_at_zero():
    def gradient(f):
        return bo.grad(f)(np.zeros(3))

    np.testing.assert_array_equal(gradient(lambda x: np.sqrt(x @ x)), [NAN] * 3)
    guarded = gradient(lambda x: np.where(x @ x > 0, np.sqrt(x @ x), 0.0))
    np.testing.assert_array_equal(guarded, [0.0] * 3)


def test_integer_power_uses_no_logarithm():
    check(lambda x: x**3, [-2], -8, 12)
    check(lambda x: x**3, [0], 0, 0)
    check(lambda x: x**1, [0], 0, 1)
    check(lambda x: x**2.0, [-3], 9, -6)
    check(lambda x: x**-2, [-2], 0.25, 0.25)


@pytest.mark.parametrize("x", [0, -1, INF, NAN])
def test_power_zero_is_one(x):
    with pytest.warns(bo.DisconnectedInputWarning):
        check(lambda x: x**0, [x], 1, 0)


def test_fractional_power():
    check(lambda x: x**0.5, [4], 2, 0.25)
    check(lambda x: x**0.5, [0], 0, INF)
    check(lambda x: x**1.5, [0], 0, 0)
    check(lambda x: x**1.5, [-1], NAN, NAN)


def test_traced_power_at_base_zero():
    check(np.power, [0, 2], 0, 0, 0)
    check(np.power, [0, 0], 1, 0, 0)


def test_logaddexp_of_infinities():
    check(np.logaddexp, [INF, INF], INF, 0.5, 0.5)
    check(np.logaddexp, [-INF, -INF], -INF, 0, 0)
    check(np.logaddexp, [3, -INF], 3, 1, 0)
    check(np.logaddexp, [INF, -INF], INF, 1, 0)


def test_logaddexp_tails():
    def loss(m):
        return np.logaddexp(0.0, -m)

    check(loss, [-800], 800, -1)
    check(loss, [800], 0, 0)
    curvature, third = bo.grad(bo.grad(loss)), bo.grad(bo.grad(bo.grad(loss)))
    assert [curvature(m) for m in (-800.0, 0.0, 800.0)] == [0.0, 0.25, 0.0]
    assert [third(m) for m in (-800.0, 800.0)] == [0.0, 0.0]


def test_logaddexp2_of_infinities():
    check(np.logaddexp2, [INF, INF], INF, 0.5, 0.5)
    check(np.logaddexp2, [-INF, -INF], -INF, 0, 0)
    check(np.logaddexp2, [3, -INF], 3, 1, 0)


def test_overflow_is_not_repaired():
    check(lambda m: np.log(1 + np.exp(-m)), [-800], INF, NAN)
