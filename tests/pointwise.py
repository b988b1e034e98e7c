"""What the tests of conventions share: value and slopes of a function at one point."""

import numpy as np

import buropt as bo

MANY = 8192  # elements: more than the scalar executor takes; sums of so many are exact here
INF, NAN = np.inf, np.nan


def check(f, point, value, *slopes):
    """f has this value and these slopes at the point: as single numbers, and as large arrays.

    A slope of None may be anything, and so may those that are left out.
    """
    point = [float(number) for number in point]
    for k, slope in enumerate(slopes or [None]):
        got = bo.value_and_grad(f, argnums=k)(*point)
        np.testing.assert_array_equal(got, (value, got[1] if slope is None else slope))
        for dtype in (np.float64, np.float32):
            arrays = [np.full(MANY, number, dtype) for number in point]
            total, many = bo.value_and_grad(lambda *x: np.sum(f(*x)), argnums=k)(*arrays)
            np.testing.assert_array_equal(total, MANY * value)
            if slope is not None:
                np.testing.assert_array_equal(many, np.full(MANY, slope))
            assert many.dtype == dtype
