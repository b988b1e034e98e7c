"""Derivatives of plain functions: golden values, conventions, argument handling, the cache."""

import threading
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import buropt as bo
from buropt.autodiff import grad, value_and_grad
from buropt.trace import DisconnectedInputWarning, TraceError

EXACT = {"rtol": 1e-12, "atol": 1e-15}


def difference(function, x, direction):
    """A central difference of fourth order along a direction."""
    h = 1e-3
    values = [function(x + k * h * direction) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)


def assert_derivative(function, x):
    direction = np.random.default_rng(0).normal(size=np.shape(x))
    value, gradient = value_and_grad(function)(x)
    np.testing.assert_allclose(value, function(x), **EXACT)
    assert gradient.shape == np.shape(x)
    expected = difference(function, x, direction)
    np.testing.assert_allclose(np.sum(gradient * direction), expected, rtol=1e-7, atol=1e-8)


# ---- derivatives against differences

FUNCTIONS = {
    "elementwise": lambda x: np.sum(np.exp(x) * np.sin(x) - np.tanh(x) / (1 + x**2)),
    "logs": lambda x: np.sum(np.log(x**2 + 1) + np.log1p(x**2) + np.sqrt(x**2 + 0.5)),
    "powers": lambda x: np.sum((x**2 + 1) ** x + (x**2 + 1) ** -1.5 + 2.0**x + x**5),
    "selection": lambda x: np.sum(np.where(x > 0, x**2, np.exp(x)) * np.maximum(x, x[:1])),
    "matrices": lambda x: np.sum(np.tanh(x @ x.T) @ x) + np.dot(x[0], x[1]),
    "views": lambda x: np.sum(x[::-1, 1:] * x[:, :-1]) + np.sum(x.T.ravel()[2:] ** 2),
    "joins": lambda x: np.sum(np.concatenate([x, x**2]) * np.vstack([x**3, x])) ** 2,
    "stacks": lambda x: np.sum(np.stack([x[0], x[1] * x[0]], axis=1) ** 3),
    "reductions": lambda x: np.mean((x - x.mean(axis=0)) ** 2) + np.sum(x.sum(1) ** 3),
    "einsum": lambda x: np.sum(np.einsum("ij,kj->ik", x, np.sin(x)) ** 2),
    "smooth": lambda x: np.sum(scipy.special.expit(x) * np.logaddexp(x, 2 * x.sum())),
    "clip": lambda x: np.sum(x.clip(-0.3, 0.8) ** 2 + abs(x) * np.sign(x)),
    "outer": lambda x: np.sum(np.outer(x[0], x[1]) * np.expand_dims(x[0], 0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    x = np.random.default_rng(1).normal(size=(2, 3))
    assert_derivative(FUNCTIONS[name], x)


@given(
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3),
    seed=st.integers(0, 100),
)
def test_broadcast_gradients(shapes, seed):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.normal(size=shape) for shape in shapes.input_shapes)
    weights = rng.normal(size=shapes.result_shape)

    def f(a, b, c):
        return np.sum(weights * np.tanh(a * b + c) / (1 + b**2) - a * c)

    gradients = grad(f, argnums=(0, 1, 2))(a, b, c)
    for k, (point, gradient) in enumerate(zip((a, b, c), gradients, strict=True)):
        assert gradient.shape == point.shape

        def along(moved, k=k):
            return f(*[moved if j == k else other for j, other in enumerate((a, b, c))])

        direction = rng.normal(size=point.shape)
        expected = difference(along, point, direction)
        np.testing.assert_allclose(np.sum(gradient * direction), expected, rtol=1e-6, atol=1e-7)


# ---- arguments


class Layer(NamedTuple):
    weight: object
    bias: object


def test_trees():
    def loss(params, x):
        layer, scale = params["layer"], params["scale"]
        return scale * np.sum(np.tanh(layer.weight @ x + layer.bias))

    params = {"layer": Layer(np.ones((2, 3)), np.zeros(2)), "scale": 2.0, "unused": None}
    value, gradient = value_and_grad(loss)(params, np.array([0.1, 0.2, 0.3]))
    assert gradient["unused"] is None
    assert isinstance(gradient["layer"], Layer)
    assert gradient["layer"].weight.shape == (2, 3)
    np.testing.assert_allclose(gradient["scale"], value / 2, **EXACT)
    out = {"layer": Layer(np.empty((2, 3)), np.empty(2)), "scale": np.empty(()), "unused": None}
    assert grad(loss)(params, np.array([0.1, 0.2, 0.3]), out=out) is out
    np.testing.assert_array_equal(out["layer"].weight, gradient["layer"].weight)
    assert out["scale"] == gradient["scale"]


def test_argnums():
    def f(x, y, z):
        return np.sum(x * y**2) + z

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(grad(f, 1)(x, y, 1.0), 2 * x * y)
    np.testing.assert_array_equal(grad(f, -2)(x, y, 1.0), 2 * x * y)
    by_z, by_x = grad(f, (2, 0))(x, y, 1.0)
    assert by_z == 1.0
    np.testing.assert_array_equal(by_x, y**2)
    with pytest.raises(TypeError, match="by argument 3: it was called with 3 positional"):
        grad(f, 3)(x, y, 1.0)
    with pytest.raises(TypeError, match="argnums must be an int"):
        grad(f, True)


def test_other_arguments_are_inputs_and_not_baked_in():
    derivative = grad(lambda x, data, mask, factor: np.sum(np.where(mask, x * data, x)) * factor)
    x = np.ones(2)
    for data, mask, factor in [([1.0, 2], [True, False], 3.0), ([5.0, 6], [False, True], 0.5)]:
        data, mask = np.array(data), np.array(mask)
        expected = np.where(mask, data, 1.0) * factor
        np.testing.assert_array_equal(derivative(x, data, mask, factor), expected)
    assert derivative.cache_info().n_traces == 1


def test_static_arguments_may_steer_python():
    @grad
    def derivative(x, n, kind="power", *, factor=1.0):
        return factor * (x**n if kind == "power" else sum(x for _ in range(n)))

    assert derivative(2.0, 3) == 12.0
    assert derivative(2.0, 4) == 32.0
    assert derivative(2.0, 3, "sum") == 3.0
    assert derivative(2.0, 3, kind="power", factor=2.0) == 24.0
    assert derivative(2.0, 3, kind="power", factor=3.0) == 36.0
    assert derivative(1.0, 3) == 3.0
    assert derivative.cache_info().n_traces == 4
    by_function = grad(lambda x, f: f(x) ** 2)
    assert (by_function(0.0, np.exp), by_function(3.0, abs)) == (2.0, 6.0)
    # Equal values of different types are different arguments.
    kind_of = grad(lambda x, flag: x * (2 if flag is True else 3))
    assert (kind_of(1.0, True), kind_of(1.0, 1)) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (({"w": ["text"]}, 1.0), r"argument params\['w'\]\[0\] is of type str"),
        ((np.ones(2) * 1j, 1.0), "argument params has dtype complex128"),
        ((np.ones(2, np.float16), 1.0), "argument params has dtype float16"),
        ((np.ma.array([1.0]), 1.0), "argument params is of type MaskedArray"),
        ((1.0, np.array(["a"])), "argument y has dtype"),
        ((1.0, {1, 2}), "argument y is of type set, whose contents may change"),
        ((1.0, np.random.default_rng(0)), "argument y is of type Generator, whose contents"),
        ((1.0, scipy.sparse.eye(2)), "argument y is a SciPy sparse matrix"),
    ],
)
def test_arguments_that_cannot_be_used(args, message):
    with pytest.raises(TraceError, match=message):
        grad(lambda params, y: 1.0)(*args)


@pytest.mark.parametrize(
    ("x", "other", "graph", "gradient"),
    [
        (np.ones(2), 1.0, np.float64, np.float64),
        (np.ones(2, np.float32), 1.0, np.float32, np.float32),
        (np.ones(2, np.float32), np.ones(2, np.float32), np.float32, np.float32),
        (np.ones(2, np.float32), np.ones(2), np.float64, np.float32),
        (np.ones(2, ">f8"), 1.0, np.float64, np.float64),
        (np.float32(1), 1.0, np.float32, np.float32),
        (1.0, 1.0, np.float64, np.float64),
        (np.array([1, 2]), 1.0, np.float64, np.float64),
    ],
)
def test_dtypes(x, other, graph, gradient):
    value, result = value_and_grad(lambda x, y: np.sum(x * y))(x, other)
    assert value.dtype == graph
    assert result.dtype == gradient
    assert result.shape == np.shape(x)


def test_strided_arguments():
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(grad(lambda x: np.sum(x**2))(x.T[::2]), 2 * x.T[::2])


def test_out():
    derivative, x = grad(lambda x: np.sum(x**2)), np.arange(3.0)
    out = np.empty(3)
    assert derivative(x, out=out) is out
    np.testing.assert_array_equal(out, 2 * x)
    value, same = value_and_grad(lambda x: np.sum(x**2))(x, out=out)
    assert same is out
    assert value == 5.0
    strided = np.zeros(6)[::2]
    np.testing.assert_array_equal(derivative(x, out=strided), 2 * x)
    assert derivative(x, out=x) is x  # in place of its own argument
    np.testing.assert_array_equal(x, [0.0, 2.0, 4.0])
    both = np.arange(5.0)  # the argument and out overlap
    np.testing.assert_array_equal(derivative(both[:4], out=both[1:]), [0.0, 2.0, 4.0, 6.0])
    mapped = np.arange(5.0).view(np.memmap)  # the same of a subclass
    shifted = derivative(mapped[:4], out=mapped.view(np.ndarray)[1:])
    np.testing.assert_array_equal(shifted, [0.0, 2.0, 4.0, 6.0])
    frozen = np.empty(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        derivative(x, out=frozen)
    with pytest.raises(TypeError, match="Cannot cast"):
        derivative(x, out=np.empty(3, int))
    with pytest.raises(ValueError, match=r"gradient's shape \(3,\), got \(4,\)"):
        derivative(x, out=np.empty(4))
    with pytest.raises(TypeError, match="out must be an array"):
        derivative(x, out=[0.0] * 3)
    with pytest.raises(ValueError, match="nested like the gradient"):
        grad(lambda t: t[0] * t[1])([1.0, 2.0], out=np.empty(2))


# ---- results and warnings


def test_disconnected_inputs_warn_and_give_zeros():
    derivative = grad(lambda x, y: np.sum(x**2), argnums=(0, 1))
    with pytest.warns(DisconnectedInputWarning, match="does not depend on y") as caught:
        by_x, by_y = derivative(np.ones(2), np.ones((2, 2)))
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(by_x, [2.0, 2.0])
    np.testing.assert_array_equal(by_y, np.zeros((2, 2)))
    derivative(np.ones(2), np.ones((2, 2)))  # warned once


def test_constant_results():
    with pytest.warns(DisconnectedInputWarning):
        value, gradient = value_and_grad(lambda x: 3)(np.ones(2))
    assert value == 3.0
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


def test_results_that_are_not_scalar():
    with pytest.raises(TraceError, match=r"returned an array of shape \(2,\)"):
        grad(lambda x: x * 2)(np.ones(2))


# ---- the cache


def test_cache_by_shapes_and_dtypes():
    derivative = grad(lambda x: np.sum(x**2))
    for x in (np.ones(2), np.zeros(2), np.ones(3), np.ones(2, np.float32), 1.0, 2.0):
        derivative(x)
    assert derivative.cache_info()[:2] == (4, 4)
    for n in range(1, 100):
        derivative(np.ones(n))
    info = derivative.cache_info()
    assert info.n_programs == info.max_programs == 64
    derivative.cache_clear()
    assert derivative.cache_info().n_programs == 0
    np.testing.assert_array_equal(derivative(np.ones(2)), [2.0, 2.0])


def test_threads_share_one_trace():
    derivative = grad(lambda x: np.sum(np.exp(x)))
    results = []
    threads = [
        threading.Thread(target=lambda k=k: results.append((k, derivative(np.full(50, float(k))))))
        for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, gradient in results:
        np.testing.assert_allclose(gradient, np.exp(np.full(50, float(k))))
    assert len(results) == 8
    assert derivative.cache_info().n_traces == 1


def test_the_derivative_describes_itself():
    def loss(x):
        return x

    assert grad(loss).__name__ == "grad(loss)"
    with pytest.raises(TypeError, match="must be a function, got 3"):
        grad(3)


def test_a_function_may_return_more_than_its_value():
    """`has_aux`, as in JAX: the second part of the result is passed on."""

    def f(params, scale):
        y = np.tanh(params["w"] * scale)
        return np.sum(y**2), {"y": y, "largest": (np.max(y), np.argmax(y))}

    params, w = {"w": np.array([0.5, -1.0])}, np.array([0.5, -1.0])
    plain = bo.grad(lambda p, s: f(p, s)[0])(params, 2.0)["w"]
    gradient, aux = bo.grad(f, has_aux=True)(params, 2.0)
    (value, other), again = bo.value_and_grad(f, has_aux=True)(params, 2.0)
    np.testing.assert_array_equal(gradient["w"], plain)
    np.testing.assert_array_equal(again["w"], plain)
    np.testing.assert_array_equal(aux["y"], np.tanh(2 * w))
    assert value == np.sum(np.tanh(2 * w) ** 2)
    assert aux["largest"] == other["largest"] == (np.tanh(1.0), 0.0)
    both, _ = bo.grad(f, argnums=(0, 1), has_aux=True)(params, 2.0)
    np.testing.assert_allclose(both[1], np.sum(2 * np.tanh(2 * w) / np.cosh(2 * w) ** 2 * w))
    inside = bo.grad(lambda x: bo.grad(f, has_aux=True)(params | {"w": x}, 2.0)[1]["y"][0])
    np.testing.assert_allclose(inside(w), [2 / np.cosh(1.0) ** 2, 0])


def test_what_has_aux_needs():
    for f in (lambda x: np.sum(x), lambda x: (x, 1.0), lambda x: [np.sum(x), x]):
        with pytest.raises(bo.TraceError, match="must return a pair, one number and"):
            bo.grad(f, has_aux=True)(np.ones(2))
    with pytest.raises(TypeError, match="no out="):
        bo.value_and_grad(lambda x: (x @ x, x), has_aux=True)(np.ones(2), out=np.empty(2))
