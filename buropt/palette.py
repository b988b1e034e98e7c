"""Colours, dashes and markers of curves, for figures and pages alike.

The colours began as those of Okabe and Ito and were moved until any two of the first six differ by
0.1 at least in Oklab, for normal and for red- or green-blind eyes, while each keeps its contrast to
paper or to a dark page. A test measures that.
"""

from __future__ import annotations

LIGHT = ("#1354CB", "#B74000", "#34A68E", "#6E0876", "#F26A0C", "#5092E8", "#805983", "#563315")
DARK = ("#6BC6FE", "#E27128", "#21E395", "#AF73B5", "#F5F04A", "#CDFFF8", "#6C91FF", "#9EA18F")

# For keys with many values, from small to large: viridis without the end that the background hides.
RAMP_LIGHT = ("#440154", "#443A83", "#31688E", "#21908C", "#35A873", "#7FBF3B", "#BDB400")
RAMP_DARK = ("#7D6BD8", "#5B8FD0", "#38AFB8", "#3CC68E", "#79D667", "#BEE043", "#FDE725")

# On and off in units of the line's width; the first is solid.
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (5, 2),
    (1.5, 1.5),
    (6, 1.5, 1.5, 1.5),
    (9, 2.5),
    (4, 1.5, 1.5, 1.5, 1.5, 1.5),
    (2.5, 1),
    (9, 1.5, 1.5, 1.5),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
