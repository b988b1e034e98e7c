"""Reductions that can be traced: NumPy's values, kinds, shapes and refusals."""

import numpy as np

# See tracing.rooms.
VALUES = {
    "np.amax": lambda a, v, p: np.amax(a, axis=0) + np.amax(v),
    "np.amin": lambda a, v, p: np.amin(a, axis=0) + np.amin(v),
    "np.argmax": lambda a, v, p: np.argmax(a, axis=1) + np.argmax(v) + np.argmax(a > 0),
    "np.argmin": lambda a, v, p: np.argmin(a, axis=0, keepdims=True) + v.argmin(),
    "np.max": lambda a, v, p: np.max(a, axis=(0, 1), keepdims=True) + np.max(a > v) + a.max(0),
    "np.min": lambda a, v, p: np.min(a) + np.minimum.reduce(a, axis=-1, keepdims=True),
    "np.ptp": lambda a, v, p: np.ptp(a) + np.ptp(a, axis=1, keepdims=True),
}
