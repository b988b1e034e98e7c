"""Methods and attributes of traced arrays are those of ndarrays."""

import copy

import numpy as np
import pytest
from tracing import assert_like_numpy, evaluate

from buropt.trace import Trace, TraceError, UnsupportedOpError
from buropt.trace.methods import METHODS

MATRIX = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]])
SQUARE = np.array([[0.5, -1.5], [3.0, -0.25]])

# Calls of every method.
CALLS = {
    "all": [lambda x: (x > -9).all(), lambda x: (x > 0).all(1), lambda x: x.all(axis=0)],
    "any": [lambda x: (x > 2).any(), lambda x: (x > 0).any(1, keepdims=True)],
    "argmax": [lambda x: x.argmax(), lambda x: x.argmax(0), lambda x: x.argmax(axis=1)],
    "argmin": [lambda x: x.argmin(), lambda x: x.argmin(-1, keepdims=True)],
    "argsort": [lambda x: x.argsort(), lambda x: x.argsort(0)],
    "astype": [lambda x: x.astype(int), lambda x: x.astype(float), lambda x: x.astype(bool)],
    "choose": [lambda x: x.argmax(0).choose(x), lambda x: (x > 0).choose([x, -x])],
    "clip": [lambda x: x.clip(0, 1), lambda x: x.clip(max=0.5), lambda x: x.clip(min=x[:, :1])],
    "compress": [lambda x: x.compress([True, False, True], 1), lambda x: x.compress([0, 1, 1])],
    "conj": [lambda x: x.conj()],
    "conjugate": [lambda x: x.conjugate()],
    "copy": [lambda x: x.copy(), lambda x: copy.copy(x) + copy.deepcopy(x)],
    "cumprod": [lambda x: x.cumprod(), lambda x: x.cumprod(1)],
    "cumsum": [lambda x: x.cumsum(), lambda x: x.cumsum(axis=0)],
    "diagonal": [lambda x: x.diagonal(), lambda x: x.diagonal(1), lambda x: x.diagonal(0, 1, 0)],
    "dot": [lambda x: x.dot(x.T), lambda x: x.dot(np.ones(3)), lambda x: x.dot(2.0)],
    "flatten": [lambda x: x.flatten()],
    "max": [lambda x: x.max(), lambda x: x.max(0), lambda x: x.max(axis=(0, 1), keepdims=True)],
    "mean": [lambda x: x.mean(), lambda x: x.mean(0), lambda x: (x > 0).mean(axis=1)],
    "min": [lambda x: x.min(), lambda x: x.min(1, keepdims=True)],
    "prod": [lambda x: x.prod(), lambda x: x.prod(0), lambda x: (x > 0).prod(axis=1)],
    "ravel": [lambda x: x.ravel(), lambda x: x.T.ravel()],
    "repeat": [lambda x: x.repeat(2), lambda x: x.repeat([1, 2, 0], axis=1)],
    "reshape": [
        lambda x: x.reshape(3, -1),
        lambda x: x.reshape((6,)),
        lambda x: x[0, 0].reshape(()),
    ],
    "round": [lambda x: x.round(), lambda x: (x / 7).round(2), lambda x: x.round(decimals=1)],
    "searchsorted": [lambda x: (x[0] ** 2).searchsorted([1.0, 2.25, 9.0], side="right")],
    "squeeze": [lambda x: x[None].squeeze(), lambda x: x[None].squeeze(0), lambda x: x.squeeze()],
    "std": [lambda x: x.std(), lambda x: x.std(0), lambda x: x.std(axis=1, ddof=1)],
    "sum": [lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(axis=(0, 1), keepdims=True)],
    "swapaxes": [lambda x: x.swapaxes(0, 1), lambda x: x[None].swapaxes(0, -1)],
    "take": [lambda x: x.take([4, 0]), lambda x: x.take(1, axis=1), lambda x: x.take([[0]], 0)],
    "trace": [lambda x: x.trace(), lambda x: x.trace(offset=1)],
    "transpose": [
        lambda x: x.transpose(),
        lambda x: x.transpose(1, 0),
        lambda x: x.transpose((0, 1)),
        lambda x: x.transpose(None),
    ],
    "var": [lambda x: x.var(), lambda x: x.var(0), lambda x: x.var(axis=1, ddof=1)],
    # Attributes.
    "T": [lambda x: x.T, lambda x: x[0].T],
    "real": [lambda x: x.real],
    "imag": [lambda x: x.imag],
    "shape": [lambda x: np.array(x.shape)],
    "ndim": [lambda x: np.array(x.ndim)],
    "size": [lambda x: np.array(x.size)],
    "dtype": [lambda x: np.ones(2, x.dtype), lambda x: np.ones(2, (x > 0).dtype)],
}

# What changes the array in place, needs its values, or is about its memory.
MISSING = [
    "base",
    "byteswap",
    "ctypes",
    "data",
    "dump",
    "dumps",
    "fill",
    "flags",
    "flat",
    "getfield",
    "item",
    "itemsize",
    "nbytes",
    "nonzero",
    "partition",
    "argpartition",
    "put",
    "resize",
    "setfield",
    "setflags",
    "sort",
    "strides",
    "tobytes",
    "tofile",
    "tolist",
    "view",
]


@pytest.mark.parametrize("name", CALLS)
def test_methods_are_numpys(name):
    for call in CALLS[name]:
        assert_like_numpy(call, MATRIX)


def test_every_method_of_ndarrays_is_listed():
    of_arrays = {name for name in dir(np.ndarray) if not name.startswith("_")}
    newer = {"device", "mT", "to_device"}  # than some of the supported versions of NumPy
    older = {"itemset", "newbyteorder", "ptp", "tostring"}
    assert of_arrays - newer - older == CALLS.keys() | set(MISSING)
    assert METHODS.keys() <= CALLS.keys() | set(MISSING)


@pytest.mark.parametrize("name", MISSING)
def test_what_traced_arrays_do_not_have(name):
    with Trace() as trace:
        x = trace.input("x", (3,))
        assert not hasattr(x, name)
        with pytest.raises(UnsupportedOpError, match=rf"ndarray\.{name} cannot be .* Instead: "):
            getattr(x, name)


def test_matrices_have_a_transpose_of_the_last_axes():
    if hasattr(np.ndarray, "mT"):
        assert_like_numpy(lambda x: x.mT + x[None].mT, MATRIX)
    with pytest.raises(ValueError, match=r"mT.* 2 axes"):
        evaluate(lambda x: x[0].mT, MATRIX)


def test_round():
    """NumPy's scalars can be rounded by Python, to integers without a number of digits."""
    assert evaluate(lambda x: round(x, 1), np.float64(2.345)) == 2.3
    assert evaluate(lambda x: round(x), np.float64(2.5)).dtype == np.int64
    row = evaluate(lambda x, y: y[round(x)], np.float64(1.4), MATRIX)
    np.testing.assert_array_equal(row, MATRIX[1])


def test_keyword_arguments_are_not_dropped():
    for call, keyword in [
        (lambda x: x.std(where=x > 0), "where"),
        (lambda x: x.mean(dtype="f4"), "dtype"),
        (lambda x: x.astype(float, order="F"), "order"),
        (lambda x: x.flatten("F"), "order"),
    ]:
        with pytest.raises(TraceError, match=f"argument {keyword}= cannot be traced"):
            evaluate(call, MATRIX)
