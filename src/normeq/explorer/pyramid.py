"""The tiles in which the page asks for an image: whole, and reduced by two again and again."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Side of a tile, at every level.
TILE = 384


@dataclass(frozen=True)
class TilePlace:
    """Where a tile is: at level n, a pixel is the mean of ``2ⁿ x 2ⁿ`` pixels of the image."""

    frame: int
    level: int
    row: int
    column: int

    def region(self, height: int, width: int) -> tuple[slice, slice]:
        """Return the rows and columns of the image that the tile covers.

        >>> TilePlace(0, 1, 0, 1).region(1000, 1000)
        (slice(0, 768, None), slice(768, 1000, None))
        """
        side = TILE << self.level
        rows, columns = (
            slice(place * side, min((place + 1) * side, length))
            for place, length in ((self.row, height), (self.column, width))
        )
        return rows, columns

    def children(self, height: int, width: int) -> list[list[TilePlace]]:
        """Return the tiles of the level below, row by row, as far as there are any."""
        rows, columns = grid(height, width, self.level - 1)
        return [
            [
                replace(self, level=self.level - 1, row=row, column=column)
                for column in range(2 * self.column, min(2 * self.column + 2, columns))
            ]
            for row in range(2 * self.row, min(2 * self.row + 2, rows))
        ]


def grid(height: int, width: int, level: int) -> tuple[int, int]:
    """Return how many rows and columns of tiles a level has."""
    side = TILE << level
    return -(-height // side), -(-width // side)


def top_level(height: int, width: int) -> int:
    """Return the level at which one tile holds the whole image.

    >>> top_level(4000, 4000)
    4
    """
    level = 0
    while grid(height, width, level) != (1, 1):
        level += 1
    return level


def tile_pixels(
    place: TilePlace, size: tuple[int, int], whole: Callable[[TilePlace], Floats]
) -> Floats:
    """Return the pixels of a tile, averaged from those of the level below.

    Parameters
    ----------
    place
        Which tile.
    size
        Height and width of the image.
    whole
        Returns tiles of the level below, ``(rows, columns, channels)``.
    """
    rows = [
        np.concatenate([whole(child) for child in row], axis=1) for row in place.children(*size)
    ]
    return halved(np.concatenate(rows))


def halved(pixels: Floats) -> Floats:
    """Return means over 2x2 pixels, or over those of them that are there and have a value.

    >>> halved(np.array([[1.0, 3.0, 7.0], [5.0, np.nan, 9.0]])[..., None])[..., 0]
    array([[3., 8.]])
    """
    odd = [(0, length % 2) for length in pixels.shape[:2]]
    padded = np.pad(pixels, [*odd, (0, 0)], mode="edge")
    blocks = padded.reshape(padded.shape[0] // 2, 2, padded.shape[1] // 2, 2, -1)
    mean = np.mean if np.isfinite(padded).all() else np.nanmean
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no pixel of the four has a value
        means: Floats = mean(blocks, axis=(1, 3))
    return means


class RecentArrays:
    """Arrays that were computed lately, by whatever identifies them, up to a number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Floats] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> Floats | None:
        """Return an array that is still there."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Hashable, array: Floats) -> Floats:
        """Keep an array, forget the oldest ones beyond the limit, and return it."""
        with self._lock:
            before = self._kept.pop(key, None)
            self._bytes += array.nbytes - (0 if before is None else before.nbytes)
            self._kept[key] = array
            while self._bytes > self._most and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return array
