"""Pictures of a run's history, and figures of a sweep for publication: `python -m buropt.plot`.

With `buropt.drawing`, the only place that imports matplotlib.
"""

from buropt.plot.history import Picture as Picture
from buropt.plot.history import picture_of as picture_of
from buropt.plot.history import plot_history as plot_history
from buropt.plot.history import set_backend as set_backend

__all__ = ["Picture", "picture_of", "plot_history", "set_backend"]
