"""An image in other units, read by several threads."""

from __future__ import annotations

import threading

import numpy as np

from normeq.images.source import ImageSource, Pixels


class SharedReader:
    """Reads parts of an image for several threads, one after the other.

    Where a format has to read whole rows, those that were read last are kept: the next tile is
    beside the last one.
    """

    def __init__(self, image: ImageSource) -> None:
        self.image = image
        self._lock = threading.Lock()
        self._reads_rows = type(image).read_region is ImageSource.read_region
        self._last: tuple[int, slice, Pixels] | None = None

    def read(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame, ``(rows, columns, samples)``."""
        with self._lock:
            if not self._reads_rows:
                return self.image.read_region(frame, rows, columns)
            if self._last is None or self._last[:2] != (frame, rows):
                pixels = self.image.read(frame, rows.start, rows.stop)
                self._last = (frame, rows, pixels)
            return self._last[2][:, columns]


class RescaledSource(ImageSource):
    """The image ``scale · y + shift``, where y is another one in physical units.

    Examples
    --------
    >>> from normeq.images.array import ArraySource
    >>> image = ArraySource(np.eye(2, dtype=np.uint8), "YX")
    >>> RescaledSource(SharedReader(image), 10.0, 5.0).read(0, 0, 1)[..., 0]
    array([[15.,  5.]])
    """

    def __init__(self, reader: SharedReader, scale: float = 1.0, shift: float = 0.0) -> None:
        image = reader.image
        shape = (*image.leading, image.height, image.width)
        axes = image.leading_axes + "YX"
        if image.samples > 1:
            shape, axes = (*shape, image.samples), f"{axes}S"
        super().__init__(shape, np.dtype(np.float64), axes, alpha=image.alpha)
        self._reader = reader
        self._scale, self._shift = scale, shift

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        return self.read_region(frame, slice(start, stop), slice(0, self.width))

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame."""
        stored = self._reader.read(frame, rows, columns)
        return self._scale * self._reader.image.physical(stored) + self._shift
