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
                self._check_whole()
                self._about = _calibration(self._file)
            finally:
                self._file.close()

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels."""
        return self._about

    def _check_whole(self) -> None:
        """Refuse a file that lacks frames: the library gives zeros in their place."""
        count = self.frames // self._channels
        size = self.height * self.width * self.samples * self._channels * self.dtype.itemsize
        if self._file.attributes.compressionType is not None:
            size = 0  # then a frame that is cut off does not unpack
        places = self._file._rdr._frame_offsets
        end = self.path.stat().st_size
        lost = sum(number not in places or places[number] + size > end for number in range(count))
        if lost:
            raise ValueError(f"the file is truncated: {lost} of its {count} frames are missing")

    def decode(self, frame: int) -> Pixels:
        """Return a frame."""
        if self._file.closed:
            self._file.open()
        sequence, channel = divmod(frame, self._channels)
        pixels = np.asarray(self._file.read_frame(sequence))  # channels come first, if any
        # A copy, for the file is mapped into memory, and closing it takes its pixels away.
        return np.array(pixels[channel] if self._channels > 1 else pixels)

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._file.close()


def _calibration(file: Any) -> Calibration:
    channels = getattr(file.metadata, "channels", None) or ()
    sizes: dict[str, float] = {}
    if channels:
        volume = channels[0].volume
        known = zip("XYZ", volume.axesCalibration, volume.axesCalibrated, strict=True)
        sizes = {axis: float(size) for axis, size, is_known in known if is_known and size > 0}
    return Calibration(sizes, tuple(str(channel.channel.name) for channel in channels))
