"""Conventions of networks: see test_conventions.py."""

import numpy as np
import pytest
from pointwise import INF, NAN, check
from tracing import evaluate

import buropt as bo
from buropt import nn

MESS = np.array([[1.0, 2.0, 4.0], [INF, NAN, 0.0]])


def test_relu_at_zero():
    check(nn.relu, [0], 0, 0)
    check(nn.relu, [-0.0], 0, 0)
    check(nn.relu, [2], 2, 1)
    check(nn.relu, [NAN], NAN, NAN)


def test_activations_at_infinity():
    for f in (nn.silu, nn.gelu, lambda x: nn.gelu(x, approximate="tanh")):
        check(f, [-INF], 0, 0)
        check(f, [INF], INF, 1)
        check(f, [0], 0, 0.5)


def test_softmax_of_infinities():
    p = evaluate(nn.softmax, np.array([[-INF, 0, 0], [INF, 0, 1], [-INF, -INF, -INF]]))
    np.testing.assert_array_equal(p, [[0, 0.5, 0.5], [NAN] * 3, [NAN] * 3])


def test_small_losses_keep_their_digits():
    x = np.array([0.0, -30.0, -40.0])
    small = np.exp(-30.0) + np.exp(-40.0)
    for loss in (
        nn.logsumexp,
        lambda x: nn.cross_entropy(x, 0),
        lambda x: -nn.log_softmax(x)[0],
    ):
        assert bo.value_and_grad(loss)(x)[0] == pytest.approx(small, rel=1e-13)
    gradient = bo.grad(lambda x: nn.cross_entropy(x, 0))(x)
    np.testing.assert_allclose(gradient, [-small, np.exp(-30.0), np.exp(-40.0)], rtol=1e-12)


def test_labels_out_of_range():
    def loss(x, label):
        return nn.cross_entropy(x, label)

    for bad in (-1, 3):
        with pytest.raises(IndexError, match=f"label {bad} is not in"):
            bo.grad(loss)(np.zeros(3), bad)
        with pytest.raises(IndexError, match=f"holds {bad} in sample 1, .* from 0 to 2"):
            bo.compile(loss, np.zeros(3), data=np.array([0, bad, 1]))
        computed = bo.value_and_grad(lambda x, label: loss(x, label + 0))
        value, gradient = computed(np.zeros(3), np.array(bad))
        assert np.isnan(value)
        assert np.isnan(gradient).all()


def test_rows_that_are_not_taken_contribute_zero():
    labels, taken = np.array([1, 2]), np.array([[True], [False]])
    rows = [
        nn.softmax,
        nn.log_softmax,
        nn.layer_norm,
        nn.rms_norm,
        lambda x: nn.cross_entropy(x, labels, reduction="none")[:, None],
        lambda x: nn.logsumexp(x, axis=1, keepdims=True),
    ]
    positions = [lambda x: nn.attention(x, x, x)]
    harmless = np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 0.0]])
    direction = np.array([[0.3, -0.2, 0.5], [0.1, 0.2, 0.3]])
    for f in rows + positions:

        def loss(x, f=f):
            return np.sum(np.where(taken, f(x) ** 2, 0.0))

        gradient = bo.grad(loss)(MESS)
        np.testing.assert_array_equal(gradient[0], bo.grad(loss)(harmless)[0])
        assert not gradient[1].any()
        if f in rows:
            second = bo.hvp(loss)(MESS, direction)
            np.testing.assert_array_equal(second[0], bo.hvp(loss)(harmless, direction)[0])
            assert not second[1].any()


def test_max_pool_ties_share():
    gradient = bo.grad(lambda x: nn.max_pool2d(x, 2)[0, 0, 0])(np.array([[[1.0, 3.0], [3.0, 0.0]]]))
    np.testing.assert_array_equal(gradient, [[[0, 0.5], [0.5, 0]]])


def test_dropout_is_refused():
    for x in (np.ones(3), None):
        with pytest.raises(bo.UnsupportedOpError, match=r"Instead: draw masks .* as data"):
            nn.dropout(x, p=0.5)
