"""Elementwise functions of NumPy: values, kinds of results, what is refused.

The accuracy of the functions is in test_math.py, their derivatives are in test_ops.py.
"""

import numpy as np
import pytest

import buropt as bo
from buropt.trace import Trace

EXTREME = np.array([[np.inf, 0.0, 1.0], [np.nan, 2.0, np.inf]])

# One or more calls a row, of a matrix with both signs, a vector with both, a positive one.
VALUES = {
    "np.arccos": lambda a, v, p: np.arccos(a / 4),
    "np.arccosh": lambda a, v, p: np.arccosh(1 + p),
    "np.arcsin": lambda a, v, p: np.arcsin(a / 4),
    "np.arcsinh": lambda a, v, p: np.arcsinh(a),
    "np.arctan": lambda a, v, p: np.arctan(a),
    "np.arctan2": lambda a, v, p: np.arctan2(a, v) + np.arctan2(1, v),
    "np.arctanh": lambda a, v, p: np.arctanh(a / 4),
    "np.around": lambda a, v, p: np.around(a) + np.around(37 * p, decimals=-1),
    "np.cbrt": lambda a, v, p: np.cbrt(a),
    "np.ceil": lambda a, v, p: np.ceil(a),
    "np.copysign": lambda a, v, p: np.copysign(a, v) + np.copysign(2, a),
    "np.cosh": lambda a, v, p: np.cosh(a),
    "np.deg2rad": lambda a, v, p: np.deg2rad(a),
    "np.degrees": lambda a, v, p: np.degrees(a),
    "np.divmod": lambda a, v, p: divmod(a, v)[0] * np.divmod(a, 2)[1] + divmod(7, p)[0],
    "np.exp2": lambda a, v, p: np.exp2(a),
    "np.fix": lambda a, v, p: np.fix(a),
    "np.floor": lambda a, v, p: np.floor(a),
    "np.floor_divide": lambda a, v, p: a // v + 7 // p,
    "np.fmax": lambda a, v, p: np.fmax(a, v) + np.fmax(a > 0, a > 1),
    "np.fmin": lambda a, v, p: np.fmin(a + EXTREME, v) + np.fmin(a > 0, a > 1),
    "np.fmod": lambda a, v, p: np.fmod(a, v),
    "np.heaviside": lambda a, v, p: np.heaviside(a, 0.5) + np.heaviside(0 * v, p),
    "np.hypot": lambda a, v, p: np.hypot(a, v),
    "np.i0": lambda a, v, p: np.i0(a),
    "np.isfinite": lambda a, v, p: np.isfinite(a + EXTREME),
    "np.isinf": lambda a, v, p: np.isinf(a + EXTREME),
    "np.isnan": lambda a, v, p: np.isnan(a + EXTREME),
    "np.isneginf": lambda a, v, p: np.isneginf(a - EXTREME),
    "np.isposinf": lambda a, v, p: np.isposinf(a + EXTREME),
    "np.log10": lambda a, v, p: np.log10(p),
    "np.log2": lambda a, v, p: np.log2(p),
    "np.logaddexp2": lambda a, v, p: np.logaddexp2(a, v),
    "np.nan_to_num": lambda a, v, p: (
        np.nan_to_num(a + EXTREME) + np.nan_to_num(a - EXTREME, nan=1, posinf=2, neginf=v)
    ),
    "np.rad2deg": lambda a, v, p: np.rad2deg(a),
    "np.radians": lambda a, v, p: np.radians(a),
    "np.real": lambda a, v, p: np.real(a) + a.real + a.conj() + a.conjugate(),
    "np.remainder": lambda a, v, p: a % v + np.mod(7, p),
    "np.rint": lambda a, v, p: np.rint(a),
    "np.round": lambda a, v, p: np.round(a) + a.round(1) + np.round(37 * p, -1),
    "np.signbit": lambda a, v, p: np.signbit(a) | np.signbit(-0.0 * p),
    "np.sinc": lambda a, v, p: np.sinc(a - 0.1),
    "np.sinh": lambda a, v, p: np.sinh(a),
    "np.tan": lambda a, v, p: np.tan(a),
    "np.trunc": lambda a, v, p: np.trunc(a),
}


def kind_of(function, *kinds):
    with Trace() as trace:
        return function(*(trace.input(f"x{i}", (3,), kind=k) for i, k in enumerate(kinds))).kind


@pytest.mark.parametrize("function", [np.floor_divide, np.remainder, np.fmod])
def test_division_of_integers_gives_integers(function):
    assert kind_of(function, "i", "i") == kind_of(function, "b", "i") == "i"
    assert kind_of(function, "i", "f") == "f"
    assert kind_of(lambda x: function(x, 2), "i") == "i"
    assert kind_of(lambda x: function(x, 2.0), "i") == "f"


@pytest.mark.parametrize("function", [np.floor, np.ceil, np.trunc, np.round])
def test_integers_are_round(function):
    assert kind_of(function, "i") == "i"
    assert kind_of(function, "f") == "f"


@pytest.mark.parametrize("function", [np.isnan, np.isinf, np.isfinite, np.signbit, np.isposinf])
def test_what_is_not_a_number_is_a_mask(function):
    assert kind_of(function, "f") == kind_of(function, "i") == "b"


@pytest.mark.parametrize("name", ["sin", "arctan", "sinh", "rint", "deg2rad"])
def test_functions_of_integers_are_floats(name):
    assert kind_of(getattr(np, name), "i") == "f"


def test_rounding_of_python():
    value, slope = bo.value_and_grad(lambda x: x * round(x, 1) + round(x))(2.26)
    assert (value, slope) == (pytest.approx(2.26 * 2.3 + 2), pytest.approx(2.3))


def test_conjugate_is_a_copy_and_real_is_not():
    def doubled(part):
        def loss(x):
            y = x + 1
            other = part(y)
            other *= 2
            return np.sum(y)

        return bo.grad(loss)(np.zeros(2)).tolist()

    assert doubled(np.conjugate) == [1.0, 1.0]
    assert doubled(np.real) == [2.0, 2.0]


@pytest.mark.parametrize("name", ["angle", "imag", "nextafter", "spacing", "ldexp", "frexp"])
def test_refused(name):
    arguments = (2,) if name in ("nextafter", "ldexp") else ()
    with pytest.raises(bo.trace.UnsupportedOpError, match=rf"np\.{name} cannot be traced"):
        bo.grad(lambda x: getattr(np, name)(x, *arguments))(1.0)
