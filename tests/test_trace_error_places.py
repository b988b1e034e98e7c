"""Where an error happened is told as the line that the user wrote, however deep it is nested."""

import functools
import inspect
import math
import warnings

import numpy as np
import pytest

import buropt as bo
from buropt.trace import DisconnectedInputWarning, TraceError

X = np.array([1.5, 0.25, -2.0])
A = np.arange(8.0).reshape(4, 2)


class Model:
    """Lines that are wrong end in `# here`."""

    scale = np.ones(2)

    def method(self, x):
        return np.sum(x * self.scale)  # here

    def __call__(self, x):
        return sum(
            part
            for part in x
            if part > 0  # here
        )


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def with_decorator(x):
    return math.exp(x[0])  # here


def of_nested_function(x):
    def inner(y):
        return y @ np.ones(2)  # here

    return inner(2 * x)


def of_lambda(x):
    square = lambda y: np.linalg.eig(y)  # noqa: E731  # here
    return square(x[:, None] * x)


def of_comprehension(x):
    return sum(
        [
            int(part)  # here
            for part in x
        ]
    )


def of_generator(x):
    def parts():
        for k in range(5):
            yield x[k]  # here

    return sum(parts())


def of_assignment(x):
    out = np.zeros((2, 3))
    for row in range(2):
        out[row] = x * row  # here
    return out.sum()


def of_map(x):
    return sum(map(float, x))  # here


def of_several_lines(x):
    return np.sum(
        np.concatenate(
            [
                x,
                np.array([x[0], 1.0]),  # here
            ]
        )
    )


def of_array(x):
    return sum(np.asarray(x))  # here


def of_complex_numbers(x):
    y = x + 1
    return np.sum(y * 1j)  # here


def of_an_index(x):
    table = [1.0, 2.0, 3.0]
    return x[0] * table[np.argmax(x)]  # here


def of_integers_in_place(x):
    count = np.argmax(x, keepdims=True)
    count += x[0]  # here
    return np.sum(count)


WRONG = [
    Model().method,
    Model(),
    with_decorator,
    of_nested_function,
    of_lambda,
    of_comprehension,
    of_generator,
    of_assignment,
    of_map,
    of_several_lines,
    of_array,
    of_complex_numbers,
    of_an_index,
    of_integers_in_place,
    functools.partial(of_nested_function),
]
CALLS = {
    "grad": lambda f: bo.grad(f)(X),
    "compile": lambda f: bo.compile(f, X),
    "loss of a sample": lambda f: bo.compile(lambda x, a: f(x) * a[0], X, A),
    "regularizer": lambda f: bo.compile(lambda x: x @ x, X, regularizer=f),
    "inner derivative": lambda f: bo.grad(lambda x: np.sum(bo.grad(f)(x)))(X),
}


def marked_line(function):
    function = function.func if isinstance(function, functools.partial) else function
    function = type(function).__call__ if isinstance(function, Model) else function
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    (number,) = (k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))
    return first + number, lines[number].strip()[:20]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("function", WRONG)
def test_the_line_is_named(function, call):
    with pytest.raises((TraceError, ValueError, IndexError)) as caught:
        CALLS[call](function)
    line, text = marked_line(function)
    assert f"at {__file__}:{line}: `{text}" in str(caught.value)
    assert "Raised while tracing " in str(caught.value)
    assert " Instead: " in str(caught.value)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda x: x, r"returned an array of shape \(3,\)"),
        (lambda x: None, "returned None"),
        (lambda x: [x[0]], "returned a list"),
        (lambda x: {"value": x[0]}, "returned a dict"),
        (lambda x: x[0] > 0, "returned a boolean"),
        (lambda x: "loss", "returned a str, which is not a real number"),
        (lambda x: x[0] * 1j, "complex128 cannot be traced"),
    ],
)
def test_losses_that_are_not_a_number(loss, message):
    place = f"{__file__}:{loss.__code__.co_firstlineno}"
    for call in (CALLS["grad"], CALLS["compile"]):
        with pytest.raises(TraceError, match=rf"(?s){message}.* Instead: ") as caught:
            call(loss)
        assert place in str(caught.value)


def unused(p):
    return np.sum(p["w"])


def test_inputs_that_do_not_matter():
    params = {"w": X, "b": [X, X]}
    message = r"unused \(.*py:\d+\) does not depend on p\['b'\]\[0\], p\['b'\]\[1\], .* Instead: "
    with pytest.warns(DisconnectedInputWarning, match=message) as caught:
        gradient = bo.grad(unused)(params)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(gradient["b"], np.zeros((2, 3)))
    with pytest.warns(DisconnectedInputWarning, match=r"x0\['b'\]\[0\], x0\['b'\]\[1\]") as caught:
        bo.compile(unused, params)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bo.grad(unused)({"w": X})


def test_dtypes_that_do_not_mix():
    single = X.astype(np.float32)
    for wrong, message in [
        (lambda x: np.sum(x.astype(np.float64)), "converted to dtype float64"),
        (lambda x: np.sum(x, dtype=np.float64), "np.sum: the argument dtype="),
        (lambda x: np.sum(x.astype("f2")), "converted to dtype float16"),
        (lambda x: np.sum(x * np.array(["a"])), "operand of dtype <U1"),
        (lambda x: np.sum(x * np.array([1, None, 2])), "operand of dtype object"),
        (lambda x: np.sum(x * np.array(["2020-01-01"], "M8[D]")), "operand of dtype datetime64"),
        (lambda x: np.sum(x * 16777217), "an integer operand holds 16777217"),
    ]:
        with pytest.raises(TraceError, match=rf"(?s){message}.* Instead: ") as caught:
            bo.grad(wrong)(single)
        assert f"{__file__}:{wrong.__code__.co_firstlineno}" in str(caught.value)
    # What NumPy would do in float64 is done in the graph's dtype, and says so in the result.
    assert bo.grad(lambda x: np.sum(x * np.ones(3)))(single).dtype == np.float32


def test_arguments_that_are_no_numbers():
    for x, message in [
        (X * 1j, "argument x has dtype complex128"),
        (X.astype(np.float16), "argument x has dtype float16"),
        (np.array(["a"]), "argument x has dtype <U1"),
        ("text", "argument x is of type str"),
        ({"w": [X, None, "a"]}, r"argument x\['w'\]\[2\] is of type str"),
    ]:
        with pytest.raises(TraceError, match=rf"{message}.*Instead: "):
            bo.grad(lambda x: np.sum(x))(x)


def test_samples_of_a_wrong_length():
    with pytest.raises(ValueError, match=r"data\[1\] has 3 samples and data\[0\] has 4; every"):
        bo.compile(lambda x, a, b: x[0] * b, X, (A, np.ones(3)))
    with pytest.raises(ValueError, match=r"inner sizes differ: a is \(2,\), b is \(3,\)") as caught:
        bo.compile(lambda x, a: a @ x, X, A)
    assert "Instead: operands whose inner extents agree" in str(caught.value)
