"""Arithmetic on one plane: its statistics in one pass, missing pixels, and the way back to a dtype.

All of it commutes with a change of units ``λ·y + μ``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: How many pixels deep a hole is filled from its rim; deeper, it gets the plane's mean.
FILL_DEPTH = 8


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of the pixels that have a value, and how many have none."""

    count: int
    mean: float
    spread: float
    missing: int


def statistics(parts: Iterable[tuple[Floats, Mask]]) -> Statistics:
    """Compute the statistics of a plane that comes in parts, each with its mask of missing pixels.

    Parts are merged by the update of Chan, Golub and LeVeque, on values relative to the first
    one: a large offset costs no accuracy, and a constant plane has a spread of exactly 0.

    Examples
    --------
    >>> halves = np.array([[1e9, 1e9 + 2], [1e9 + 4, np.nan]])
    >>> statistics((half, np.isnan(half)) for half in halves)
    Statistics(count=3, mean=1000000002.0, spread=1.632..., missing=1)
    """
    count, missing = 0, 0
    mean = squares = 0.0
    origin: float | None = None
    for values, mask in parts:
        valid = values[~mask] if mask.any() else values.ravel()
        missing += values.size - valid.size
        if valid.size == 0:
            continue
        origin = float(valid[0]) if origin is None else origin
        relative = valid - origin
        part_mean = float(relative.mean())
        total = count + valid.size
        delta = part_mean - mean
        with np.errstate(over="ignore"):  # an infinite spread says that all is too large
            squares += float(np.square(relative - part_mean).sum())
        squares += delta * delta * count * valid.size / total
        mean += delta * valid.size / total
        count = total
    if origin is None:
        return Statistics(0, 0.0, 0.0, missing)
    return Statistics(count, origin + mean, float(np.sqrt(squares / count)), missing)


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


def to_dtype(values: Floats, dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
    """Round (for integers) and clip into the range of a dtype; return how many were clipped.

    Examples
    --------
    >>> to_dtype(np.array([-3.0, 1.6, 300.0]), np.dtype("uint8"))
    (array([  0,   2, 255], dtype=uint8), 2)
    """
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        low, high = float(limits.min), float(limits.max)
    else:
        bounds = np.iinfo(dtype)
        low, high = float(bounds.min), float(bounds.max)
        if high > bounds.max:  # the largest 64-bit integers have no double of their own
            high = float(np.nextafter(high, 0))
        values = np.rint(values)
    outside = int(np.count_nonzero((values < low) | (values > high)))
    return np.clip(values, low, high).astype(dtype), outside
