"""An array in memory, seen as an image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.images.source import Band, IndexedSource, Pixels, checked_dtype


class ArraySource(IndexedSource):
    """An array with its axes in any order."""

    def __init__(self, array: NDArray[Any], axes: str) -> None:
        super().__init__(array.shape, checked_dtype(array.dtype, "the image"), axes)
        self._array = array

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame."""
        selected = self._array[self.index(frame, rows, columns)]
        return self.to_plane(np.asarray(selected, dtype=self.dtype))

    def empty(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a new array of the same shape."""
        return np.empty(self._array.shape, dtype)

    def place(self, output: NDArray[Any], band: Band) -> None:
        """Store a band in an array of the same shape."""
        rows = slice(band.start, band.start + len(band.pixels))
        output[self.index(band.frame, rows)] = self.from_plane(band.pixels)
