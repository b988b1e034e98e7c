"""Functions that pick elements by integers or constant masks; see also test_take.py."""

import numpy as np

VALUES = {
    "np.choose": lambda a, v, p: np.choose([0, 1, 1], a) + np.choose(1, [v, p]),
    "np.compress": lambda a, v, p: a.compress([True, False, True], axis=1),
    "np.extract": lambda a, v, p: np.extract([[1, 0, 0], [0, 1, 1]], a),
}
