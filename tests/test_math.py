"""The elementary functions: error in units in the last place, special values, properties."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from accuracy import DTYPES, call, finite, random_bits, sample, worst
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from buropt import _core

MAX_ULP = 2
INF, NAN = np.inf, np.nan


def expit(x):
    return 1 / (1 + mp.exp(-x))


def logaddexp(a, b):
    return max(a, b) + mp.log1p(mp.exp(-abs(a - b)))


UNARY = {
    "exp": mp.exp,
    "expm1": mp.expm1,
    "log": mp.log,
    "log1p": mp.log1p,
    "sqrt": mp.sqrt,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "expit": expit,
    "softplus": lambda x: logaddexp(mpf(0), x),
}
# Where the function is finite: between these numbers.
DOMAIN = {
    "log": (0, INF),
    "sqrt": (0, INF),
    "log1p": (-1, INF),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arccosh": (1, INF),
    "arctanh": (-1, 1),
}
# Errors above MAX_ULP.
LARGER_ERROR = {"arctan": 2.5}


@pytest.fixture(autouse=True)
def _precision():
    with mpmath.workdps(40):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary_error(name, dtype):
    x = sample(name, dtype, DOMAIN.get(name, (-INF, INF)))
    references = [UNARY[name](mpf(float(v))) for v in x]
    bound = 0.5 if name == "sqrt" else LARGER_ERROR.get(name, MAX_ULP)
    assert worst(call(name, x), references) <= bound


@pytest.mark.parametrize("dtype", DTYPES)
def test_power_error(dtype):
    rng = np.random.default_rng(7)
    wide, narrow = np.abs(random_bits(rng, 1000, dtype)), finite(rng.uniform(0, 3, 2000), dtype)
    x = np.concatenate([wide, narrow])
    x = x[(x > 0) & (x != 1)]
    span = 100 if dtype == np.float32 else 740  # of y log x: the results fill the whole range
    y = finite(rng.uniform(-span, span, x.size) / np.log(x.astype(np.float64)), dtype)
    integers = rng.integers(-12, 13, x.size).astype(dtype)
    for a, b in [(x, y), (x, integers), (-x, integers)]:
        references = [mpf(float(p)) ** mpf(float(q)) for p, q in zip(a, b, strict=True)]
        assert worst(call("power", a, b), references) <= MAX_ULP


@pytest.mark.parametrize("dtype", DTYPES)
def test_logaddexp_error(dtype):
    rng = np.random.default_rng(8)
    a = np.concatenate([random_bits(rng, 500, dtype), finite(rng.normal(0, 20, 2000), dtype)])
    b = a + finite(rng.normal(0, 20, a.size), dtype)
    references = [logaddexp(mpf(float(p)), mpf(float(q))) for p, q in zip(a, b, strict=True)]
    # Where max(a, b) < 0, its sum with a number of up to log 2 may cancel; the error does not.
    scales = [
        max(abs(r), -m, mp.ln2) if m < 0 else abs(r)
        for r, m in zip(references, np.maximum(a, b).tolist(), strict=True)
    ]
    assert worst(call("logaddexp", a, b), references, scales) <= MAX_ULP


def integer_power(x, n):
    builder = _core.Builder(x.dtype.name)
    node = builder.emit("integer_power", [builder.input("x", x.shape)], {"n": n})
    (y,) = _core.Program(builder.build([node], ["y"]))(x)
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [-1001, -64, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 64, 65, 1000])
def test_integer_power_error(n, dtype):
    rng = np.random.default_rng(n + 2000)
    span = 100 if dtype == np.float32 else 740
    x = np.exp(rng.uniform(-span, span, 200) / max(abs(n), 2)) * rng.choice([-1, 1], 200)
    x = finite(x, dtype)
    assert worst(integer_power(x, n), [mpf(float(v)) ** n for v in x]) <= MAX_ULP


@pytest.mark.parametrize("dtype", DTYPES)
def test_integer_power_at_special_values(dtype):
    x = np.array([0.0, -0.0, 1, -1, INF, -INF, NAN], dtype)
    for n in [-5, -2, -1, 0, 1, 2, 3, 6, 99, -100]:
        with np.errstate(all="ignore"):
            expected = np.power(x, dtype(n))
        y = integer_power(x, n)
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(np.signbit(y[:-1]), np.signbit(expected[:-1]))


PI, BIG = np.pi, 2.0**23 + 1
ZEROS_STAY = [(0.0, 0.0), (-0.0, -0.0)]
SPECIAL = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (1000, INF), (-1000, 0)],
    "expm1": [*ZEROS_STAY, (INF, INF), (-INF, -1), (1000, INF), (-1000, -1)],
    "log": [(0.0, -INF), (-0.0, -INF), (1, 0), (INF, INF), (-1, NAN), (-1e-40, NAN), (-INF, NAN)],
    "log1p": [*ZEROS_STAY, (-1, -INF), (INF, INF), (-1.5, NAN), (-INF, NAN)],
    "sqrt": [*ZEROS_STAY, (INF, INF), (-1, NAN), (-INF, NAN)],
    "sin": [*ZEROS_STAY, (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN)],
    "tan": [*ZEROS_STAY, (INF, NAN), (-INF, NAN)],
    "arcsin": [*ZEROS_STAY, (1, PI / 2), (-1, -PI / 2), (1.01, NAN), (-INF, NAN)],
    "arccos": [(0.0, PI / 2), (1, 0), (-1, PI), (-1.01, NAN), (INF, NAN)],
    "arctan": [*ZEROS_STAY, (INF, PI / 2), (-INF, -PI / 2)],
    "sinh": [*ZEROS_STAY, (INF, INF), (-INF, -INF), (1000, INF), (-1e30, -INF)],
    "cosh": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (-1000, INF), (1e30, INF)],
    "arcsinh": [*ZEROS_STAY, (INF, INF), (-INF, -INF)],
    "arccosh": [(1, 0), (INF, INF), (0.999, NAN), (-1e30, NAN), (-INF, NAN)],
    "arctanh": [*ZEROS_STAY, (1, INF), (-1, -INF), (1.01, NAN), (-1e30, NAN), (INF, NAN)],
    "floor": [*ZEROS_STAY, (1.5, 1), (-1.5, -2), (0.5, 0), (-1e-40, -1), (INF, INF), (BIG, BIG)],
    "ceil": [*ZEROS_STAY, (1.5, 2), (-1.5, -1), (-0.5, -0.0), (1e-40, 1), (-INF, -INF), (BIG, BIG)],
    "trunc": [*ZEROS_STAY, (1.5, 1), (-1.5, -1), (-0.5, -0.0), (INF, INF), (-BIG, -BIG)],
    "rint": [*ZEROS_STAY, (0.5, 0), (1.5, 2), (-0.5, -0.0), (-2.5, -2), (INF, INF), (BIG, BIG)],
    "tanh": [*ZEROS_STAY, (INF, 1), (-INF, -1), (100, 1), (-1e30, -1)],
    "expit": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (1000, 1), (-1000, 0)],
    "softplus": [
        *((0.0, np.log(2)), (-0.0, np.log(2)), (INF, INF), (-INF, 0)),
        *((1000, 1000), (-1000, 0), (3e38, 3e38), (-3e38, 0)),
    ],
    "sign": [(0.0, 0.0), (INF, 1), (-INF, -1), (1e-40, 1), (-1e-40, -1)],
    "absolute": [(0.0, 0.0), (-0.0, 0.0), (-INF, INF), (-1e-40, 1e-40)],
}


def assert_same(y, expected):
    """Equal values, and equal signs of zeros."""
    np.testing.assert_array_equal(y, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SPECIAL)
def test_unary_special_values(name, dtype):
    x, expected = np.array([*SPECIAL[name], (NAN, NAN), (-NAN, NAN)], dtype).T.copy()
    assert_same(call(name, x), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_power_special_values(dtype):
    tiny, big = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    odd = 2.0 ** (np.finfo(dtype).nmant + 1) - 1  # the largest odd number
    values = [0.0, 0.5, 1, 1.5, 2, 3, odd, odd + 1, INF, tiny, big, 1 - np.finfo(dtype).epsneg]
    values = np.array([*values, *(-v for v in values), NAN], dtype)
    a, b = (m.ravel().copy() for m in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.power(a, b)
    y = call("power", a, b)
    exact = np.isnan(expected) | np.isinf(expected) | (expected == 0) | (np.abs(expected) == 1)
    assert_same(y[exact], expected[exact])
    np.testing.assert_array_equal(np.signbit(y[~exact]), np.signbit(expected[~exact]))
    np.testing.assert_allclose(y[~exact], expected[~exact], rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logaddexp_special_values(dtype):
    rows = [
        (-INF, -INF, -INF),
        (INF, INF, INF),
        (INF, -INF, INF),
        (INF, 1, INF),
        (-INF, 1, 1),
        (0, -1000, 0),
        (0, 0, np.log(2)),
        (1, NAN, NAN),
        (INF, NAN, NAN),
        (-INF, NAN, NAN),
    ]
    a, b, expected = np.array(rows, dtype).T.copy()
    assert_same(call("logaddexp", a, b), expected)
    assert_same(call("logaddexp", b, a), expected)


BINARY = ["arctan2", "hypot", "copysign", "heaviside", "floor_divide", "remainder", "fmod"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_special_values_are_numpys(name, dtype):
    values = [0.0, 1, 2.5, 3, 0.1, 7.5, INF, 1e-40, 1e30, 1 + np.finfo(dtype).eps]
    values = np.array([*values, *(-v for v in values), NAN], dtype)
    a, b = (m.ravel().copy() for m in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    y = call(name, a, b)
    np.testing.assert_allclose(y, expected, rtol=4 * np.finfo(dtype).eps, atol=0)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_hypot_and_arctan2_error(dtype):
    rng = np.random.default_rng(11)
    a = np.concatenate([random_bits(rng, 500, dtype), finite(rng.normal(0, 3, 1000), dtype)])
    ratio = np.exp(rng.normal(0, 9, a.size)) * rng.choice([-1, 1], a.size)
    b = a / np.maximum(1, np.abs(a)) * finite(ratio, dtype)
    exact = [(mpf(float(p)), mpf(float(q))) for p, q in zip(a, b, strict=True)]
    assert worst(call("hypot", a, b), [mp.hypot(*pair) for pair in exact]) <= MAX_ULP
    assert worst(call("arctan2", a, b), [mp.atan2(*pair) for pair in exact]) <= 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_remainders_are_exact(dtype):
    rng = np.random.default_rng(12)
    a, b = (finite(rng.normal(0, 1, 2000) * 10 ** rng.uniform(-5, 5, 2000), dtype) for _ in "ab")
    exact = [(Fraction(float(p)), Fraction(float(q))) for p, q in zip(a, b, strict=True)]
    quotients = [np.float64(p // q).astype(dtype) for p, q in exact]
    np.testing.assert_array_equal(call("floor_divide", a, b), quotients)
    truncated = [float(p - q * int(p / q)) for p, q in exact]
    np.testing.assert_array_equal(call("fmod", a, b), np.array(truncated, dtype))
    remainders = np.array([float(p % q) for p, q in exact], dtype)
    np.testing.assert_array_equal(call("remainder", a, b), remainders)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_maximum_and_minimum_pass_nan_on(name, dtype):
    values = np.array([-INF, -1, 0, 2, INF, NAN], dtype)
    a, b = (m.ravel().copy() for m in np.meshgrid(values, values))
    np.testing.assert_array_equal(call(name, a, b), getattr(np, name)(a, b))


@pytest.mark.parametrize("dtype", DTYPES)
def test_lower_tail_of_expit_is_relative(dtype):
    x = np.linspace(-700 if dtype == np.float64 else -85, -40, 100).astype(dtype)
    np.testing.assert_allclose(call("expit", x), np.exp(x.astype(float)), rtol=np.finfo(dtype).eps)


# ---- Properties ---------------------------------------------------------------------------------

doubles = st.floats(allow_nan=False)
arrays = st.lists(st.floats(), min_size=1, max_size=70).map(np.array)


def at(name, *values):
    return call(name, *(np.array([v]) for v in values))[0]


ODD = ["sin", "tan", "tanh", "sinh", "arcsin", "arctan", "arcsinh", "arctanh"]


@given(st.sampled_from(ODD), doubles)
def test_odd(name, x):
    np.testing.assert_array_equal(at(name, -x), -at(name, x))


@given(doubles)
def test_cos_is_even(x):
    np.testing.assert_array_equal(at("cos", -x), at("cos", x))


INCREASING = ["exp", "expm1", "log", "log1p", "tanh", "expit", "softplus"]


@given(st.sampled_from(INCREASING), doubles, doubles)
def test_increasing(name, x, y):
    """Up to the error of the two values."""
    low, high = sorted((x, y))
    if low > DOMAIN.get(name, (-INF, INF))[0]:
        value = at(name, high)
        with np.errstate(over="ignore"):
            allowance = 0 if np.isinf(value) else 2 * MAX_ULP * np.spacing(np.abs(value))
            assert at(name, low) <= value + allowance


@given(doubles, doubles)
def test_logaddexp_is_symmetric_and_above_the_maximum(a, b):
    value = at("logaddexp", a, b)
    assert value == at("logaddexp", b, a)
    assert value >= max(a, b)


@given(st.floats(-700, 700))
def test_expit_of_opposites_sums_to_one(x):
    np.testing.assert_allclose(at("expit", x) + at("expit", -x), 1, rtol=1e-15)


@given(st.floats(-1e6, 1e6))
def test_sine_and_cosine_lie_on_the_circle(x):
    np.testing.assert_allclose(at("sin", x) ** 2 + at("cos", x) ** 2, 1, rtol=1e-15)


@given(st.floats(-1e150, 1e150))
def test_power_of_two_is_the_square(x):
    np.testing.assert_allclose(at("power", x, 2), x * x, rtol=5e-16, atol=1e-323)
    assert at("power", x, 0) == 1


@given(st.sampled_from(sorted(UNARY)), arrays, st.data())
def test_a_slice_gives_the_same_bits(name, x, data):
    """The value of an element does not depend on where in a register it stands."""
    begin = data.draw(st.integers(0, x.size - 1))
    end = data.draw(st.integers(begin + 1, x.size))
    for dtype in DTYPES:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            z = x.astype(dtype)
        part = call(name, z[begin:end].copy())
        np.testing.assert_array_equal(part, call(name, z)[begin:end])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_one_number_alone_gives_the_same_bits(name, dtype):
    """A scalar graph runs on plain floats, a tile on packs: one formula, the same result."""
    builder = _core.Builder(np.dtype(dtype).name)
    node = builder.emit(name, [builder.input("x", ())])
    program = _core.Program(builder.build([node], ["y"]))
    x = sample(name, dtype, DOMAIN.get(name, (-INF, INF)))[:500]
    alone = [float(program(np.array(v))[0]) for v in x]
    np.testing.assert_array_equal(np.array(alone, dtype), call(name, x))
