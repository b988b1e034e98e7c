"""`check_grads`: right derivatives pass, wrong ones are reported by the entry that is off most."""

import numpy as np
import pytest
import scipy.special

import buropt as bo
from buropt.autodiff.differences import Differences
from buropt.trace import Tracer

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.standard_normal((3, 2)), "b": (0.5, RNG.standard_normal(2))}
DATA = RNG.standard_normal(3)


def loss(params, data):
    scale, shift = params["b"]
    return np.sum(np.tanh(data @ params["w"] + shift) ** 2) * scale


RIGHT = {
    "nested": (loss, PARAMS, (DATA,)),
    "number": (lambda x: x**3 * np.exp(-x), 1.3, ()),
    "integers": (lambda x: np.sum(x**3), np.array([1, 2, 3]), ()),
    "without complex numbers": (lambda x: np.sum(np.logaddexp(x, 1.0)), DATA, ()),
    "another meaning in complex numbers": (lambda x: np.sum(np.abs(x) ** 3), DATA, ()),
    "an array": (lambda x: np.outer(np.sin(x), x), DATA, ()),
    "nested results": (lambda x: {"a": [x**2, x[0]], "b": np.exp(x)}, DATA, ()),
    "close to the border of the domain": (lambda x: np.sum(np.log(x)), np.array([1e-7, 1e3]), ()),
    "of very different sizes": (lambda x: np.sum(np.sin(x * 1e-6)), np.array([1e6, 1e-3]), ()),
    "large values": (lambda x: 1e12 + np.sum(x**2), DATA, ()),
    "linear": (lambda x: x @ DATA, DATA, ()),
    "at the minimum": (lambda x: np.sum((x - 1) ** 2), np.ones(3), ()),
    "no influence": (lambda x, y: np.sum(y**2), DATA, (DATA,)),
    "single precision": (
        lambda x: np.sum(scipy.special.expit(x) ** 2),
        DATA.astype(np.float32),
        (),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name):
    f, x, args = RIGHT[name]
    assert bo.check_grads(f, x, order=2, args=args) is None


def test_third_order_and_single_modes():
    bo.check_grads(lambda x: np.sum(np.exp(x) * np.sin(x)), DATA, order=3)
    for mode in ("rev", "fwd"):
        bo.check_grads(loss, PARAMS, order=2, args=(DATA,), modes=(mode,))


def test_several_arguments():
    bo.check_grads(lambda a, b, c: np.sum(a * b**2) * c, DATA, args=(DATA + 1, 2.0), argnums=(0, 2))


def wrong(change):
    """A loss whose trace has `change` in the place of w."""

    def f(params, data):
        w = params["w"]
        if isinstance(w, Tracer):
            w = change(w)
        return loss({"w": w, "b": params["b"]}, data)

    return f


def only(row, column):
    mask = np.zeros((3, 2))
    mask[row, column] = 1
    return mask


W = PARAMS["w"]


def test_the_worst_entry_is_named():
    """The value is right, the slope by w[2, 1] twice what it should be."""
    mask = only(2, 1)
    f = wrong(lambda w: w + mask * (w - W) * 1.0)
    with pytest.raises(bo.GradientError) as caught:
        bo.check_grads(f, PARAMS, args=(DATA,))
    error = caught.value
    assert error.name == "params['w'][2, 1]"
    assert error.order == 1
    assert error.got == pytest.approx(2 * error.expected)
    assert error.relative_error == pytest.approx(0.5)
    assert error.expected == pytest.approx(bo.grad(loss)(PARAMS, DATA)["w"][2, 1])
    assert isinstance(error, AssertionError)
    text = str(error)
    assert text.startswith("the derivative of f (")
    assert "of order 1 (reverse mode) is off, most of all by params['w'][2, 1]: expected " in text
    assert "by a complex step" in text
    assert "Instead: " in text


def test_forward_mode_names_the_entry_too():
    mask = only(0, 1)
    f = wrong(lambda w: w + mask * (w - W) * 1e-3)
    with pytest.raises(bo.GradientError, match=r"\(forward mode\) .* by params\['w'\]\[0, 1\]"):
        bo.check_grads(f, PARAMS, args=(DATA,), modes=("fwd",))


@pytest.mark.parametrize("modes", [("rev",), ("fwd",), ("rev", "fwd")])
def test_a_wrong_second_derivative(modes):
    """Value and slope are right at this point."""
    mask = only(1, 0)
    f = wrong(lambda w: w + mask * (w - W) ** 2)
    bo.check_grads(f, PARAMS, order=1, args=(DATA,), modes=modes)
    with pytest.raises(bo.GradientError, match=r"order 2 \(.* over .* mode\)") as caught:
        bo.check_grads(f, PARAMS, args=(DATA,), modes=modes)
    assert caught.value.order == 2


def test_a_value_that_differs_while_tracing():
    with pytest.raises(bo.GradientError, match=r"the value of f .* as traced is") as caught:
        bo.check_grads(wrong(lambda w: 2 * w), PARAMS, args=(DATA,))
    assert (caught.value.name, caught.value.order) == ("value", 0)


def test_one_wrong_entry_among_many():
    x = RNG.standard_normal(5000)
    weights = np.zeros(5000)
    weights[4321] = 1e-2

    def f(y):
        total = np.sum(np.sin(y))
        return total + weights @ (y - x) if isinstance(y, Tracer) else total

    with pytest.raises(bo.GradientError) as caught:
        bo.check_grads(f, x, order=1)
    assert caught.value.name == "y[4321]"


def test_a_number_has_no_index():
    with pytest.raises(bo.GradientError) as caught:
        bo.check_grads(lambda x: x + (x - 2) * isinstance(x, Tracer), 2.0)
    assert caught.value.name == "x"


def test_the_same_seed_compares_the_same_numbers():
    def message(seed):
        seen = []

        def f(x):
            if not isinstance(x, Tracer):
                seen.append(np.array(x))
            return np.sum(np.sin(x))

        bo.check_grads(f, DATA, order=1, seed=seed)
        return np.concatenate(seen).tobytes()

    assert message(0) == message(0)
    assert message(0) != message(1)


def test_steps_of_ones_own():
    bo.check_grads(lambda x: np.sum(np.sin(x)), DATA, eps=1e-4)
    with pytest.raises(bo.GradientError, match="by central differences"):
        bo.check_grads(wrong(lambda w: w + (w - W)), PARAMS, args=(DATA,), eps=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bo.check_grads(np.sum, DATA, order=0), "order must be at least 1"),
        (lambda: bo.check_grads(np.sum, DATA, modes=("reverse",)), "among 'rev' and 'fwd'"),
        (lambda: bo.check_grads(np.sum, np.array([np.nan])), "x has entries that are not finite"),
        (lambda: bo.check_grads(lambda x: np.sum(np.log(x)), -(DATA**2)), "is nan at x"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_cannot_be_traced_is_said_as_usual():
    with pytest.raises(bo.TraceError, match="a Python branch"):
        bo.check_grads(lambda x: x if x > 0 else -x, 1.0)


def test_differences_know_how_good_they_are():
    x, v = np.array([0.7]), np.array([2.0])
    for function, slope in (
        (lambda x: np.exp(x[0]), 2 * np.exp(0.7)),
        (lambda x: np.sin(30 * x[0]), 60 * np.cos(21.0)),
        (lambda x: np.log(x[0] - 0.699), 2000.0),
    ):
        with np.errstate(invalid="ignore"):
            found, uncertainty, _ = Differences(function, x).along(v)
            exact = Differences(function, x, try_complex=True).along(v)
        assert abs(found - slope) < 10 * uncertainty + 1e-13 * abs(slope)
        assert uncertainty < 1e-8 * abs(slope)
        assert exact.value == pytest.approx(slope, rel=1e-12)
