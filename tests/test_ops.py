"""Every primitive: value against NumPy or SciPy, derivatives against differences."""

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import buropt as bo
from buropt import _core

PRIMITIVES = {op["name"]: op for op in _core.ops()}
ELEMENTWISE = sorted(
    name for name, op in PRIMITIVES.items() if op["elementwise"] and not op["derived"]
)
# Attributes make a primitive such as integer_power a family of its own, tested below.
PLAIN = [name for name in ELEMENTWISE if not PRIMITIVES[name]["attributes"]]
REFERENCE = {"expit": scipy.special.expit, "softplus": lambda x: np.logaddexp(0, x)}
PIECEWISE_CONSTANT = {
    *("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"),
    *("logical_and", "logical_or", "logical_not", "sign"),
    *("floor", "ceil", "trunc", "rint", "floor_divide"),
}
# Operands that the value moves with only at single points, if at all.
CONSTANT_OPERANDS = {("where", 0), ("copysign", 1), ("heaviside", 0), ("heaviside", 1)}


def reference(name):
    function = REFERENCE.get(name) or getattr(np, name)
    if name == "where":
        return lambda c, a, b: np.where(c != 0, a, b)
    # In float64 whatever the dtype: NumPy's own float32 loses digits in logaddexp.
    return lambda *arrays: np.asarray(function(*(a.astype(np.float64) for a in arrays)))


def operands(name, shape, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [rng.uniform(low, high, shape).astype(dtype) for low, high in PRIMITIVES[name]["domain"]]


def call(name, *tracers):
    """The primitive as a user writes it."""
    if name == "expit":
        return scipy.special.expit(*tracers)
    if name == "softplus":
        return np.logaddexp(0, tracers[0])
    if name == "where":
        return np.where(tracers[0] > 0, tracers[1], tracers[2])
    return getattr(np, name)(*tracers)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", PLAIN)
def test_value_of_the_tile_kernel(name, dtype):
    for size in (1, 2, 7, 8, 9, 16, 33, 100):
        arrays = operands(name, size, size, dtype)
        expected = reference(name)(*arrays)
        eps = np.finfo(dtype).eps
        # Where the larger operand and the logarithm cancel, logaddexp is right absolutely.
        atol = 4 * eps if name == "logaddexp" else 0
        np.testing.assert_allclose(
            _core.elementwise(name, *arrays), expected, rtol=4 * eps, atol=atol
        )


@pytest.mark.parametrize("name", PLAIN)
def test_scalar_executor_equals_tile_kernel(name):
    arrays = operands(name, 5)

    def total(*args):
        return np.sum(call(name, *args) * 1.0)

    small = bo.value_and_grad(total, argnums=tuple(range(len(arrays))))(*arrays)
    big_arrays = [np.tile(a, 2000) for a in arrays]  # too many elements to unroll
    big = bo.value_and_grad(total, argnums=tuple(range(len(arrays))))(*big_arrays)
    assert big[0] == pytest.approx(2000 * small[0], rel=1e-12)
    for a, b in zip(small[1], big[1], strict=True):
        np.testing.assert_allclose(np.tile(a, 2000), b, rtol=1e-13, atol=1e-300)


@pytest.mark.filterwarnings("ignore::buropt.DisconnectedInputWarning")
@pytest.mark.parametrize("name", PLAIN)
def test_gradient_against_differences(name):
    arrays = operands(name, 6, seed=3)
    weights = np.random.default_rng(4).standard_normal(6)

    def total(*args):
        return np.sum(weights * call(name, *args))

    gradients = bo.grad(total, argnums=tuple(range(len(arrays))))(*arrays)
    for k, gradient in enumerate(gradients):
        if name in PIECEWISE_CONSTANT or (name, k) in CONSTANT_OPERANDS:
            assert np.array_equal(gradient, np.zeros(6))
            continue
        for i in range(6):
            h = 1e-6
            up, down = [list(arrays) for _ in range(2)]
            up[k], down[k] = arrays[k].copy(), arrays[k].copy()
            up[k][i] += h
            down[k][i] -= h
            difference = (total(*up) - total(*down)) / (2 * h)
            assert gradient[i] == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.filterwarnings("ignore::buropt.DisconnectedInputWarning")
@pytest.mark.parametrize("name", [n for n in PLAIN if n not in PIECEWISE_CONSTANT])
def test_second_derivative_against_differences(name):
    arrays = operands(name, 4, seed=5)
    weights = np.random.default_rng(6).standard_normal(4)

    def total(*args):
        return np.sum(weights * call(name, *args))

    k = 1 if name == "where" else 0

    def along(x, v):
        args = [*arrays[:k], x, *arrays[k + 1 :]]
        return np.sum(bo.grad(total, argnums=k)(*args) * v)

    v = np.random.default_rng(7).standard_normal(4)
    hvp = bo.grad(along)(arrays[k], v)
    h = 1e-5
    gradient = bo.grad(total, argnums=k)
    up, down = (gradient(*[*arrays[:k], arrays[k] + s * h * v, *arrays[k + 1 :]]) for s in (1, -1))
    np.testing.assert_allclose(hvp, (up - down) / (2 * h), rtol=2e-5, atol=1e-7)


@given(
    n=st.integers(-6, 6).filter(bool),
    x=st.floats(-4, 4).filter(lambda v: abs(v) > 1e-3),
)
def test_integer_power(n, x):
    value, slope = bo.value_and_grad(lambda t: t**n)(x)
    assert value == pytest.approx(float(x) ** n, rel=1e-14)
    assert slope == pytest.approx(n * float(x) ** (n - 1), rel=1e-14)


@pytest.mark.parametrize("name", ["exp", "logaddexp", "multiply", "where"])
def test_result_does_not_depend_on_the_position(name):
    arrays = operands(name, 50)
    whole = _core.elementwise(name, *arrays)
    for start in range(0, 49, 3):
        part = _core.elementwise(name, *[np.ascontiguousarray(a[start:]) for a in arrays])
        assert part.tobytes() == whole[start:].tobytes()


def test_unknown_and_wrong_operands():
    with pytest.raises(ValueError, match="no primitive named 'exq'"):
        _core.elementwise("exq", np.ones(2))
    with pytest.raises(TypeError, match="'add' is not an elementwise primitive of 1 operands"):
        _core.elementwise("add", np.ones(2))
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\) differ"):
        _core.elementwise("add", np.ones(2), np.ones(3))


# Second derivatives where the first cotangent happens to be zero: the rule that a zero cotangent
# gives zero at a singular point must not cut the derivative through the cotangent.
SECOND_DERIVATIVES = {
    "divide": (lambda x: (x / 2) ** 2, 0.0, 0.5),
    "divide, shifted": (lambda x: ((x - 1) / 2) ** 2, 1.0, 0.5),
    "log": (lambda x: np.log(x) ** 2, 1.0, 2.0),
    "log1p": (lambda x: np.log1p(x) ** 2, 0.0, 2.0),
    "sqrt": (lambda x: (np.sqrt(x) - 1) ** 2, 1.0, 0.5),
    "reciprocal": (lambda x: (np.reciprocal(x) - 1) ** 2, 1.0, 2.0),
    "where": (lambda x: np.where(x > -1, np.sin(x) ** 2, 0.0), 0.0, 2.0),
    "power": (lambda x: (x**1.5 - 1) ** 2, 1.0, 4.5),
}


@pytest.mark.parametrize("name", SECOND_DERIVATIVES)
@pytest.mark.parametrize("size", [1, 3000])  # scalar and tile executor
def test_second_derivative_at_a_zero_cotangent(name, size):
    f, x, second = SECOND_DERIVATIVES[name]
    gradient = bo.grad(lambda x: np.sum(f(x)))
    hvp = bo.grad(lambda x: np.sum(gradient(x)))(np.full(size, x))
    np.testing.assert_allclose(hvp, np.full(size, second), rtol=1e-12)


def test_mixed_derivative_of_power_at_exponent_zero():
    by_a = bo.grad(lambda a, b: a**b)
    assert bo.grad(by_a, argnums=1)(2.0, 0.0) == pytest.approx(0.5)
    by_b = bo.grad(lambda a, b: a**b, argnums=1)
    assert bo.grad(by_b)(2.0, 0.0) == pytest.approx(0.5)
