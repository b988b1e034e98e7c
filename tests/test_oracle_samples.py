"""What a sample may be: a row, several, nested dicts and tuples of rows, of several dtypes."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

import buropt as bo

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 3))
Y = RNG.integers(0, 2, size=6)
X = np.array([0.5, -1.0, 2.0])


def value(x, a, y):
    return np.logaddexp(0.0, (1 - 2 * y) * (a @ x))


EXPECTED = np.mean([value(X, a, y) for a, y in zip(A, Y, strict=True)])


class Pair(NamedTuple):
    a: object
    y: object


@pytest.mark.parametrize(
    ("data", "loss"),
    [
        ((A, Y), value),
        ([A, Y], value),
        (Pair(A, Y), value),
        ({"a": A, "y": Y}, lambda x, s: value(x, s["a"], s["y"])),
        ({"y": {"label": Y}, "a": [A]}, lambda x, s: value(x, s["a"][0], s["y"]["label"])),
        (((A, Y), np.ones(6)), lambda x, pair, w: w * value(x, *pair)),
        ([Pair(A, Y)], lambda x, pair: value(x, pair.a, pair.y)),
        ({"pair": Pair(A, Y), "none": None}, lambda x, s: value(x, *s["pair"])),
        ((A.tolist(), Y.tolist()), value),
        ({"a": A.tolist(), "y": tuple(Y.tolist())}, lambda x, s: value(x, s["a"], s["y"])),
        ({"a": scipy.sparse.csr_array(A), "y": Y}, lambda x, s: value(x, s["a"], s["y"])),
        ((A.astype(np.float32).astype(float), Y > 0), value),
    ],
)
def test_structures(data, loss):
    assert bo.compile(loss, X, data).value(X) == pytest.approx(EXPECTED, rel=1e-6)


def test_dtypes_may_differ():
    """Everything computes in the oracle's dtype; integers and masks keep their meaning."""
    data = {
        "single": A.astype(np.float32),
        "double": A,
        "token": Y.astype(np.uint8),
        "mask": Y > 0,
    }
    seen = {}

    def loss(x, s):
        seen.update({key: part.dtype for key, part in s.items()})
        weight = np.where(s["mask"], 2.0, x[s["token"]])
        return weight * ((s["single"] + s["double"]) @ x)

    for dtype in (np.float64, np.float32):
        oracle = bo.compile(loss, X, data, dtype=dtype)
        assert seen == {"single": dtype, "double": dtype, "token": np.int64, "mask": np.bool_}
        samples = [{key: part[j] for key, part in data.items()} for j in range(6)]
        expected = np.mean([loss(X, sample) for sample in samples])
        assert oracle.value(X) == pytest.approx(expected, rel=1e-5)
        assert oracle.grad(X.astype(dtype)).dtype == dtype


def test_parameters_of_several_dtypes():
    """A function computes in the common dtype; each gradient has its argument's dtype."""
    params = {"w": X.astype(np.float32), "b": 0.1}

    def loss(p):
        return np.sum(p["w"] * p["b"])

    value, gradient = bo.value_and_grad(lambda p, v: loss(p) + np.sum(v))(params, X)
    assert value == pytest.approx(np.sum(0.1 * X) + np.sum(X), rel=1e-15)
    assert gradient["w"].dtype == np.float32
    by_both = bo.grad(lambda w, v: np.sum(w * v), argnums=(0, 1))(params["w"], X)
    assert [part.dtype for part in by_both] == [np.float32, np.float64]
    assert bo.compile(loss, params).dtype == np.float64


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"a": A, "y": Y[:4]}, r"data\['y'\] has 4 samples and data\['a'\] has 6"),
        ((A, {"y": 1.0}), r"data\[1\]\['y'\] is a single number"),
        ({"a": (A, A[:2])}, r"data\['a'\]\[1\] has 2 samples and data\['a'\]\[0\] has 6"),
        ({}, "data is empty"),
        ({"a": np.ma.array(A, mask=A > 0)}, r"data\['a'\] is a masked array"),
        ({"a": np.array(["x"] * 6)}, r"data\['a'\] has dtype <U1; pass real numbers"),
        ({"a": np.zeros((0, 3))}, "data has no samples"),
    ],
)
def test_errors_name_the_part(data, text):
    with pytest.raises((TypeError, ValueError), match=text):
        bo.compile(lambda x, *sample: x @ x, X, data)


def test_names_of_nodes_and_errors_in_the_loss():
    oracle = bo.compile(lambda x, s: s["a"][1] @ x, X, {"a": (Y, A)})
    assert "data['a'][1]" in str(oracle.graph)
    with pytest.raises(TypeError, match=r"data\['a'\] is a sparse row"):
        bo.compile(lambda x, s: s["a"] + x, X, {"a": scipy.sparse.csr_array(A)})
