"""Products that can be traced, from `np.tensordot` to those of NumPy 2."""

import numpy as np

# See tracing.rooms.
VALUES = {
    "np.inner": lambda a, v, p: (
        np.inner(v, p) * np.inner(a[0, 0], a) + np.inner(a, p[0]) + np.inner(a, a)[:, :1]
    ),
    "np.tensordot": lambda a, v, p: np.tensordot(a, np.ones((3, 2, 4)), 1) * np.tensordot(a, a),
}
if hasattr(np.linalg, "tensordot"):
    VALUES["np.linalg.tensordot"] = lambda a, v, p: np.linalg.tensordot(a, a, axes=([1], [1]))
if hasattr(np, "vecdot"):
    VALUES["np.vecdot"] = lambda a, v, p: np.vecdot(a, v) + np.vecdot(v, p)
if hasattr(np, "matvec"):
    VALUES["np.matvec"] = lambda a, v, p: np.matvec(a, v) + np.matvec(np.stack([a, a]), p)
    VALUES["np.vecmat"] = lambda a, v, p: np.vecmat(v, a.T) + np.vecmat(np.stack([v, p]), a.T)
