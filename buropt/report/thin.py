"""Which points of a history a page needs: those without which a curve would look different."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buropt.axes import COSTS, MEASURES

PIXELS = 800.0  # of an axis
TOLERANCE = 0.5  # pixels
JITTER = 6.0  # times as much for seconds, whose irregular steps say nothing
SAME = 0.05  # pixels


def thin(columns: Mapping[str, NDArray[Any]], most: int) -> NDArray[np.intp]:
    """The points to keep, in their order, the first and the last among them.

    A curve through them runs within half a pixel (against seconds: three) of the curve through all,
    for every pair of columns and on linear and logarithmic axes, unless more than `most` points
    would be needed: then the largest differences are shown.

    Parameters
    ----------
    columns : mapping of ndarray, each of shape (points,)
        Of a history.
    most : int
        At least 2.

    Returns
    -------
    ndarray of indices
    """
    # Where each column is linear between kept points, so is any curve through two of them.
    places = _pixels(columns)
    n = len(places)
    if n <= 2:
        return np.arange(n)
    kept = {0, n - 1}
    queue = [_worst(places, 0, n - 1)]
    while queue and len(kept) < most:
        error, first, at, last = heapq.heappop(queue)
        if -error <= TOLERANCE:
            break
        kept.add(at)
        for start, end in ((first, at), (at, last)):
            if end - start > 1:
                heapq.heappush(queue, _worst(places, start, end))
    return np.array(sorted(kept))


def _worst(places: NDArray[np.float64], first: int, last: int) -> tuple[float, int, int, int]:
    """(-error, first, at, last): the point between two that is furthest from their connection."""
    share = (np.arange(first + 1, last) - first)[:, None] / (last - first)
    line = places[first] + share * (places[last] - places[first])
    errors = np.abs(places[first + 1 : last] - line).max(axis=1)
    at = int(np.argmax(errors))
    return -float(errors[at]), first, first + 1 + at, last


def _pixels(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """The columns where they would lie on an axis, linear and logarithmic: (points, axes)."""
    found: list[NDArray[np.float64]] = []
    for name in (*COSTS, *MEASURES):
        values = columns[name].astype(np.float64)
        positive = values[np.isfinite(values) & (values > 0)]
        length = PIXELS / JITTER if name == "seconds" else PIXELS
        kinds = [values] if name in COSTS or name == "f" else []
        if len(positive):
            kinds.append(np.log(np.where(values > 0, values, positive.min())))
        for kind in kinds:
            place = _on_axis(kind) * length
            # Columns that grow in proportion, as counts often do, need to be looked at once.
            if all(np.abs(place - other).max() > SAME for other in found):
                found.append(place)
    return np.stack(found, axis=1)


def _on_axis(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 0 to 1; what cannot be drawn lies at 0, so that a change to it is kept as any other."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros_like(values)
    with np.errstate(over="ignore"):  # from -1e308 to 1e308
        low, width = values[finite].min(), np.ptp(values[finite])
        share = (values - low) / width if 0 < width < np.inf else np.zeros_like(values)
    return np.where(finite, share, 0.0)
