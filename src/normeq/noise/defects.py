"""Pixels that say nothing about the noise, recognised from the image itself.

Hot and dead pixels, values cut off at black or white, constant areas, and the step of rounded
values. Every test compares differences of pixels with each other, so that none depends on units.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A pixel is hot or dead if it lies outside the range of its eight neighbours by more than this
# many times that range; noise does so once in millions of pixels. The number is no simple
# fraction, so that rounded images have no ties.
_FAR = 2.0437
# The last value of an image is where values were cut off if it is this many times as frequent as
# any of the next ones.
_PILE = 1.5
_NEXT = 4
# Values count as rounded if each occurs this often on average, and there are as many steps.
_REPEATS = 4
_STEPS = 16


def without_outliers(plane: Floats) -> Floats:
    """Return a copy in which hot and dead pixels have the median of their neighbours."""
    height, width = plane.shape
    if min(height, width) < 3:
        return plane.copy()
    around = np.stack(
        [
            plane[1 + down : height - 1 + down, 1 + right : width - 1 + right]
            for down, right in product((-1, 0, 1), repeat=2)
            if (down, right) != (0, 0)
        ]
    )
    low, high = around.min(0), around.max(0)
    inner = plane[1:-1, 1:-1]
    far = _FAR * (high - low)
    # Where all eight neighbours are equal, nothing is known of how far noise may go.
    outlier = ((inner > high + far) | (inner < low - far)) & (high > low)
    cleaned = plane.copy()
    cleaned[1:-1, 1:-1][outlier] = np.median(around[:, outlier], axis=0)
    return cleaned


def constant(plane: Floats) -> Mask:
    """Say for each pixel whether it lies inside a constant 3 x 3 neighbourhood."""
    across = plane[:, 1:] == plane[:, :-1]
    row = across[:, 1:] & across[:, :-1]
    down = (plane[1:] == plane[:-1])[:, 1:-1]
    inside = np.zeros(plane.shape, bool)
    inside[1:-1, 1:-1] = row[:-2] & row[1:-1] & row[2:] & down[1:] & down[:-1]
    return inside


def cut_off(values: Floats) -> tuple[float, float]:
    """Return the values at which an image is cut off at black and at white.

    They are infinite where it is not: where its last value is no more frequent than the next.
    """
    distinct, counts = np.unique(values, return_counts=True)
    ends = []
    for order, none in ((1, -np.inf), (-1, np.inf)):
        first, later = counts[::order][0], counts[::order][1 : 1 + _NEXT]
        piled = first > 2 and len(later) and first > _PILE * later.max()
        ends.append(float(distinct[::order][0]) if piled else none)
    return ends[0], ends[1]


def smallest_step(values: Floats) -> float:
    """Return the step to which values were rounded, 0 if they were not."""
    distinct = np.unique(values)
    if not _STEPS <= len(distinct) <= values.size / _REPEATS:
        return 0.0
    steps = np.diff(distinct)
    step = float(np.median(steps[steps <= 1.5 * steps.min()]))
    whole = steps / step
    return step if np.abs(whole - np.round(whole)).max() < 0.01 else 0.0
