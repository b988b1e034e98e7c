"""The oracle's methods that go straight to the core: they behave as those written in Python do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import buropt as bo

METHODS = ("value", "grad", "value_and_grad", "step")


@pytest.fixture
def oracle():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((20, 3)), rng.standard_normal(20)
    return bo.compile(lambda x, a, b: (a @ x - b) ** 2, np.zeros(3), data=(A, b))


def written(name):
    """The method as it is written in Python."""
    return inspect.unwrap(getattr(bo.Oracle, name))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_looks_like_the_function(oracle, name):
    method = getattr(oracle, name)
    assert inspect.isfunction(written(name))
    assert inspect.signature(method).parameters["x"].annotation
    assert next(iter(inspect.signature(method).parameters)) == "x"
    assert method.__name__ == name
    assert method.__self__ is oracle
    assert method.__doc__ == written(name).__doc__
    assert inspect.isroutine(getattr(bo.Oracle, name))


X, IDX, OUT = np.ones(3), np.array([3, 1, 3]), np.empty(3)
CALLS = (
    ((X,), {}),
    (([1, 1, 1],), {}),
    ((X, IDX), {}),
    ((X, [3, 1, 3]), {}),
    ((X,), {"idx": IDX}),
    ((), {"x": X, "idx": IDX, "weights": None}),
    ((X, IDX, None), {}),
    ((X, IDX, np.array([1.0, 0.0, 2.0])), {}),
    ((X,), {"weights": np.ones(20)}),
)


@pytest.mark.parametrize("call", range(len(CALLS)))
@pytest.mark.parametrize("name", METHODS[:3])
def test_every_way_to_call_gives_the_same(oracle, name, call):
    arguments, named = CALLS[call]
    expected = written(name)(oracle, *arguments, **named)
    for _ in range(2):  # the first call of a fresh oracle compiles
        np.testing.assert_equal(getattr(oracle, name)(*arguments, **named), expected)
    if name == "grad":
        assert oracle.grad(*arguments, **named, out=OUT) is OUT
        np.testing.assert_array_equal(OUT, expected)


@pytest.mark.parametrize(
    ("name", "arguments", "named", "error"),
    [
        ("grad", (), {}, "missing 1 required positional argument: 'x'"),
        ("grad", (X,), {"x": X}, "multiple values for argument 'x'"),
        ("grad", (X,), {"rows": IDX}, "unexpected keyword argument 'rows'"),
        ("value", (X,), {"out": OUT}, "unexpected keyword argument 'out'"),
        ("grad", (X, None, None, OUT, 1), {}, "takes from 2 to 5 positional arguments but 6"),
        ("grad", (np.ones(2),), {}, r"x must have shape \(3,\), got \(2,\)"),
        ("grad", (X, [20]), {}, "idx contains 20"),
        ("grad", (X, [0.5]), {}, "idx must be an array of integers"),
        ("value_and_grad", (X,), {"out": X}, "out must not share memory with x"),
        ("step", (X,), {}, "missing 1 required positional argument: 'step_size'"),
        ("step", (X, np.inf), {}, "step_size must be finite"),
        ("step", (X, "1"), {}, "step_size must be a number"),
        ("step", ([1.0, 1.0, 1.0], 0.1), {}, "x must be a writeable NumPy array"),
    ],
)
def test_errors_are_those_of_the_function(oracle, name, arguments, named, error):
    getattr(oracle, name)(X.copy(), *[0.0] * (name == "step"))  # compiled by now
    for method in (getattr(oracle, name), written(name).__get__(oracle)):
        with pytest.raises((TypeError, ValueError, IndexError), match=error):
            method(*arguments, **named)


def test_a_method_of_no_oracle():
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        bo.Oracle.grad()
    with pytest.raises(AttributeError):
        bo.Oracle.grad(3, X)


@pytest.mark.parametrize("step_size", [0.25, np.float64(0.25), np.float32(0.25), 1])
def test_a_step_takes_any_number(oracle, step_size):
    x = X.copy()
    oracle.step(x, step_size, idx=IDX)
    np.testing.assert_array_equal(x, X - step_size * oracle.grad(X, IDX))


def test_compiled_weights_are_minded():
    A, w = np.eye(2), np.array([1.0, 3.0])
    oracle = bo.compile(lambda x, a: a @ x, np.zeros(2), data=(A,), weights=w)
    for _ in range(2):
        np.testing.assert_array_equal(oracle.grad(np.ones(2)), w / 2)
        np.testing.assert_array_equal(oracle.grad(np.ones(2), [1]), [0.0, 3.0])


def test_a_subclass_may_override_a_method(oracle):
    class Counting(bo.Oracle):
        calls = 0

        def grad(self, *arguments, **named):
            self.calls += 1
            return super().grad(*arguments, **named)

    oracle.__class__ = Counting
    for count in (1, 2):
        assert oracle.grad(X, IDX).shape == (3,)
        assert oracle.calls == count


def test_an_object_without_its_evaluator_is_answered_by_the_method(oracle):
    expected = oracle.grad(X, IDX)
    del oracle._quick_grad
    assert not hasattr(oracle, "_quick_grad")
    np.testing.assert_array_equal(oracle.grad(X, IDX), expected)

    class Plain:  # no slots: found as any attribute
        @type(vars(bo.Oracle)["grad"])
        def grad(self, x):
            return "written"

    plain = Plain()
    assert plain.grad(X) == "written"
    plain._quick_grad = oracle._quick_grad
    np.testing.assert_array_equal(plain.grad(X), oracle.grad(X))


def test_only_methods_of_known_arguments_are_wrapped():
    from buropt import _core

    with pytest.raises(ValueError, match="no evaluator takes an argument rows"):
        _core.QuickMethod(lambda self, x, rows: None)
    with pytest.raises(AttributeError):
        _core.QuickMethod(3)
