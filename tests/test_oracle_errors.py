"""What users get wrong with an oracle, and the one sentence they get."""

import numpy as np
import pytest
import scipy.sparse as sp

import buropt as bo
from buropt.problems import logistic

A = np.arange(12.0).reshape(4, 3)
y = np.ones(4)


def loss(x, a, b):
    return (a @ x - b) ** 2


@pytest.fixture
def f():
    return bo.compile(loss, np.zeros(3), (A, y))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.zeros(4),), ValueError, r"x must have shape \(3,\), got \(4,\)"),
        ((["a", "b", "c"],), TypeError, "x must be an array of real numbers"),
        ((np.zeros(3, complex),), TypeError, "x must be an array of real numbers, got dtype comp"),
        ((np.zeros(3), [0, 4]), IndexError, "idx contains 4, but sample numbers go from 0 to 3"),
        ((np.zeros(3), [-1]), IndexError, "idx contains -1"),
        ((np.zeros(3), []), (TypeError, ValueError), "idx must be"),
        ((np.zeros(3), [0.5]), TypeError, "idx must be an array of integers, got dtype float64"),
        ((np.zeros(3), y > 0), TypeError, "pass np.flatnonzero"),
        ((np.zeros(3), slice(0, 2)), TypeError, "pass np.arange"),
        ((np.zeros(3), [[0]]), ValueError, "idx must be a non-empty list"),
        ((np.zeros(3), [0], np.ones(2)), ValueError, r"weights must have one entry per sample"),
        ((np.zeros(3), None, None, np.zeros(2)), ValueError, r"out must be a C-contiguous float64"),
        ((np.zeros(3), None, None, np.zeros(3, "f4")), ValueError, "got dtype float32"),
        ((np.zeros(3), None, None, np.zeros(6)[::2]), ValueError, "C-contiguous"),
        ((np.zeros(3), None, None, [0.0] * 3), TypeError, "must be a writeable NumPy array"),
    ],
)
def test_bad_calls(f, arguments, error, text):
    with pytest.raises(error, match=text):
        f.grad(*arguments)


def test_out_must_not_be_x(f):
    x = np.zeros(3)
    with pytest.raises(ValueError, match="out must not share memory with x"):
        f.grad(x, out=x)
    with pytest.raises(ValueError, match="g must not share memory with x"):
        f.bind(x, x)


def test_out_of_worker_gradient_differences_must_be_apart_from_the_points():
    f = bo.compile(loss, np.zeros(3), (A, y), workers=2)
    out, other = np.zeros((2, 3)), np.ones(3)
    parts = [out[0], out[1], out.ravel()[2:5], out[1, ::-1]]
    for part in parts:
        with pytest.raises(
            ValueError, match="out must not share memory with x; pass another array"
        ):
            f.worker_grad_differences(part, other, out=out)
        with pytest.raises(
            ValueError, match="out must not share memory with y; pass another array"
        ):
            f.worker_grad_differences(other, part, out=out)
    assert not out.any()


def test_read_only_out(f):
    out = np.zeros(3)
    out.setflags(write=False)
    with pytest.raises(TypeError, match="writeable"):
        f.grad(np.zeros(3), out=out)


def test_bind_needs_the_very_array(f):
    with pytest.raises(TypeError, match="bind needs x as a C-contiguous float64 array"):
        f.bind([0.0, 0.0, 0.0], np.zeros(3))


@pytest.mark.parametrize(
    ("data", "options", "error", "text"),
    [
        ((A, np.ones(3)), {}, ValueError, r"data\[1\] has 3 samples and data\[0\] has 4"),
        ((A, 1.0), {}, ValueError, r"data\[1\] is a single number"),
        ((), {}, ValueError, "data is empty"),
        ((A[:0], y[:0]), {}, ValueError, "data has no samples"),
        ((A, np.array(list("abcd"))), {}, TypeError, r"data\[1\] has dtype <U1; pass real"),
        ((A * 1j, y), {}, TypeError, r"data\[0\] has dtype complex128"),
        ((sp.csr_array(A * 1j), y), {}, TypeError, r"data\[0\] has dtype complex128; pass real"),
        ((sp.coo_array(A * 1j), y), {}, TypeError, r"data\[0\] has dtype complex128"),
        ((A, y), {"workers": 5}, ValueError, "workers=5 does not fit 4 samples"),
        ((A, y), {"workers": 0}, ValueError, "workers=0 does not fit"),
        ((A, y), {"workers": [[0, 1], [1, 2, 3]]}, ValueError, "the 4 samples exactly once"),
        ((A, y), {"workers": [[0, 1, 2, 3], []]}, ValueError, r"workers\[1\] must be a non-empty"),
        ((A, y), {"workers": "two"}, TypeError, "workers must be a number or a list"),
        ((A, y), {"threads": 0}, ValueError, "threads must be a positive whole number"),
        ((A, y), {"weights": np.ones(3)}, ValueError, r"weights must have one entry per sample"),
        ((A, y), {"weights": y * 1j}, TypeError, "weights has dtype complex128; pass real numbers"),
        ((A, y), {"dtype": "int32"}, TypeError, "dtype must be float32 or float64"),
        ((A.T, y[:3]), {}, ValueError, "inner sizes differ"),
    ],
)
def test_bad_compilations(data, options, error, text):
    with pytest.raises(error, match=text):
        bo.compile(loss, np.zeros(3), data, **options)


def test_sample_numbers_of_a_weighted_oracle(f):
    weighted = bo.compile(loss, np.zeros(3), (A, y), weights=np.arange(4.0))
    for idx in ([0, 4], [-1], 4, [], [[0]], [0.5], [True, False, True, True]):
        with pytest.raises((IndexError, TypeError, ValueError)) as plain:
            f.grad(np.zeros(3), idx)
        with pytest.raises(plain.type) as caught:
            weighted.grad(np.zeros(3), idx)
        assert str(caught.value) == str(plain.value)
    for idx in (3, np.array([3], np.uint64)):
        np.testing.assert_array_equal(weighted.grad(np.zeros(3), idx), 3 * f.grad(np.zeros(3), idx))


def broken(form, part, value):
    """The matrix A with a wrong number where others would be trusted."""
    matrix = sp.csr_array(A).asformat(form)
    getattr(matrix, part)[-1] = value
    return matrix


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("part", "value"), [("indices", 7), ("indices", -1), ("indptr", 2), ("indptr", 99)]
)
def test_sparse_matrices_with_wrong_indices(form, part, value):
    with pytest.raises(ValueError, match=r"data\[0\] is not a valid sparse matrix: ") as caught:
        bo.compile(loss, np.zeros(3), (broken(form, part, value), y))
    assert "\n" not in str(caught.value)


def test_calls_that_need_data():
    f = bo.compile(lambda x: np.sum(x**2), np.zeros(3))
    with pytest.raises(ValueError, match="compiled without data"):
        f.grad(np.zeros(3), [0])
    with pytest.raises(ValueError, match="worker gradients need data"):
        f.worker_grads(np.zeros(3))
    with pytest.raises(ValueError, match="compiled without data"):
        f.grad(np.zeros(3), weights=[1.0])
    with pytest.raises(ValueError, match="workers and weights need data"):
        bo.compile(lambda x: np.sum(x**2), np.zeros(3), workers=2)


def test_a_sample_of_another_worker():
    f = bo.compile(loss, np.zeros(3), (A, y), workers=2)
    with pytest.raises(IndexError, match=r"idx\[0\] contains sample 3, which worker 0 does not"):
        f.worker_grad_differences(np.zeros(3), np.ones(3), [[3], [2]])
    with pytest.raises(IndexError, match=r"idx\[1\] contains sample 0, which worker 1 does not"):
        f.worker_grad_differences(np.zeros(3), np.ones(3), [[1, 1], [2, 0]])
    for number in (-1, 4):
        with pytest.raises(IndexError, match=f"idx contains {number}, but sample numbers go from"):
            f.worker_grad_differences(np.zeros(3), np.ones(3), [[0], [number]])
    with pytest.raises(TypeError, match="idx must be an array of integers, got dtype float64"):
        f.worker_grad_differences(np.zeros(3), np.ones(3), [[0.0], [2.0]])
    with pytest.raises(ValueError, match=r"idx must have shape \(n_workers, b\) = \(2, b\)"):
        f.worker_grad_differences(np.zeros(3), np.ones(3), [[0]])


def test_sparse_rows_only_support_products():
    with pytest.raises(TypeError, match="sparse row"):
        bo.compile(lambda x, a: np.sum(a * x), np.zeros(3), (sp.csr_array(A),))


def test_unused_parameters_are_said():
    with pytest.warns(bo.DisconnectedInputWarning, match=r"x0\['unused'\]"):
        f = bo.compile(
            lambda p, a: p["used"] * a, {"used": 1.0, "unused": np.ones(2)}, (np.ones(3),)
        )
    assert np.array_equal(f.grad(f.x0), [1.0, 0.0, 0.0])


def test_masks_of_masked_arrays_are_not_lost():
    masked = np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[0, 1, 0, 0])
    with pytest.raises(TypeError, match="weights is a masked array"):
        bo.compile(loss, np.zeros(3), (A, y), weights=masked)
    f = bo.compile(loss, np.zeros(3), (A, y))
    with pytest.raises(TypeError, match="x is a masked array"):
        f.grad(masked[:3])
    with pytest.raises(TypeError, match="weights is a masked array"):
        f.grad(np.zeros(3), weights=masked)
    with pytest.raises(TypeError, match="logistic: y is a masked array"):
        logistic(A, np.ma.array(np.sign(masked - 2.5), mask=[0, 1, 0, 0]))


def test_calls_that_do_not_fit_the_loss():
    with pytest.raises(TypeError, match=r"loss \(.*cannot be called with x0 and a row of data in"):
        bo.compile(loss, np.zeros(3), A)
    with pytest.raises(TypeError, match=r"missing a required argument: 'a'. Instead: loss\(x, \*r"):
        bo.compile(loss, np.zeros(3))
    with pytest.raises(TypeError, match=r"cannot be called with x0 alone: .*and regularizer\(x\)"):
        bo.compile(loss, np.zeros(3), (A, y), regularizer=loss)
    for start in ([0.0] * 3, (0.0, 0.0, 0.0)):
        with pytest.raises(bo.TraceError, match=r"of 3 numbers.*np.array\(x0\) makes a vector"):
            bo.compile(loss, start, (A, y))
