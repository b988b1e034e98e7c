"""Pickling and copying: the same bits elsewhere, nothing but constants, graph and data inside."""

import copy
import functools
import inspect
import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo
from buropt import compressors, optim, problems

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def rng():
    return np.random.default_rng(0)


def round_trips(value):
    """Copies of a value by every way there is."""
    for protocol in PROTOCOLS:
        yield pickle.loads(pickle.dumps(value, protocol))
    yield copy.copy(value)
    yield copy.deepcopy(value)


def loss(x, a, b):
    return np.logaddexp(0, -b * (a @ x))


def data(sparse=False):
    A = rng().standard_normal((30, 4))
    return (sp.csr_array(A * (A > 0)) if sparse else A), np.sign(rng().standard_normal(30))


def oracle(**options):
    return bo.compile(loss, np.ones(4), data(), regularizer=lambda x: x @ x, **options)


def bits(oracle, x):
    found = [oracle.value(x), oracle.grad(x), oracle.grad(x, [1, 1, 4]), oracle.worker_grads(x)]
    return [np.asarray(each).tobytes() for each in found]


@pytest.mark.parametrize(
    "options", [{}, {"workers": 3}, {"weights": np.arange(30.0)}, {"threads": 2}]
)
def test_oracles(options):
    original = oracle(**options)
    x = rng().standard_normal(4)
    expected = bits(original, x)  # programs exist now, and are left behind
    for again in round_trips(original):
        assert repr(again) == repr(original)
        assert bits(again, x) == expected


def test_an_oracle_over_sparse_data():
    original = bo.compile(loss, np.ones(4), data(sparse=True))
    for again in round_trips(original):
        assert bits(again, np.ones(4)) == bits(original, np.ones(4))


def test_an_oracle_is_as_large_as_its_data():
    original = oracle(workers=30)
    before = len(pickle.dumps(original))
    x, g = np.ones(4), np.empty(4)
    original.grad(x)
    original.worker_grads(x)
    original.bind(x, g)()
    A, y = data()
    content = A.nbytes + y.nbytes + 30 * 8  # the shards
    # The rest: names and shapes, and an array object for each shard.
    assert len(pickle.dumps(original)) == before < content + 6000


def test_a_copy_shares_the_data_and_a_deep_copy_does_not():
    original = oracle()
    A = original._samples.arrays[0]
    assert copy.copy(original)._samples.arrays[0] is A
    assert not np.shares_memory(copy.deepcopy(original)._samples.arrays[0], A)


def test_large_data_are_not_copied_into_the_pickle():
    A = np.ones((1000, 4))
    buffers = []
    original = bo.compile(loss, np.ones(4), (A, np.ones(1000)))
    text = pickle.dumps(original, protocol=5, buffer_callback=buffers.append)
    assert len(text) < 6000
    assert any(np.shares_memory(np.frombuffer(buffer), A) for buffer in buffers)
    again = pickle.loads(text, buffers=buffers)
    assert np.shares_memory(again._samples.arrays[0], A)


def all_problems():
    A, y = data()
    yield problems.logistic(A, y, l2=0.1, split=3)
    yield problems.logistic(sp.csr_array(A), y)
    yield problems.least_squares(A, y)
    yield problems.nonconvex_logistic(A, y, split=2)
    yield problems.logistic_nonconvex_reg(A, y, lam=0.1)
    yield problems.synthetic_quadratic(3, 5)


@pytest.mark.parametrize("problem", list(all_problems()), ids=lambda problem: problem.name)
def test_problems(problem):
    x = rng().standard_normal(problem.dim)
    fresh = len(pickle.dumps(problem))
    value, grad = problem.value_and_grad(x)
    assert len(pickle.dumps(problem)) <= fresh + 20  # counters; the last evaluation stays here
    for again in round_trips(problem):
        assert again.counters == problem.counters
        other_value, other_grad = again.value_and_grad(x)
        assert (other_value, other_grad.tobytes()) == (value, grad.tobytes())
        assert again.constants.L == problem.constants.L
        assert again.constants.f_star == problem.constants.f_star
        if again.counters is not problem.counters:
            assert again.counters != problem.counters


METHODS = [
    *(getattr(optim, name)() for name in optim.__all__ if name not in ("Optimizer", "FixedStep")),
    optim.SGD(step_size=0.1, batch_size=2),
    optim.DCGD(compressor=compressors.RandK(2)),
    optim.Diana(compressor=compressors.RandK(2)),
    optim.EF21(compressor=compressors.TopK(1)),
    optim.Marina(compressor=compressors.RandK(1)),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_methods(method):
    for again in round_trips(method):
        assert again == method


# Derivatives


def cubic(x, c=1.0):
    return c * np.sum(x**3)


DERIVATIVES = {
    "grad": bo.grad,
    "value_and_grad": bo.value_and_grad,
    "jacobian": bo.jacobian,
    "hessian": bo.hessian,
    "by several": functools.partial(bo.grad, argnums=(0, 1)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    derivative = DERIVATIVES[name](cubic)
    expected = derivative(np.arange(3.0), 2.0)
    for again in round_trips(derivative):
        assert again.__name__ == derivative.__name__
        for a, b in zip(again(np.arange(3.0), 2.0), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert pickle.loads(pickle.dumps(derivative)).cache_info().n_programs == 0
    assert copy.deepcopy(derivative) is derivative


def test_derivatives_along_vectors():
    x, v = np.arange(3.0), np.ones(3)
    for again in round_trips(bo.hvp(cubic)):
        np.testing.assert_array_equal(again(x, v), 6 * x)
    for again in round_trips(bo.jvp(cubic)):
        assert again((x,), (v,)) == (9.0, 15.0)
    for again in round_trips(bo.vjp(cubic)):
        value, back = again(x)
        assert value == 9.0
        np.testing.assert_array_equal(back(2.0)[0], 6 * x**2)


def test_derivatives_of_derivatives_and_of_partials():
    scaled = functools.partial(cubic, c=2.0)
    for derivative in (bo.grad(bo.grad(square)), bo.grad(scaled)):
        again = pickle.loads(pickle.dumps(derivative))
        np.testing.assert_array_equal(again(np.float64(2.0)), derivative(np.float64(2.0)))


def square(x):
    return x * x


def test_what_a_derivative_looks_like():
    derivative = bo.grad(cubic)
    assert derivative.__name__ == "grad(cubic)"
    assert repr(derivative).startswith("<The grad of cubic (")
    assert inspect.signature(derivative) == inspect.signature(cubic)

    class Stiffness(float):
        def energy(self, x):
            return self * np.sum(x**2)

        force = bo.grad(energy, argnums=1)

    np.testing.assert_array_equal(Stiffness(2.0).force(np.ones(2)), [4, 4])


# What cannot be pickled


def test_a_derivative_of_a_function_without_a_name():
    for derivative in (bo.grad(lambda x: x * x), bo.hvp(lambda x: x * x)):
        with pytest.raises(TypeError, match=r"\(<lambda>\) cannot be pickled: .* Define it"):
            pickle.dumps(derivative)
        assert copy.deepcopy(derivative) is derivative


def test_a_bound_call():
    x, g = np.ones(4), np.empty(4)
    call = oracle().bind(x, g)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"a bound call cannot be .* call its bind\(x, g\)"):
            attempt(call)


def test_damaged_pickles_of_graphs_are_refused():
    buffer = io.BytesIO(pickle.dumps(oracle().graph))
    damaged = bytearray(buffer.getvalue())
    damaged[damaged.index(b"BOG") + 40] ^= 1
    with pytest.raises(ValueError, match="the pickled graph is damaged"):
        pickle.loads(bytes(damaged))


# In other processes


def results(oracle, problem, method, derivative, x):
    return bits(oracle, x), problem.grad(x).tobytes(), method, derivative(x).tobytes()


def test_in_the_processes_of_joblib():
    """Its pickler stores functions themselves, so that a lambda may be differentiated."""
    factor = 3.0
    derivative = bo.grad(lambda x: factor * np.sum(x**3))
    things = oracle(workers=2), next(all_problems()), METHODS[1], derivative
    points = rng().standard_normal((2, 4))
    jobs = [joblib.delayed(results)(*things, x) for x in points]
    found = joblib.Parallel(n_jobs=2, backend="loky")(jobs)
    assert found == [results(*things, x) for x in points]
