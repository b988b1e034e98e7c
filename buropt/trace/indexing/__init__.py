"""Indexing of traced arrays, as NumPy does it.

`keys.py` reads an index; `basic.py` traces integers and slices, `advanced.py` index arrays, which
become one `take`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buropt.trace.dispatch import array_rule
from buropt.trace.indexing.advanced import take_by_arrays
from buropt.trace.indexing.basic import take_slices
from buropt.trace.indexing.keys import is_basic, read_key

if TYPE_CHECKING:
    from buropt.trace.recording import Trace
    from buropt.trace.tracer import Tracer


@array_rule("__getitem__")
def index(trace: Trace, array: Tracer, key: Any) -> Tracer:
    """Trace `array[key]`.

    Integers, slices, `...` and `np.newaxis` give a view, as in NumPy, or a scalar if every axis
    has an integer. Index arrays, traced ones too, and constant masks give a copy.

    Raises
    ------
    IndexError
        If there are too many indices, a constant one is out of bounds, or they do not fit together.
    UnsupportedOpError
        For traced masks, whose result would have no fixed shape.
    """
    key = key if isinstance(key, tuple) else (key,)
    parts = read_key(trace, array, key)
    if not is_basic(parts):
        return take_by_arrays(trace, array, parts)
    result = take_slices(trace, array, parts)
    if all(isinstance(part, int) for part in parts) and Ellipsis not in parts:
        return trace.fresh(result)  # NumPy gives a scalar here, which shares no memory
    return trace.view(result, array)
