"""What cannot be traced raises: what was wrong, where, and what to write instead."""

import functools
import random

import numpy as np
import pytest
import scipy.sparse
import scipy.special

import buropt as bo
from buropt.trace import RandomDrawWarning, Trace, TraceError, UnsupportedOpError, errors

VECTOR = np.array([1.5, 0.25, -2.0])


def traced(function):
    """Trace a function of a vector of three; its result may have any shape."""
    with Trace() as trace:
        return trace.lift(function(trace.input("x0", VECTOR.shape)))


# ---- in-place operators


def in_place_input(x):
    v = x
    v += 1
    return v


def in_place_input_view(x):
    v = x[1:]
    v *= 2
    return v


def in_place_viewed(x):
    y = x * x
    tail = y[1:]
    y -= 1
    return tail


def in_place_view(x):
    y = x * x
    y[1:] += 1
    return y


def in_place_untraced(x):
    acc = np.zeros(3)
    acc += x
    return acc


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (in_place_input, r"\+= would change the input x0 in place"),
        (in_place_input_view, r"\*= would change the input x0 in place"),
        (in_place_viewed, r"-= would change an array that shares its memory"),
        (in_place_view, r"\+= would change an array that shares its memory"),
        (in_place_untraced, r"(?s)np.add would write a traced value.*acc = acc \+ x"),
    ],
)
def test_in_place_operators_that_cannot_be_right_raise(function, message):
    with pytest.raises(TraceError, match=message):
        traced(function)


def test_in_place_shape_is_kept():
    def function(x):
        y = x[:1] * 1.0
        y += x
        return y

    with pytest.raises(ValueError, match=r"result has shape \(3,\) and does not fit .* \(1,\)"):
        traced(function)


# ---- errors

BRANCH = "Python branch"
ERRORS = [
    (lambda x: x if x[0] > 0 else -x, TraceError, [BRANCH, "np.where"]),
    (lambda x: max(x[0], x[1]), TraceError, [BRANCH, "np.maximum"]),
    (lambda x: (x > 0) and (x < 1), TraceError, [BRANCH, "&, | and ~"]),
    (lambda x: 0.5 in x, TraceError, ["`in` depends on a traced value"]),
    (lambda x: float(x[0]), TraceError, ["Python float", "np.exp(x) for math.exp(x)"]),
    (lambda x: int(x[0]), TraceError, ["Python int"]),
    (lambda x: range(x[0]), TraceError, ["an index of a list or tuple, a shape or a loop bound"]),
    (lambda x: f"{x:.3f}", TraceError, ["no digits to format with '.3f'"]),
    (lambda x: np.array(x), TraceError, ["NumPy array", "np.stack([...])"]),
    (lambda x: np.array([x[0], x[1]]), TraceError, ["NumPy array", "np.stack([...])"]),
    (lambda x: scipy.sparse.eye(3) @ x, TraceError, ["NumPy array"]),
    (lambda x: x @ scipy.sparse.csr_array(np.eye(3)), TraceError, ["SciPy sparse", "bo.compile"]),
    (lambda x: x * np.array([1, None, 2]), TraceError, ["dtype object"]),
    (lambda x: x * None, TraceError, ["None is not a number"]),
    (lambda x: x + 1j, TraceError, ["dtype complex128"]),
    (lambda x: x * np.ma.array([1, 2, 3]), TraceError, ["type MaskedArray"]),
    (lambda x: x.astype("i1"), TraceError, ["dtype int8", "integers as int64"]),
    (lambda x: x & 1, TraceError, ["between masks", "(x > 0) & (x < 1)"]),
    (lambda x: +(x > 0), TraceError, ["np.positive is not defined for booleans"]),
    (lambda x: np.einsum("i->", x, dtype="f4"), UnsupportedOpError, ["np.einsum", "dtype="]),
    (lambda x: np.zeros_like(x, dtype="f2"), UnsupportedOpError, ["np.full_like", "dtype="]),
    (lambda x: np.stack([x], dtype=bool), UnsupportedOpError, ["np.concatenate", "dtype="]),
    (lambda x: (2 * x)[:, None].T.ravel("A"), UnsupportedOpError, ["np.ravel", "order="]),
    (lambda x: x[:, None].copy(order="K").ravel("K"), UnsupportedOpError, ["C order"]),
    (lambda x: np.ravel(x, order="F"), UnsupportedOpError, ["np.ravel", "order="]),
    (lambda x: x.flatten("K"), UnsupportedOpError, ["np.ravel", "order="]),
    (lambda x: x.flatten("A"), UnsupportedOpError, ["np.ravel", "order="]),
    (lambda x: x.reshape(3, 1, order="A"), UnsupportedOpError, ["np.reshape", "order="]),
    (lambda x: np.reshape(x, 3, "F"), UnsupportedOpError, ["np.reshape", "order="]),
    (lambda x: (x > 0) - (x < 0), TraceError, ["np.subtract is not defined for booleans"]),
    (lambda x: np.linalg.pinv(x[None]), UnsupportedOpError, ["np.linalg.pinv", "np.linalg.solve"]),
    (lambda x: np.add.outer(x, x), UnsupportedOpError, ["np.add.outer", "perhaps np.outer"]),
    (lambda x: np.subtract.reduce(x), UnsupportedOpError, ["np.subtract.reduce"]),
    (lambda x: np.fft.fft(x), UnsupportedOpError, ["np.fft.fft", "real arithmetic"]),
    (lambda x: scipy.special.ellipk(x), UnsupportedOpError, ["ellipk", "supported_functions"]),
    (lambda x: np.frompyfunc(abs, 1, 1)(x), UnsupportedOpError, ["abs (vectorized)"]),
    (lambda x: x.at[0].set(1.0), AttributeError, ["ndarray.at cannot", "np.where(mask, new, old)"]),
    (lambda x: x.astype(int) << 2, UnsupportedOpError, ["np.left_shift", "x * 2**n"]),
    (lambda x: 5 >> x.astype(int), UnsupportedOpError, ["np.right_shift", "x // 2**n"]),
    (lambda x: np.nextafter(x, 2), UnsupportedOpError, ["np.nextafter"]),
    (lambda x: np.where(x > 0), UnsupportedOpError, ["np.where with a condition only"]),
    (lambda x: x[x > 0], UnsupportedOpError, ["traced mask of shape (3,)", "np.where"]),
    (lambda x: x[True], UnsupportedOpError, ["index of type bool"]),
    (lambda x: np.sum(x, dtype="f4"), UnsupportedOpError, ["np.sum: the argument dtype="]),
    (lambda x: x.std(where=x > 0), UnsupportedOpError, ["np.std: the argument where="]),
    (lambda x: np.add(x, 1, where=x > 0), UnsupportedOpError, ["np.add: the argument where="]),
    (lambda x: np.exp(x, out=x), UnsupportedOpError, ["np.exp: the argument out="]),
    (lambda x: x.reshape(1, 3, order="F"), UnsupportedOpError, ["np.reshape: the argument order="]),
    (lambda x: np.einsum("...i->i", x[None]), ValueError, ["np.einsum: an ellipsis"]),
    (lambda x: np.ones((2, 2, 2)) @ x, ValueError, ["buropt.matmul", "(2, 2, 2)", "(3,)"]),
    (lambda x: x + np.ones(2), ValueError, ["buropt.add", "(3,)", "(2,)"]),
    (lambda x: np.eye(2) @ x, ValueError, ["buropt.matmul"]),
    (lambda x: x.reshape(2, -1), ValueError, ["buropt.reshape", "(2, -1)"]),
    (lambda x: np.stack([x, x[:2]]), ValueError, ["buropt.stack", "same shape"]),
    (lambda x: np.sum(x, axis=1), ValueError, ["axis 1 is out of bounds"]),
    (lambda x: x[0] @ x, ValueError, ["buropt.matmul: an operand has shape ()", "a * b"]),
    (lambda x: np.max(x[:0]), ValueError, ["nothing to choose", "an array with elements"]),
    (lambda x: np.nanmax(x, initial=0), UnsupportedOpError, ["initial=", "np.maximum(np.max(x)"]),
    (lambda x: np.max(x, where=x > 0), ValueError, ["where= may leave no element", "initial="]),
    (lambda x: np.sum(x, where=[1, 0, 1]), TraceError, ["where= must be a mask", "int64"]),
    (lambda x: np.sum(x, initial=x), TraceError, ["np.sum: initial= of shape (3,)", "one number"]),
    (lambda x: np.sum(x > 0, initial=0.5), TraceError, ["initial= of dtype float64 among int64"]),
    (lambda x: ~x.astype(int), TraceError, ["~ is only defined for masks", "as in ~(x > 0)"]),
    (lambda x: x * (10**20 + 1), TraceError, ["an integer operand holds 100000000000000000001"]),
    (lambda x: x * 10**5000, TraceError, ["an integer operand is beyond the range of floats"]),
    (lambda x: x[3], IndexError, ["index 3 is out of bounds"]),
    (lambda x: x[0, 0], IndexError, ["too many indices"]),
]


@pytest.mark.parametrize(("function", "kind", "parts"), ERRORS)
def test_errors(function, kind, parts):
    with pytest.raises(kind) as caught:
        traced(function)
    text = str(caught.value)
    where = f"Raised while tracing a function, at {__file__}:{function.__code__.co_firstlineno}: `"
    for part in [*parts, where, " Instead: "]:
        assert part in text


def test_item_assignment():
    def number(x):
        out = np.zeros(2)
        out[0] = x[0] ** 2
        return out.sum()

    def row(x):
        out = np.zeros((2, 3))
        out[0] = x
        return out.sum()

    def tracer(x):
        x[0] = 1.0
        return x

    for function in (number, row, tracer):
        with pytest.raises(TypeError, match=r"(?s)item assignment.*np\.stack"), Trace() as trace:
            trace.call(function, trace.input("x", (3,)))


def test_location_names_function_file_and_expression():
    def loss(x):
        y = x * 2
        return np.linalg.svd(y)

    with Trace() as trace, pytest.raises(UnsupportedOpError) as caught:
        trace.call(loss, trace.input("x", (3,)))
    line = loss.__code__.co_firstlineno + 2
    assert f"while tracing loss, at {__file__}:{line}: `return np.linalg.svd(y)`" in str(
        caught.value
    )


def test_the_stack_is_only_walked_for_errors(monkeypatch):
    def walk():
        raise AssertionError("walked the stack")

    monkeypatch.setattr(errors, "_user_frame", walk)
    traced(lambda x: np.sum(np.where(np.sin(x)[1:] > 0, 2.0 * x[:1], 1) ** 2).reshape(1))
    with pytest.raises(AssertionError, match="walked the stack"):
        traced(lambda x: np.nextafter(x, 2))


def test_unknown_attributes_are_missing():
    with Trace() as trace:
        x = trace.input("x", (3,))
    assert not hasattr(x, "partition")
    assert not hasattr(x, "no_such_thing")
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        x.no_such_thing  # noqa: B018
    assert repr(x) == "Tracer(shape=(3,), dtype=float64)"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "returned None"),
        ((1.0, 2.0), "returned a tuple"),
        (np.ones(3), r"returned an array of shape \(3,\).*np.sum"),
        (True, "returned a boolean"),
        ("text", "returned a str, which is not a real number"),
    ],
)
def test_results_that_are_not_a_number(result, message):
    with Trace() as trace, pytest.raises(TraceError, match=message):
        trace.call(lambda x: result, trace.input("x", (3,)))


def test_leaked_tracers():
    with Trace() as trace:
        leaked = trace.input("x", (3,))
    with pytest.raises(TraceError, match="used outside of that recording"):
        leaked + 1
    with Trace() as other, pytest.raises(TraceError, match="used outside of that recording"):
        other.input("y", (3,)) + leaked


def test_random_draws_warn():
    generator = np.random.default_rng(0)
    with Trace() as trace:
        x = trace.input("x", (3,))
        with pytest.warns(RandomDrawWarning, match="drew random numbers"):
            trace.call(lambda x: x @ generator.normal(size=3), x)
        with pytest.warns(RandomDrawWarning, match="drew random numbers"):
            trace.call(lambda x: x @ np.random.normal(size=3), x)  # noqa: NPY002
        trace.call(lambda x: x @ np.random.default_rng(0).normal(size=3), x)


class Noise:
    def __init__(self):
        self.generator = np.random.default_rng(0)
        self.parts = {"state": [np.random.RandomState(0)]}
        self.python = random.Random(0)

    def method(self, x):
        return x[0] * self.generator.normal()

    def __call__(self, x):
        return x[0] * self.parts["state"][0].normal()


NOISE = Noise()


def by_attribute(x):
    return x[0] * NOISE.python.random()


def by_helper(x):
    return sum(helper(part) for helper in (by_attribute,) for part in [x])


def by_default(x, *, generators=[NOISE.generator]):  # noqa: B006 (on purpose)
    return x[0] * generators[0].normal()


@pytest.mark.parametrize(
    "function",
    [
        NOISE.method,
        NOISE,
        by_attribute,
        by_helper,
        by_default,
        functools.partial(lambda rng, x: x[0] * rng.normal(), NOISE.generator),
        lambda x: NOISE.method(x) + np.sum(x),
        lambda x: (lambda y: sum(NOISE.generator.normal() * part for part in y))(x),
        lambda x: x[0] * random.random(),
    ],
)
def test_random_draws_are_found_wherever_they_are(function):
    with pytest.warns(RandomDrawWarning, match="drew random numbers") as caught:
        bo.grad(function)(VECTOR)
    assert caught[0].filename == __file__


def test_generators_that_are_not_drawn_from_do_not_warn():
    bo.grad(lambda x: np.sum(x) * len(NOISE.parts))(VECTOR)


# ---- sparse rows


def test_sparse_rows_support_products():
    with Trace() as trace:
        x, matrix = trace.input("x", (5,)), trace.input("W", (5, 2))
        a = trace.csr_input("a", 5)
        dots = [
            a @ x,
            x @ a,
            a.dot(x),
            x.dot(a),
            np.dot(a, x),
            np.dot(x, a),
            a.T @ x,
            np.inner(a, x),
        ]
        assert len({dot.node for dot in dots}) == 1
        assert dots[0].shape == ()
        products = [a @ matrix, matrix.T @ a, np.dot(matrix.T, a), np.matmul(a, matrix)]
        assert [product.shape for product in products] == [(2,)] * 4
        constant = [a @ np.ones(5), np.ones(5) @ a, np.ones((2, 5)) @ a]
        assert [product.shape for product in constant] == [(), (), (2,)]
        assert trace.builder.batched(dots[0].node)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, x: a + 1,
        lambda a, x: 2.0 * a,
        lambda a, x: x * a,
        lambda a, x: np.exp(a),
        lambda a, x: np.sum(a),
        lambda a, x: a[0],
        lambda a, x: a.sum(),
        lambda a, x: np.asarray(a),
        lambda a, x: a @ a,
        lambda a, x: np.concatenate([a, x]),
        lambda a, x: np.where(a, x, 1.0),
        lambda a, x: a > 0,
        lambda a, x: list(a),
    ],
)
def test_sparse_rows_support_nothing_else(function):
    with Trace() as trace:
        x, a = trace.input("x", (5,)), trace.csr_input("a", 5)
        with pytest.raises(TraceError, match=r"(?s)sparse row.* only support.* products with x"):
            function(a, x)
