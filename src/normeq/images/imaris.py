"""Imaris (.ims): HDF5 with a dataset for each resolution, time and channel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.framed import FramedFile
from normeq.images.hdf5 import dataset_of
from normeq.images.source import Calibration, Pixels, checked_dtype

_FULL = "DataSet/ResolutionLevel 0"


class ImarisSource(FramedFile):
    """The full resolution of an Imaris file, as TCZYX."""

    format = "Imaris"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), h5py.File(path, "r", locking=False) as file:
            times = _count(file, _FULL, "TimePoint")
            channels = _count(file, f"{_FULL}/TimePoint 0", "Channel")
            first = dataset_of(path, file, _name(0, 0))
            about = file[f"{_FULL}/TimePoint 0/Channel 0"].attrs
            # The arrays are padded to whole chunks.
            sides = [int(_text(about[f"ImageSize{axis}"])) for axis in "ZYX"]
            if any(side > length for side, length in zip(sides, first.shape, strict=True)):
                raise InputError(f"{path} claims to have more pixels than it contains.")
            dtype = checked_dtype(first.dtype, str(path))
            shape = (times, channels, *sides)
            super().__init__(path, shape, dtype, same_axes(axes, "TCZYX"))
            self._about = _calibration(file, dict(zip("ZYX", sides, strict=True)), channels)
        self._opened: Any = None

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels."""
        return self._about

    def decode(self, frame: int) -> Pixels:
        """Return a frame."""
        if self._opened is None:
            self._opened = h5py.File(self.path, "r", locking=False)
        time, channel, depth = (int(i) for i in np.unravel_index(frame, self.leading))
        dataset = dataset_of(self.path, self._opened, _name(time, channel))
        pixels: Pixels = dataset[depth, : self.height, : self.width]
        return pixels

    def close(self) -> None:
        """Close the file."""
        super().close()
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _name(time: int, channel: int) -> str:
    return f"{_FULL}/TimePoint {time}/Channel {channel}/Data"


def _count(file: Any, group: str, kind: str) -> int:
    found = file.get(group)
    count = len([name for name in found or () if name.startswith(f"{kind} ")])
    if not count:
        raise ValueError(f"it has no {kind} in {group}")
    return count


def _text(letters: Any) -> str:
    """Return an attribute, which Imaris stores letter by letter."""
    return b"".join(np.atleast_1d(letters).astype("S1")).decode("latin-1")


def _calibration(file: Any, sides: dict[str, int], channels: int) -> Calibration:
    """Return pixel sizes and names of channels, as far as they are there."""
    information = file.get("DataSetInfo") or {}
    sizes, names = {}, []
    try:
        image = information["Image"].attrs
        for number, axis in enumerate("XYZ"):
            extent = float(_text(image[f"ExtMax{number}"])) - float(_text(image[f"ExtMin{number}"]))
            if extent > 0:
                sizes[axis] = extent / sides[axis]
        names = [_text(information[f"Channel {c}"].attrs["Name"]) for c in range(channels)]
    except (KeyError, ValueError):
        pass  # what is missing is not needed
    return Calibration(sizes, tuple(names))
