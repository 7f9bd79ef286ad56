"""Pixels that have no value: found, filled for the denoiser, and kept as they were."""

from __future__ import annotations

import numpy as np

from normeq.denoising.units import Floats, Mask
from normeq.images.source import Pixels

#: How many pixels deep a hole is filled from its rim; deeper, it gets the plane's mean.
FILL_DEPTH = 8


def missing_pixels(pixels: Pixels, blank: float | None) -> Mask:
    """Return where pixels are NaN, infinite, or hold the value that means "no value here"."""
    missing = ~np.isfinite(pixels)
    if blank is not None:
        missing |= pixels == blank
    return missing


def fill_missing(values: Floats, missing: Mask, mean: float) -> Floats:
    """Fill holes ring by ring with the mean of the known neighbours, deep inside with `mean`.

    A filled pixel depends on pixels at most `FILL_DEPTH` away, so that tiles agree.

    Examples
    --------
    >>> row = np.array([[1.0, np.nan, 3.0]])
    >>> fill_missing(row, np.isnan(row), mean=0.0)
    array([[1., 2., 3.]])
    """
    filled = np.where(missing, 0.0, values)  # which adds nothing to a sum
    known = ~missing
    for _ in range(FILL_DEPTH):
        if known.all():
            break
        around = _box_sum(known.astype(np.float64))
        rim = ~known & (around > 0)
        filled[rim] = (_box_sum(filled)[rim]) / around[rim]
        known |= rim
    filled[~known] = mean
    return filled


def _box_sum(values: Floats) -> Floats:
    """Sum over the 3 x 3 neighbourhood of every pixel, nothing lying outside the image."""
    padded = np.pad(values, 1)
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    total: Floats = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    return total


def keep_apart(pixels: Pixels, blank: float) -> None:
    """Move results that happen to equal the mark of a missing value to the value beside it."""
    if pixels.dtype.kind == "f":
        beside = np.nextafter(pixels.dtype.type(blank), pixels.dtype.type(np.inf))
    else:
        beside = blank + 1 if blank < np.iinfo(pixels.dtype).max else blank - 1
    pixels[pixels == blank] = beside
