"""CZI, the format of Zeiss microscopes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import czifile
import numpy as np

from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.framed import FramedFile
from normeq.images.source import Pixels, checked_dtype


class CziSource(FramedFile):
    """A CZI file at full resolution; the tiles of a mosaic are put together."""

    format = "CZI"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            self._czi: Any = czifile.CziFile(str(path), multifile=False)
            try:
                # The last axis is that of the samples, and called 0.
                found, shape = str(self._czi.axes)[:-1], tuple(int(n) for n in self._czi.shape)
                if not found.endswith("YX"):
                    raise InputError(f"{path}: stores its axes as {found}; export it as TIFF.")
                if shape[-1] == 1:
                    shape = shape[:-1]
                else:
                    # S, which here counts scenes, is the letter of samples.
                    found = f"{found.replace('S', 'Q')}S"
                dtype = checked_dtype(np.dtype(self._czi.dtype).base, str(path))
                super().__init__(path, shape, dtype, same_axes(axes, found))
            except BaseException:
                self._czi.close()
                raise

    def decode(self, frame: int) -> Pixels:
        """Return a frame, put together from its tiles."""
        if self._czi._fh.closed:
            self._czi = czifile.CziFile(str(self.path), multifile=False)
        place = tuple(int(i) for i in np.unravel_index(frame, self.leading)) if self.leading else ()
        out = np.zeros((self.height, self.width, self.samples), self.dtype)
        for entry in self._czi.filtered_subblock_directory:
            start = [int(a) - int(b) for a, b in zip(entry.start, self._czi.start, strict=True)]
            if tuple(start[: len(place)]) != place:
                continue
            tile = entry.data_segment().data(resize=True)
            pixels = tile.reshape(tile.shape[-3:])
            y, x = start[len(place) : len(place) + 2]
            out[y : y + pixels.shape[0], x : x + pixels.shape[1]] = pixels
        return out

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._czi.close()
