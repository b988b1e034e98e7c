"""Tracing: NumPy calls on tracers give NumPy's values, and what cannot be traced says so."""

import copy
import inspect
import operator

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tracing import assert_like_numpy, evaluate, rooms

from buropt.trace import Trace, Tracer, supported_functions
from buropt.trace.dispatch import FUNCTIONS, SCIPY_UFUNCS, UFUNCS, alternative, public_name
from buropt.trace.hints import HINTS

# ---- values

MATRIX = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]])
VECTOR = np.array([1.5, 0.25, -2.0])
POSITIVE = np.array([0.5, 1.0, 7.25])

# One or more calls a row. The table goes on in the files test_functions_*.py; together they use
# everything that can be traced.
VALUES = {
    "np.absolute": lambda a, v, p: abs(a) + np.abs(a > 0),
    "np.add": lambda a, v, p: (a + v) + np.add(1, v),
    "np.atleast_1d": lambda a, v, p: np.atleast_1d(v[0]) + np.atleast_1d(v, a)[0],
    "np.atleast_2d": lambda a, v, p: np.atleast_2d(v) * np.atleast_2d(v[0], a)[0],
    "np.bitwise_and": lambda a, v, p: (a > 0) & (a < 2),
    "np.bitwise_or": lambda a, v, p: (a > 1) | (a < 0),
    "np.bitwise_xor": lambda a, v, p: (a > 0) ^ (v > 0),
    "np.broadcast_to": lambda a, v, p: np.broadcast_to(v, (2, 2, 3)),
    "np.clip": lambda a, v, p: a.clip(-1, 1) + np.clip(v, None, p) - np.clip(a, 0.5, None),
    "np.column_stack": lambda a, v, p: np.column_stack([v, a.T]),
    "np.concatenate": lambda a, v, p: np.concatenate([a, a[:1]]) + np.concatenate([v[:1], v[1:]]),
    "np.conjugate": lambda a, v, p: np.conj(a),
    "np.copy": lambda a, v, p: np.copy(a) + v.copy() + copy.deepcopy(v),
    "np.cos": lambda a, v, p: np.cos(a),
    "np.divide": lambda a, v, p: a / v + 1 / p,
    "np.dot": lambda a, v, p: np.dot(a, v) + v.dot(p) + np.dot(2.0, v[:2]),
    "np.equal": lambda a, v, p: a == 2.0,
    "np.exp": lambda a, v, p: np.exp(a),
    "np.expand_dims": lambda a, v, p: np.expand_dims(a, (0, -1)) * np.expand_dims(v, 1),
    "np.expm1": lambda a, v, p: np.expm1(a),
    "np.fabs": lambda a, v, p: np.fabs(a),
    "np.flip": lambda a, v, p: np.flip(a) + np.flip(a, axis=0),
    "np.float_power": lambda a, v, p: np.float_power(p, v),
    "np.full_like": lambda a, v, p: np.full_like(a, 3.0) + np.full_like(a, v),
    "np.greater": lambda a, v, p: a > v,
    "np.greater_equal": lambda a, v, p: a >= 2.0,
    "np.hstack": lambda a, v, p: np.hstack([a, a]) * np.hstack([v, v[:2], 1.0]),
    "np.inner": lambda a, v, p: np.inner(a, a) + np.inner(v, p),
    "np.invert": lambda a, v, p: ~(a > 0),
    "np.less": lambda a, v, p: a < v,
    "np.less_equal": lambda a, v, p: a <= 2.0,
    "np.log": lambda a, v, p: np.log(p),
    "np.log1p": lambda a, v, p: np.log1p(p),
    "np.logaddexp": lambda a, v, p: np.logaddexp(a, v) + np.logaddexp(0, -800 * a),
    "np.logical_and": lambda a, v, p: np.logical_and(a, v > 0),
    "np.logical_not": lambda a, v, p: np.logical_not(a - 2.0),
    "np.logical_or": lambda a, v, p: np.logical_or(a - 2.0, a > 100),
    "np.logical_xor": lambda a, v, p: np.logical_xor(a - 2.0, a > 1),
    "np.matmul": lambda a, v, p: a @ v + (a @ a.T) @ a[:, 0] + v @ p,
    "np.maximum": lambda a, v, p: np.maximum(a, v) + np.maximum(0, a),
    "np.mean": lambda a, v, p: a.mean() + np.mean(a, axis=1, keepdims=True) + np.mean(a > 0),
    "np.minimum": lambda a, v, p: np.minimum(a, 1) + np.minimum(a > 0, a > 1),
    "np.moveaxis": lambda a, v, p: np.moveaxis(a[None, :, :], 0, -1),
    "np.multiply": lambda a, v, p: v * a * (a > 0),
    "np.ndim": lambda a, v, p: v * np.ndim(a),
    "np.negative": lambda a, v, p: -a,
    "np.not_equal": lambda a, v, p: a != 2.0,
    "np.ones_like": lambda a, v, p: np.ones_like(a) + v,
    "np.outer": lambda a, v, p: np.outer(v, p),
    "np.positive": lambda a, v, p: +a,
    "np.power": lambda a, v, p: p**v + 2.0**a + a**3 + a**2.0 + a**-2 + p**0.5 + p**1.5 + a**0,
    "np.ravel": lambda a, v, p: a.ravel() + a.flatten() + np.ravel(a.T),
    "np.reciprocal": lambda a, v, p: np.reciprocal(a),
    "np.reshape": lambda a, v, p: a.reshape(3, -1) + a.reshape((3, 2)) + np.reshape(a, (3, 2)),
    "np.shape": lambda a, v, p: v * np.shape(a)[1],
    "np.sign": lambda a, v, p: np.sign(a) + np.sign(0 * a),
    "np.sin": lambda a, v, p: np.sin(a),
    "np.size": lambda a, v, p: v * (np.size(a) + np.size(a, 1)),
    "np.sqrt": lambda a, v, p: np.sqrt(p),
    "np.square": lambda a, v, p: np.square(a),
    "np.squeeze": lambda a, v, p: a[:1].squeeze() + np.squeeze(a[None, :1], axis=(0, 1)),
    "np.stack": lambda a, v, p: np.stack([v, p]) + np.stack([v[0] * v, 2 * v], axis=0),
    "np.subtract": lambda a, v, p: a - v - 1,
    "np.sum": lambda a, v, p: a.sum() + a.sum(axis=(0, -1), keepdims=True) + np.sum(a > 0, axis=0),
    "np.swapaxes": lambda a, v, p: a.swapaxes(0, 1) + np.swapaxes(a, -1, 0),
    "np.take": lambda a, v, p: np.take(a, [2, 0], axis=1) + np.take(v, 1),
    "np.take_along_axis": lambda a, v, p: np.take_along_axis(a, np.array([[1], [2]]), axis=1),
    "np.tanh": lambda a, v, p: np.tanh(a),
    "np.transpose": lambda a, v, p: a.T + np.transpose(a) + a.transpose(1, 0) + a.transpose((1, 0)),
    "np.vdot": lambda a, v, p: np.vdot(a, a) + np.vdot(v, p),
    "np.vstack": lambda a, v, p: np.vstack([v, a]),
    "np.where": lambda a, v, p: np.where(a > 0, a, v) + np.where(v, a, 1.0),
    "np.zeros_like": lambda a, v, p: np.zeros_like(a) + v,
    "scipy.special.expit": lambda a, v, p: scipy.special.expit(a),
    "scipy.special.expm1": lambda a, v, p: scipy.special.expm1(a),
    "scipy.special.log1p": lambda a, v, p: scipy.special.log1p(p),
    "scipy.special.log_expit": lambda a, v, p: scipy.special.log_expit(100 * a),
}


for room in rooms():
    VALUES |= room.VALUES


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    assert_like_numpy(VALUES[name], MATRIX, VECTOR, POSITIVE)


def test_everything_supported_is_tested():
    assert sorted(VALUES) == supported_functions()


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "@": operator.matmul,
    "<": operator.lt,
    "==": operator.eq,
}
OPERANDS = {
    "ndarray": np.array([[2.0, 0.5, 1.0], [3.0, 1.5, 0.25], [1.0, 4.0, 2.5]]),
    "float64": np.float64(2.5),
    "float32": np.float32(2.5),
    "float": 2.5,
    "int": 3,
    "bool": True,
    "0-d": np.array(2.5),
    "integers": np.array([1, 2, 3]),
    "list": [1.0, 2.0, 3.0],
}


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("kind", OPERANDS)
def test_operand_order(kind, symbol, side):
    apply, operand = OPERATORS[symbol], OPERANDS[kind]

    def function(x):
        return apply(operand, x) if side == "left" else apply(x, operand)

    if symbol == "@" and np.ndim(operand) == 0:
        with pytest.raises(ValueError, match=r"matmul: an operand has shape \(\)"):
            evaluate(function, POSITIVE)
    else:
        assert_like_numpy(function, POSITIVE)


@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0))
def test_broadcasting(shapes):
    a, b, c = (np.arange(np.prod(shape)).reshape(shape) + 1.0 for shape in shapes.input_shapes)
    assert_like_numpy(lambda a, b, c: np.where(a > b, a + b * c, c) - a / b, a, b, c)


@given(data=st.data())
def test_basic_indexing(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=4))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=5))
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    assert_like_numpy(lambda x: x[key] * 1.0, x)


def test_iteration_and_unpacking():
    assert_like_numpy(lambda a: sum(row @ row for row in a) + len(a), MATRIX)
    assert_like_numpy(lambda v: next(x * y + z for x, y, z in [v]), VECTOR)


def test_masks_count_as_numbers():
    assert_like_numpy(lambda v: 2.0 * (v > 0) + (v > 1) - (v < 0).astype(float), VECTOR)
    assert_like_numpy(lambda v: (v > 0) + (v > 1), VECTOR)  # NumPy's `or`
    assert_like_numpy(lambda v: (v - 1.5).astype(bool), VECTOR)


@pytest.mark.parametrize(
    "function",
    [
        lambda v: np.ones_like(v > 0) + np.ones_like(v > 0),
        lambda v: np.zeros_like(v > 0) | (v > 1),
        lambda v: np.full_like(v > 0, 0.3),
        lambda v: np.full_like(v > 0, np.nan),
        lambda v: np.full_like(v > 0, v - 0.25),
        lambda v: np.full_like(v, v[0] > 0) + np.full_like(v, v[0] > 0),
        lambda v: np.full_like(v > 0, 0.3, dtype=float),
        lambda v: np.ones_like(v, dtype=bool) + np.ones_like(v, dtype=bool),
        lambda v: np.concatenate([v > 0, v > 1]) + np.hstack([v > 1, v > 0]),
        lambda v: np.stack([v > 0, v > 1], dtype=float) + np.vstack([v > 1, v > 0], dtype=float),
        lambda v: (v > 0) ** 1 + (v > 0) ** 1,
        lambda v: np.conj(v > 0) + np.conj(v > 0),
        lambda v: np.einsum("ij->ji", np.atleast_2d(v > 0)),
        lambda v: np.copy(v > 0, order="K") + np.ones_like(v > 0, order="A"),
    ],
)
def test_what_becomes_of_masks(function):
    assert_like_numpy(function, VECTOR)


# ---- in-place operators


def test_augmented_assignment_rebinds_scalars():
    def function(x):
        y = x * x
        z = y
        y += x
        y *= 2
        return y + 10 * z

    assert evaluate(function, 3.0) == 24.0 + 90.0


def test_augmented_assignment_changes_arrays_for_all_names():
    def function(x):
        y = x * x
        z = y
        y += 1
        y /= 2
        return y * z

    assert_like_numpy(function, VECTOR)


def test_augmented_assignment_of_a_view_of_nothing_else():
    def function(x):
        y = (x * x).reshape(3, 1)
        y -= 1.0
        return y

    assert_like_numpy(function, VECTOR)


# ---- the tables


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0",
    reason="functions in C tell their parameters from NumPy 2.4 on",
)
def test_parameters_are_numpys():
    for numpy_function, row in FUNCTIONS.items():
        parameters = inspect.signature(numpy_function).parameters.values()
        if numpy_function is np.einsum:
            continue  # its subscripts are part of *operands
        assert list(row.parameters) == [
            ("*" if p.kind is p.VAR_POSITIONAL else "") + p.name
            for p in parameters
            if p.kind is not p.VAR_KEYWORD and p.name != "descending"  # of NumPy 2.5: refused
        ]


def test_hints_are_for_what_cannot_be_traced():
    supported = {name.removeprefix("np.") for name in supported_functions()}
    assert not supported & set(HINTS)
    assert alternative("np.nonzero") == HINTS["nonzero"]


def test_public_names_exist():
    for row in [*UFUNCS, *FUNCTIONS]:
        assert eval(public_name(row), {"np": np}) is row
    assert all(hasattr(scipy.special, name) for name in SCIPY_UFUNCS)


def test_float32():
    with Trace(np.float32) as trace:
        y = trace.input("x", (3,)) * np.float64(2.0)
    assert isinstance(y, Tracer)
    assert y.dtype == np.float32
    with pytest.raises(TypeError, match="float64 or float32"):
        Trace(np.int64)
