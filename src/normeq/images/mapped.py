"""Formats that store an array as it is: mapped into memory, and replaced in a copy of the file."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from normeq._support.atomic import reserve
from normeq.errors import reading
from normeq.images.source import Band, ImageFile, IndexedSource, Pixels, checked_dtype


class MappedFile(IndexedSource, ImageFile):
    """A file that holds an uncompressed array at some place.

    Parameters
    ----------
    path, shape, axes, about
        See `ImageFile`.
    stored
        The dtype of the file, with its byte order.
    place
        Where the array begins.
    file
        Where the array is, if not in `path`, which is then a packed copy.
    order
        ``"C"`` if the last axis is the fastest, ``"F"`` if the first is.
    """

    def __init__(
        self,
        path: Path,
        shape: tuple[int, ...],
        stored: np.dtype[Any],
        place: int,
        axes: str,
        order: Literal["C", "F"] = "C",
        file: Path | None = None,
        **about: Any,
    ) -> None:
        super().__init__(path, shape, checked_dtype(stored, str(path)), axes, **about)
        self._file = path if file is None else file
        self._stored = stored
        self._place = place
        self._order: Literal["C", "F"] = order
        missing = place + self.pixels * stored.itemsize - self._file.stat().st_size
        if missing > 0:
            raise ValueError(f"the file is truncated: {missing} bytes are missing")

    def _map(self, path: Path, mode: Literal["r", "r+"]) -> np.memmap[Any, Any]:
        # Mapped anew for each band: a mapping that stays counts every page it has touched.
        return np.memmap(path, self._stored, mode, self._place, self.shape, self._order)

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame, as stored."""
        with reading(self.path, self.format):
            stored = self._map(self._file, "r")[self.index(frame, rows, columns)]
            return self.to_plane(np.array(stored, dtype=self.dtype))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Replace the pixels of this image in a copy of the file."""
        if not target.exists() or target.stat().st_size == 0:
            shutil.copyfile(self._file, target)
            reserve(target)
        for band in bands:
            rows = slice(band.start, band.start + len(band.pixels))
            image = self._map(target, "r+")
            image[self.index(band.frame, rows)] = self.from_plane(band.pixels)
        self.finish(target)

    def finish(self, target: Path) -> None:
        """Bring what a copy says of its pixels up to date."""
        return
