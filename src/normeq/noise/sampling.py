"""Which pixels an estimate of the noise looks at: a function of the image's shape alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.errors import InputError

#: Reads some rows and columns of one plane.
Reader = Callable[[int, slice, slice], ArrayLike]

#: Pixels that an estimate looks at, at most.
BUDGET = 2**20
#: Pixels of one region of a plane that is too large to be read whole.
REGION = 2**16


@dataclass(frozen=True)
class Region:
    """A rectangle of one plane."""

    frame: int
    rows: slice
    columns: slice


def sampled_regions(frames: int, height: int, width: int) -> list[Region]:
    """Choose the regions that stand for a stack of planes.

    A stack of at most `BUDGET` pixels is taken whole. Of a larger one, whole planes are taken
    where they are small, else rectangles of `REGION` pixels, spread evenly over planes, rows and
    columns.

    Examples
    --------
    >>> from normeq.noise.sampling import sampled_regions
    >>> len(sampled_regions(1, 600, 800)), len(sampled_regions(50, 512, 512))
    (1, 4)
    """
    tall, wide = _region_sides(height, width)
    rows, columns = _spread(height, tall), _spread(width, wide)
    total = frames * len(rows) * len(columns)
    places = (
        product(range(frames), range(len(rows)), range(len(columns)))
        if total * tall * wide <= BUDGET
        else _scattered((frames, len(rows), len(columns)), max(1, BUDGET // (tall * wide)))
    )
    return [Region(frame, rows[row], columns[column]) for frame, row, column in places]


def reader_of(image: ArrayLike) -> tuple[Reader, tuple[int, ...]]:
    """Return what reads parts of an image, and its shape.

    An array that is read when it is indexed stays where it is.
    """
    array: Any = image if hasattr(image, "shape") else np.asarray(image)
    shape = tuple(int(length) for length in array.shape)

    def read(frame: int, rows: slice, columns: slice) -> ArrayLike:
        place = np.unravel_index(frame, shape[:-2]) if shape[:-2] else ()
        region: ArrayLike = array[(*(int(index) for index in place), rows, columns)]
        return region

    return read, shape


def read_regions(read: Reader, shape: tuple[int, ...]) -> list[NDArray[np.float64]]:
    """Read the sampled regions in double precision, with NaN for pixels that have no value."""
    if len(shape) < 2 or min(shape) < 1 or min(shape[-2:]) < 3:
        raise InputError(
            f"noise is estimated on planes of at least 3 x 3 pixels, not on shape {shape}."
        )
    regions = sampled_regions(int(np.prod(shape[:-2], dtype=np.int64)), *shape[-2:])
    planes = [_values(read(part.frame, part.rows, part.columns)) for part in regions]
    if not any(np.isfinite(plane).any() for plane in planes):
        raise InputError("no pixel of the image has a value: they are NaN, infinite or masked.")
    return planes


def _values(pixels: ArrayLike) -> NDArray[np.float64]:
    if np.ma.isMaskedArray(pixels):
        pixels = np.ma.filled(np.ma.asarray(pixels).astype(np.float64), np.nan)
    values = np.array(pixels, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def _region_sides(height: int, width: int) -> tuple[int, int]:
    if height * width <= BUDGET:
        return height, width
    side = int(REGION**0.5)
    tall = min(height, max(side, REGION // width))
    return tall, min(width, REGION // tall)


def _spread(extent: int, length: int) -> list[slice]:
    """Place as many spans of a length as fit side by side, evenly from end to end."""
    count = max(1, extent // length)
    free = extent - count * length
    starts = [index * length + (free * index) // max(1, count - 1) for index in range(count)]
    return [slice(start, start + length) for start in starts]


def _scattered(extents: tuple[int, int, int], count: int) -> list[tuple[int, int, int]]:
    """Choose places in a box that fill it evenly: the sequence of the generalised golden ratio."""
    golden = 1.2207440846057596  # the positive root of x⁴ = x + 1
    chosen: set[tuple[int, int, int]] = set()
    turn = 0
    while len(chosen) < count:
        frame, row, column = (
            int(extent * ((0.5 + turn * golden**-power) % 1.0))
            for power, extent in enumerate(extents, start=1)
        )
        chosen.add((frame, row, column))
        turn += 1
    return sorted(chosen)
