"""What the tests of elementary and special functions share: samples, and errors in ulps."""

import itertools

import numpy as np
from mpmath import mp, mpf

from buropt import _core

DTYPES = [np.float32, np.float64]
# Where a formula changes: ends of the range, of the subnormals, of the identity, of reductions.
LANDMARKS = [
    *(1e-310, 1e-45, 1e-40, 2.0**-1022, 2.0**-126, 2.0**-54, 2.0**-25, 2.0**-10, 0.1767766953),
    *(0.2928932188, 0.3465735903, 0.4142135624, 0.5, 0.7071067812, 1.0, 1.0397207708, 2.0**0.5),
    *(np.pi / 2, np.pi, 2 * np.pi, 9.01, 17.33, 18.0, 20.0, 22.0, 36.7, 40.0, 86.0, 87.34, 88.72),
    *(89.0, 103.97, 104.0, 707.0, 708.4, 709.78, 710.0, 745.13, 746.0, 4096.0, 2.0**20, 2.0**60),
    *(1e15, 1e38, 1e300),
]


def call(name, *arrays):
    return _core.elementwise(name, *arrays)


def finite(x, dtype):
    with np.errstate(over="ignore", under="ignore"):
        x = np.asarray(x).astype(dtype)
    return x[np.isfinite(x)]


def random_bits(rng, n, dtype):
    """Every exponent is equally likely, subnormals and both signs included."""
    unsigned = np.uint32 if dtype == np.float32 else np.uint64
    return finite(rng.integers(0, np.iinfo(unsigned).max, n, unsigned).view(dtype), dtype)


def sample(name, dtype, domain=(-np.inf, np.inf)):
    """Numbers of every size in the open interval `domain`, the same ones for one name."""
    rng = np.random.default_rng(sum(map(ord, name)))
    marks = finite(LANDMARKS, dtype)
    near = [marks, np.nextafter(marks, dtype(0)), np.nextafter(marks, dtype(np.finfo(dtype).max))]
    x = np.concatenate(
        [
            random_bits(rng, 400, dtype),
            *near,
            finite(rng.uniform(0, 1, 400), dtype),
            finite(rng.uniform(0, 40, 400), dtype),
            finite(rng.uniform(0, 750, 200), dtype),
            finite(1 + rng.choice([-1, 1], 200) * 2 ** rng.uniform(-30, 0, 200), dtype),
            finite(np.pi / 2 * rng.integers(1, 5000, 200), dtype),
        ]
    )
    x = np.concatenate([x, -x])
    low, high = domain
    return x[(x > low) & (x < high)]


def ulps(y, reference, scale=None):
    """|y - reference| in units in the last place of `scale` (the reference, if not given).

    An infinite y counts as the power of two where the numbers end, and the other way round.
    """
    info = np.finfo(y.dtype)
    scale = abs(reference) if scale is None else scale
    exponent = max(mp.mag(scale) - 1, info.minexp) if scale != 0 else info.minexp
    end = mpf(2) ** int(info.maxexp)
    value = end * np.sign(y) if np.isinf(y) else mpf(float(y))
    reference = min(max(reference, -end), end)
    unit = mpf(2) ** int(min(exponent, info.maxexp - 1) - info.nmant)
    return float(abs(value - reference) / unit)


def worst(y, references, scales=None):
    assert not np.isnan(y).any()
    scales = [None] * len(references) if scales is None else scales
    return max(itertools.starmap(ulps, zip(y, references, scales, strict=True)))
