"""ND2, the format of Nikon microscopes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nd2
import numpy as np

from normeq.errors import reading
from normeq.images.axes import same_axes
from normeq.images.framed import FramedFile
from normeq.images.source import Calibration, Pixels, checked_dtype


class Nd2Source(FramedFile):
    """An ND2 file; the channels of a frame, which are interleaved, are frames of their own."""

    format = "ND2"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            self._file: Any = nd2.ND2File(path)
            try:
                sizes = self._file.sizes
                found = "".join(axis.upper() for axis in sizes)
                dtype = checked_dtype(np.dtype(self._file.dtype), str(path))
                super().__init__(path, tuple(sizes.values()), dtype, same_axes(axes, found))
                self._channels = int(sizes.get("C", 1))
                self._about = _calibration(self._file)
            finally:
                self._file.close()

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels."""
        return self._about

    def decode(self, frame: int) -> Pixels:
        """Return a frame."""
        if self._file.closed:
            self._file.open()
        sequence, channel = divmod(frame, self._channels)
        pixels = np.asarray(self._file.read_frame(sequence))  # channels come first, if any
        return pixels[channel] if self._channels > 1 else pixels

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._file.close()


def _calibration(file: Any) -> Calibration:
    voxel = file.voxel_size()
    sizes = {axis.upper(): float(size) for axis, size in voxel._asdict().items() if size}
    channels = getattr(file.metadata, "channels", None) or ()
    return Calibration(sizes, tuple(str(channel.channel.name) for channel in channels))
