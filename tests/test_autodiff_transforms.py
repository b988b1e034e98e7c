"""`jvp`, `vjp`, `hvp`, `jacobian` and `hessian`: results, forms, errors, caches."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import buropt as bo

EXACT = {"rtol": 1e-12, "atol": 1e-14}
RNG = np.random.default_rng(0)
W, B, X = RNG.standard_normal((3, 4)), RNG.standard_normal(3), RNG.standard_normal(4)


def layer(params, x):
    """Two results of different shapes from nested parameters."""
    hidden = np.tanh(params["w"] @ x + params["b"])
    return {"hidden": hidden, "total": np.sum(hidden**2)}


PARAMS = {"w": W, "b": B}


def differences(function, x, h=1e-6):
    """The Jacobian of an array function by central differences, shape out + in."""
    columns = []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = h
        step = step.reshape(x.shape)
        columns.append((function(x + step) - function(x - step)) / (2 * h))
    stacked = np.stack(columns, axis=-1)
    return stacked.reshape(stacked.shape[:-1] + x.shape)


# ---- jvp and vjp


def test_jvp_gives_the_value_and_its_derivative_along_a_direction():
    direction = {"w": RNG.standard_normal((3, 4)), "b": RNG.standard_normal(3)}
    value, tangent = bo.jvp(layer, (PARAMS, X), (direction, 2 * X))
    np.testing.assert_allclose(value["hidden"], np.tanh(W @ X + B), **EXACT)
    pre = direction["w"] @ X + direction["b"] + 2 * W @ X
    expected = (1 - value["hidden"] ** 2) * pre
    np.testing.assert_allclose(tangent["hidden"], expected, **EXACT)
    np.testing.assert_allclose(tangent["total"], 2 * value["hidden"] @ expected, **EXACT)
    assert isinstance(tangent["total"], np.float64)


def test_vjp_is_the_transpose_of_jvp():
    cotangent = {"hidden": RNG.standard_normal(3), "total": 0.7}
    value, back = bo.vjp(layer, PARAMS, X)
    by_params, by_x = back(cotangent)
    direction = {"w": RNG.standard_normal((3, 4)), "b": RNG.standard_normal(3)}
    v = RNG.standard_normal(4)
    forward_value, tangent = bo.jvp(layer, (PARAMS, X), (direction, v))
    np.testing.assert_allclose(value["hidden"], forward_value["hidden"], **EXACT)
    left = cotangent["hidden"] @ tangent["hidden"] + cotangent["total"] * tangent["total"]
    right = np.sum(by_params["w"] * direction["w"]) + by_params["b"] @ direction["b"] + by_x @ v
    np.testing.assert_allclose(left, right, **EXACT)


def test_vjp_keeps_the_point():
    x = np.ones(3)
    value, back = bo.vjp(lambda x: x**2, x)
    x[:] = 7.0
    np.testing.assert_array_equal(back(np.ones(3))[0], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(value, np.ones(3))


def test_without_primals_they_are_functions_that_trace_once():
    traces = []

    def f(x):
        traces.append(x)
        return np.exp(x)

    along = bo.jvp(f)
    for x in (0.0, 1.0, 2.0):
        np.testing.assert_allclose(along((x,), (3.0,)), (np.exp(x), 3 * np.exp(x)), **EXACT)
    assert len(traces) == along.cache_info().n_traces == 1
    pull = bo.vjp(f)
    for x in (0.0, 1.0, 2.0):
        value, back = pull(x)
        np.testing.assert_allclose((value, *back(2.0)), (np.exp(x), 2 * np.exp(x)), **EXACT)
    assert len(traces) == 3  # the value, and the cotangents
    assert pull.cache_info().n_traces == 2
    bo.jvp(f, (1.0,), (1.0,))
    assert len(traces) == 4


def test_float32_stays():
    x = np.ones(2, np.float32)
    value, tangent = bo.jvp(lambda x: x * 2, (x,), (x,))
    assert value.dtype == tangent.dtype == np.float32
    value, back = bo.vjp(lambda x, y: x * y, x, np.ones(2))  # float64 is the wider
    assert value.dtype == np.float64
    assert [one.dtype for one in back(np.ones(2))] == [np.float32, np.float64]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bo.jvp(np.exp, X, X), "primals must be a tuple"),
        (lambda: bo.jvp(np.exp, (X,), ()), "got 1 primals and 0 tangents"),
        (lambda: bo.jvp(np.exp, (X,)), "takes primals and tangents, or neither"),
        (
            lambda: bo.jvp(layer, (PARAMS, X), ({"w": W, "b": B[:2]}, X)),
            r"the tangent of params\['b'\] must have the shape \(3,\) of params\['b'\], got \(2,\)",
        ),
        (
            lambda: bo.jvp(layer, (PARAMS, X), ({"w": W}, X)),
            r"one array for each of params\['w'\], params\['b'\]; got",
        ),
        (
            lambda: bo.vjp(layer, PARAMS, X)[1](np.ones(3)),
            r"like the result of layer .* each of result\['hidden'\], result\['total'\]",
        ),
        (
            lambda: bo.vjp(np.exp, X)[1](np.ones(3)),
            r"cotangent must have the shape \(4,\) of the result of exp, got \(3,\)",
        ),
        (lambda: bo.jvp(lambda x: x > 0, (X,), (X,)), "returned booleans .* which have no derivat"),
        (lambda: bo.jvp(lambda x: None, (X,), (X,)), "returned None"),
        (lambda: bo.hvp(np.sum)(X), r"hvp\(sum\) takes x and v"),
        (
            lambda: bo.hvp(lambda x, a: np.sum(x))(X, X[:2], 1.0),
            r"v must have the shape \(4,\) of x, got \(2,\)",
        ),
        (lambda: bo.hvp(np.exp)(X, X), r"returned an array of shape \(4,\)"),
        (lambda: bo.jacobian(3), "must be a function, got 3"),
        (lambda: bo.hessian(np.sum, argnums=True), "argnums must be an int"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# ---- products with the Hessian


def test_hvp_takes_x_then_v_then_the_rest():
    """Case S04, and A04."""
    product = bo.hvp(lambda x, a: a * np.sum(x**3))
    x, p = np.array([1.0, 2.0]), np.ones(2)
    np.testing.assert_array_equal(product(x, p, 2.0), [12.0, 24.0])
    out = np.empty(2)
    assert product(x, p, 2.0, out=out) is out
    np.testing.assert_array_equal(out, [12.0, 24.0])
    square = bo.hvp(lambda x: np.sum(x**2))
    np.testing.assert_array_equal(square(np.zeros(3), np.array([1.0, 2.0, 3.0])), [2.0, 4.0, 6.0])


def test_hvp_of_rosenbrock():
    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    product, x = bo.hvp(rosenbrock), np.array([-1.2, 1.0])
    np.testing.assert_allclose(product(x, np.array([1.0, 0.0])), [1330, 480], **EXACT)
    np.testing.assert_allclose(product(x, np.array([0.0, 1.0])), [480, 200], **EXACT)
    np.testing.assert_allclose(bo.hessian(rosenbrock)(x), [[1330, 480], [480, 200]], **EXACT)
    assert product.cache_info().n_traces == 1


def test_hvp_of_logistic_tails():
    """Case A06."""
    product = bo.hvp(lambda m: np.logaddexp(0, -m))
    for m, second in [(-800.0, 0.0), (0.0, 0.25), (800.0, 0.0)]:
        assert product(m, 1.0) == pytest.approx(second, rel=1e-15)


def test_hvp_of_nested_parameters():
    def loss(params, x):
        return layer(params, x)["total"]

    v = {"w": RNG.standard_normal((3, 4)), "b": RNG.standard_normal(3)}
    product = bo.hvp(loss)(PARAMS, v, X)
    hessian = bo.hessian(loss)(PARAMS, X)
    for name in ("w", "b"):
        expected = np.tensordot(hessian[name]["w"], v["w"], 2) + hessian[name]["b"] @ v["b"]
        np.testing.assert_allclose(product[name], expected, **EXACT)


# ---- Jacobians and Hessians

SHAPES = {
    "vector to vector": (lambda x: np.tanh(W @ x), (4,)),
    "fewer outputs": (lambda x: x.reshape(2, 8) @ np.arange(8.0), (16,)),
    "fewer inputs": (lambda x: np.outer(np.sin(x), x) * x[0], (5,)),
    "matrix to matrix": (lambda x: np.exp(x) @ x.T, (2, 3)),
    "matrix to number": (lambda x: np.sum(x**3), (3, 2)),
    "number to matrix": (lambda x: x * W, ()),
    "number to number": (lambda x: x**3, ()),
    "one entry": (lambda x: x**3, (1, 1)),
    "three axes": (lambda x: np.transpose(x, (2, 0, 1)) ** 2, (2, 3, 2)),
    "parts of the argument": (lambda x: x[1::2] * x[:1], (7,)),
    "nothing": (lambda x: x[:0], (3,)),
}


@pytest.mark.filterwarnings("ignore::buropt.DisconnectedInputWarning")
@pytest.mark.parametrize("name", SHAPES)
def test_jacobians(name):
    function, shape = SHAPES[name]
    x = RNG.standard_normal(shape)
    jacobian = bo.jacobian(function)
    result = jacobian(x)
    assert np.shape(result) == np.shape(function(x)) + shape
    np.testing.assert_allclose(result, differences(function, x), rtol=1e-6, atol=1e-8)
    if np.ndim(result) > 0:
        out = np.full(np.shape(result), np.nan)
        assert jacobian(x, out=out) is out
        np.testing.assert_array_equal(out, result)
    assert jacobian.cache_info().n_traces == 1


def test_a_nested_result_gives_a_nest_of_jacobians():
    jacobian = bo.jacobian(layer)(PARAMS, X)
    hidden = np.tanh(W @ X + B)
    slope = 1 - hidden**2
    assert set(jacobian) == {"hidden", "total"}
    np.testing.assert_allclose(jacobian["hidden"]["b"], np.diag(slope), **EXACT)
    expected = np.einsum("ij,k->ijk", np.diag(slope), X)
    np.testing.assert_allclose(jacobian["hidden"]["w"], expected, **EXACT)
    np.testing.assert_allclose(jacobian["total"]["b"], 2 * hidden * slope, **EXACT)


def test_argnums_give_tuples():
    def f(x, y):
        return [x * y[0], np.sum(x) * y]

    (by_x, by_y), (sum_by_x, sum_by_y) = bo.jacobian(f, argnums=(0, 1))(X, B)
    np.testing.assert_allclose(by_x, np.eye(4) * B[0], **EXACT)
    np.testing.assert_allclose(by_y, np.outer(X, [1, 0, 0]), **EXACT)
    np.testing.assert_allclose(sum_by_x, np.outer(B, np.ones(4)), **EXACT)
    np.testing.assert_allclose(sum_by_y, np.eye(3) * np.sum(X), **EXACT)


class Pair(NamedTuple):
    left: object
    right: object


def test_hessian_of_nested_parameters():
    def f(p):
        return np.sum(np.exp(p.left)) * p.right["r"] + np.sum(p.left[0] ** 3)

    left, r = RNG.standard_normal((2, 3)), 0.5
    h = bo.hessian(f)(Pair(left, {"r": r}))
    assert isinstance(h, Pair)
    assert isinstance(h.left, Pair)
    expected = np.zeros((6, 6)) + np.diag((np.exp(left) * r).ravel())
    expected += np.diag(np.concatenate([6 * left[0], np.zeros(3)]))
    np.testing.assert_allclose(h.left.left, expected.reshape(2, 3, 2, 3), **EXACT)
    np.testing.assert_allclose(h.left.right["r"], np.exp(left), **EXACT)
    np.testing.assert_allclose(h.right["r"].left, np.exp(left), **EXACT)
    assert h.right["r"].right["r"] == 0.0


@given(n=st.integers(1, 40), seed=st.integers(0, 1000))
def test_hessians_of_any_size(n, seed):
    """Few rows are recorded one by one, many are samples of a batch."""
    rng = np.random.default_rng(seed)
    a, x = rng.standard_normal((n, n)), rng.standard_normal(n)
    hessian = bo.hessian(lambda x: np.sum(scipy.special.expit(a @ x)))(x)
    s = scipy.special.expit(a @ x)
    expected = a.T @ ((s * (1 - s) * (1 - 2 * s))[:, None] * a)
    np.testing.assert_allclose(hessian, expected, rtol=1e-10, atol=1e-12)


def test_other_arguments_are_inputs_of_a_jacobian():
    jacobian = bo.jacobian(lambda x, a, mask, n: np.where(mask, a * x**n, x))
    mask = np.array([True, False] * 3)
    for a in (2.0, 3.0):
        for x in (np.arange(6.0), np.ones(6)):
            expected = np.diag(np.where(mask, a * 2 * x, 1.0))
            np.testing.assert_allclose(jacobian(x, a, mask, 2), expected, **EXACT)
    assert jacobian.cache_info().n_traces == 1


def test_a_jacobian_in_float32():
    x = np.ones(9, np.float32)
    result = bo.jacobian(lambda x: x**2)(x)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, 2 * np.eye(9))


def test_an_argument_without_influence_gives_zeros_and_a_warning():
    for derivative, args in (
        (bo.jacobian(lambda x, y: y * 1.0), (X, B)),
        (bo.hessian(lambda x, y: np.sum(y)), (X, B)),
        (bo.hvp(lambda x, y: np.sum(y)), (X, X, B)),
        (bo.jvp(lambda x, y: y * 1.0), ((X, B), (X, B))),
    ):
        with pytest.warns(bo.DisconnectedInputWarning, match="does not depend on x"):
            derivative(*args)
    y = RNG.standard_normal(9)  # more directions than are recorded one by one
    with pytest.warns(bo.DisconnectedInputWarning, match="does not depend on x"):
        by_x, by_y = bo.jacobian(lambda x, y: 2 * y, argnums=(0, 1))(X, y)
    np.testing.assert_array_equal(by_x, np.zeros((9, 4)))
    np.testing.assert_array_equal(by_y, 2 * np.eye(9))
    np.testing.assert_array_equal(bo.hessian(np.sum)(y), np.zeros((9, 9)))
    # A linear function has a Hessian, which is 0.
    np.testing.assert_array_equal(bo.hessian(np.sum)(X), np.zeros((4, 4)))
    np.testing.assert_array_equal(bo.hvp(np.sum)(X, X), np.zeros(4))


def test_they_describe_themselves():
    assert bo.hvp(layer).__name__ == "hvp(layer)"
    assert bo.jvp(layer).__name__ == "jvp(layer)"
    assert bo.hessian(layer).__doc__.startswith("The hessian of layer (")
    assert bo.jacobian(layer).__wrapped__ is layer
