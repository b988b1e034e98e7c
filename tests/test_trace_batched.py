"""What can be traced gives the same for a batch of samples as for one sample after the other."""

from __future__ import annotations

import numpy as np
import pytest
from test_trace import MATRIX, POSITIVE, VALUES, VECTOR

import buropt as bo

N = 5
# Every sample differs, but orders and signs are those of the table's arrays.
SCALES = 1 + 0.01 * np.arange(N)
DATA = tuple(np.multiply.outer(SCALES, array) for array in (MATRIX, VECTOR, POSITIVE))


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", VALUES)
def test_batches_are_samples(name):
    def loss(x, a, v, p):
        result = VALUES[name](x[0] * a, x[1] * v, x[2] * p)
        parts = result if isinstance(result, tuple | list) else [result]
        weighted = [
            np.sum(0.01 * np.cos(np.arange(np.size(part))) * np.ravel(part)) for part in parts
        ]
        return sum(weighted) + np.sum(x**2)

    x = np.ones(3)
    oracle = bo.compile(loss, x, data=DATA)
    value, gradient = oracle.value_and_grad(x)
    samples = list(zip(*DATA, strict=True))
    np.testing.assert_allclose(value, np.mean([loss(x, *one) for one in samples]), rtol=1e-11)
    gradients = [bo.grad(loss)(x, *one) for one in samples]
    np.testing.assert_allclose(gradient, np.mean(gradients, axis=0), rtol=1e-10, atol=1e-12)
