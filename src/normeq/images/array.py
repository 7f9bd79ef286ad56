"""An array in memory, seen as an image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.images.source import Band, ImageSource, IndexedSource, Pixels, checked_dtype


class ArraySource(IndexedSource):
    """An array with its axes in any order; every channel of it is a plane of its own."""

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


class ColorArraySource(ImageSource):
    """An array whose channels are seen together, as the samples of a colour image.

    Parameters
    ----------
    array
        Its axes in any order.
    axes
        One letter for each.
    colors
        The letter of the channels.
    """

    def __init__(self, array: NDArray[Any], axes: str, colors: str) -> None:
        last = f"YX{colors}"
        self._order = [place for place, axis in enumerate(axes) if axis not in last]
        self._order += [axes.index(axis) for axis in last]
        self._array = np.transpose(array, self._order)
        self._shape = array.shape
        dtype = checked_dtype(array.dtype, "the image")
        super().__init__(self._array.shape, dtype, "Q" * (array.ndim - 3) + "YXS")

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        return np.asarray(self._array[self._index(frame)][start:stop], dtype=self.dtype)

    def empty(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a new array of the same shape as the one given."""
        return np.empty(self._shape, dtype)

    def place(self, output: NDArray[Any], band: Band) -> None:
        """Store a band in an array of the same shape as the one given."""
        rows = slice(band.start, band.start + len(band.pixels))
        np.transpose(output, self._order)[self._index(band.frame)][rows] = band.pixels

    def _index(self, frame: int) -> tuple[int, ...]:
        return tuple(int(place) for place in np.unravel_index(frame, self.leading))
