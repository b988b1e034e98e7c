"""`tag`: names for values inside of a loss, so that an oracle can be asked for them."""

from __future__ import annotations

from typing import TypeVar

from buropt.trace.errors import TraceError, location
from buropt.trace.recording import recording_of
from buropt.trace.sparse import SparseRow
from buropt.trace.tracer import Tracer

T = TypeVar("T")


def tag(value: T, name: str) -> T:
    """Name a value inside of a loss, for `Oracle.intermediates`; returns the value itself.

    ::

        def loss(params, a, b):
            hidden = bo.tag(np.tanh(params["W"] @ a), "hidden")
            return np.logaddexp(0, -b * (params["v"] @ hidden))

    It costs nothing where nobody asks, and does nothing to plain arrays and numbers.

    Parameters
    ----------
    value : array or number
    name : str
        Different for each value that one call of the loss names.

    Raises
    ------
    TraceError
        (a TypeError) If the name is taken, or the value is a container or a sparse row of data.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a tag must be a string that is not empty, got {name!r}")
    if isinstance(value, dict | list | tuple):
        raise TraceError(
            f"tag {name!r}: a {type(value).__name__} cannot be tagged. Instead: tag the arrays in "
            "it one by one."
        )
    if isinstance(value, SparseRow):
        raise TraceError(
            f"tag {name!r}: {value.name} is a sparse row of the data, which an oracle does not "
            f"compute. {location(value.recording.name)} Instead: tag what is made of it."
        )
    if isinstance(value, Tracer):
        trace = recording_of(value)
        if name in trace.tags:
            raise TraceError(
                f"tag {name!r} is given to two values. {location(trace.name)} Instead: "
                f'give each its own name, e.g. f"{name}[{{k}}]" in a loop.'
            )
        trace.tags[name] = trace.fresh(value)
    return value
