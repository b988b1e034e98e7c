"""The derivatives of whatever can be traced agree with differences, in reverse and forward mode."""

from __future__ import annotations

import numpy as np
import pytest
from test_trace import MATRIX, POSITIVE, VALUES, VECTOR

import buropt as bo

# Off the kinks and jumps that the table's arrays stand on.
POINT = {"a": MATRIX + 0.013, "v": VECTOR + 0.007, "p": POSITIVE + 0.011}


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", sorted(VALUES.keys() - {"np.nan_to_num"}))  # of infinite numbers
def test_derivatives(name):
    def loss(x):
        result = VALUES[name](x["a"], x["v"], x["p"])
        parts = result if isinstance(result, tuple | list) else [result]
        squares = [np.sum(np.cos(np.arange(np.size(y))) * (1.0 * np.ravel(y)) ** 2) for y in parts]
        return sum(squares) + 0 * sum(np.sum(x[key]) for key in x)

    bo.check_grads(loss, POINT, order=1)
