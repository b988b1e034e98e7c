"""Random compositions of NumPy calls: value, gradient and Hessian product against autograd."""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from programs import CALLS, inputs_of, programs

import buropt as bo


class Autograd:
    """autograd.numpy, with the functions that it lacks or gets wrong in other words."""

    def __getattr__(self, name):
        return getattr(anp, name)

    @staticmethod
    def take(x, indices, axis):
        return x[(slice(None),) * axis + (indices,)]

    @staticmethod
    def repeat(x, repeats, axis):
        axis %= x.ndim
        return AUTOGRAD.take(x, np.repeat(np.arange(x.shape[axis]), repeats), axis)

    @staticmethod
    def tile(x, reps):
        return anp.concatenate([x] * reps, axis=-1)

    @staticmethod
    def sort(x, axis):
        values = x
        while isinstance(values, autograd.tracer.Box):
            values = values._value
        places = list(np.ogrid[tuple(slice(n) for n in x.shape)])
        places[axis] = np.argsort(values, axis)
        return x[tuple(places)]

    @staticmethod
    def flip(x, axis):
        return x[(slice(None),) * (axis % x.ndim) + (slice(None, None, -1),)]

    @staticmethod
    def outer(a, b):
        return anp.reshape(a, (-1, 1)) * anp.reshape(b, (1, -1))

    @staticmethod
    def logaddexp(a, b):
        return a + anp.log1p(anp.exp(b - a))

    @staticmethod
    def broadcast_to(x, shape):
        return x * np.ones(shape)

    @staticmethod
    def where(mask, a, b):
        ones = np.ones(np.broadcast_shapes(np.shape(mask), np.shape(a), np.shape(b)))
        return anp.where(mask, a * ones, b * ones)


AUTOGRAD = Autograd()
CLOSE = {"rtol": 1e-9, "atol": 1e-10}

pytestmark = [
    pytest.mark.filterwarnings("ignore::buropt.DisconnectedInputWarning"),
    # autograd warns where an output does not depend on an input.
    pytest.mark.filterwarnings("ignore:Output seems independent of input"),
]


def autograd_results(program, inputs, directions):
    """(value, gradients, products with the Hessian)."""

    def total(inputs):
        return program(AUTOGRAD, *inputs)

    gradient = autograd.grad(total)
    value, gradients = total(inputs), gradient(inputs)

    def along(inputs):
        parts = gradient(inputs)
        return sum(anp.sum(g * v) for g, v in zip(parts, directions, strict=True))

    return value, gradients, autograd.grad(along)(inputs)


@settings(max_examples=60)
@given(program=programs(), layout=st.integers(0, 3))
def test_functions(program, layout):
    inputs = tuple(inputs_of(program.shapes, layout))
    directions = tuple(inputs_of(program.shapes, 0, seed=1))
    with np.errstate(all="ignore"):  # autograd's tanh overflows where NumPy's does not
        value, gradients, products = autograd_results(program, inputs, directions)
    assume(all(np.isfinite(one).all() for one in products))  # autograd overflows first
    np.testing.assert_allclose(program(np, *inputs), value, **CLOSE)

    def total(inputs):
        return program(np, *inputs)

    found, found_gradients = bo.value_and_grad(total)(inputs)
    found_products = bo.hvp(total)(inputs, directions)
    np.testing.assert_allclose(found, value, **CLOSE)
    for one, expected in zip(found_gradients, gradients, strict=True):
        np.testing.assert_allclose(one, expected, **CLOSE)
    for one, expected in zip(found_products, products, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-8, atol=1e-9)


@settings(max_examples=40)
@given(program=programs(most_steps=15), data_first=st.booleans())
def test_oracles(program, data_first):
    """The first input, or all others, differ from sample to sample."""
    n = len(program.shapes)
    is_data = [(k == 0) == data_first for k in range(n)]
    if not any(is_data):
        is_data[0] = True
    params = [k for k in range(n) if not is_data[k]]
    samples = [inputs_of(program.shapes, 0, seed=s) for s in range(5)]
    point = [samples[0][k] for k in params] or [np.array(0.3)]
    data = tuple(np.stack([s[k] for s in samples]) for k in range(n) if is_data[k])

    def loss(x, *rows):
        rest, rows = iter(x), iter(rows)
        inputs = [next(rows) if is_data[k] else next(rest) for k in range(n)]
        total = program(np, *inputs)
        return total if params else total * x[0]

    def reference(x, *rows):
        rest, rows = iter(x), iter(rows)
        inputs = [next(rows) if is_data[k] else next(rest) for k in range(n)]
        total = program(AUTOGRAD, *inputs)
        return total if params else total * x[0]

    directions = [np.cos(np.arange(p.size) + 1.0).reshape(p.shape) for p in point]
    oracle = bo.compile(loss, point, data)
    x, v = oracle.x0, oracle.flatten(directions)
    gradient = autograd.grad(reference)

    def along(x, *rows):
        parts = gradient(x, *rows)
        return sum(anp.sum(g * d) for g, d in zip(parts, directions, strict=True))

    hessian_product = autograd.grad(along)
    rows = list(zip(*data, strict=True))
    with np.errstate(all="ignore"):
        expected = np.array([oracle.flatten(gradient(point, *row)) for row in rows])
        products = [oracle.flatten(hessian_product(point, *row)) for row in rows]
    assume(np.isfinite(products).all())
    values = [loss(point, *row) for row in rows]
    value, mean = oracle.value_and_grad(x)
    np.testing.assert_allclose(value, np.mean(values), **CLOSE)
    np.testing.assert_allclose(mean, expected.mean(axis=0), **CLOSE)
    np.testing.assert_allclose(oracle.per_sample_grads(x), expected, **CLOSE)
    coords = np.arange(oracle.dim)[::-3]
    np.testing.assert_allclose(oracle.partial_grad(x, coords), mean[coords], **CLOSE)
    np.testing.assert_allclose(oracle.hvp(x, v), np.mean(products, axis=0), rtol=1e-8, atol=1e-9)


def test_nearly_every_call_is_drawn():
    """What the strategy cannot produce would be tested by nothing."""
    seen = set()

    @settings(max_examples=200, database=None, derandomize=True)
    @given(program=programs())
    def collect(program):
        seen.update(name for name, _, _ in program.steps)

    collect()
    assert len(seen) > 0.9 * len(CALLS)
