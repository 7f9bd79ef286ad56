"""NumPy files, memory-mapped one band at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from normeq._support.atomic import reserve
from normeq.errors import reading
from normeq.images.axes import default_axes
from normeq.images.source import Band, ImageFile, IndexedSource, Pixels, checked_dtype


class NpySource(IndexedSource, ImageFile):
    """An ``.npy`` file: an array without names for its axes, whose planes are the last two."""

    format = "NPY"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            stored = self._map(path)
            self._stored_dtype = stored.dtype
            self._fortran = stored.flags.f_contiguous and not stored.flags.c_contiguous
            dtype = checked_dtype(stored.dtype, str(path))
            super().__init__(path, stored.shape, dtype, axes or default_axes(stored.shape))

    @staticmethod
    def _map(path: Path) -> np.memmap[tuple[int, ...], np.dtype[np.generic]]:
        # Mapped anew for each band: a mapping that stays counts every page it has touched.
        return np.lib.format.open_memmap(path, mode="r")

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        with reading(self.path, self.format):
            stored = self._map(self.path)[self.index(frame, slice(start, stop))]
            return self.to_plane(np.array(stored, dtype=self.dtype))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write an array of the same shape, dtype, byte order and memory order."""
        np.lib.format.open_memmap(
            target,
            mode="w+",
            dtype=self._stored_dtype,
            shape=self.shape,
            fortran_order=self._fortran,
        )
        reserve(target)
        for band in bands:
            output = np.lib.format.open_memmap(target, mode="r+")
            rows = slice(band.start, band.start + len(band.pixels))
            output[self.index(band.frame, rows)] = self.from_plane(band.pixels)


def create(path: Path, image: Pixels) -> None:
    """Write an array as a new NPY file."""
    with path.open("wb") as file:  # a name without .npy would get it from numpy
        np.save(file, image)
