"""OpenEXR: colours or luminance in floating point, decoded whole; other channels are kept."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR

from normeq.errors import InputError, printable, reading
from normeq.images.axes import same_axes
from normeq.images.source import Band, DecodedFile, Pixels

log = logging.getLogger(__name__)

# Channels of intensities; others hold opacity, depth, numbers of objects and the like.
_INTENSITIES = ("R", "G", "B", "Y")


class ExrSource(DecodedFile):
    """An OpenEXR file of one part, of axes CYX; attributes and compression are kept."""

    format = "OpenEXR"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            file = OpenEXR.File(str(path), header_only=True)
            if len(file.parts) != 1:
                raise InputError(f"{path} has {len(file.parts)} parts; save one on its own.")
            (left, top), (right, bottom) = file.header()["dataWindow"]
            width, height = int(right) - int(left) + 1, int(bottom) - int(top) + 1
            channels = {channel.name: channel for channel in file.header()["channels"]}
            self._names = [name for name in _INTENSITIES if name in channels]
            if not self._names:
                raise InputError(f"{path} has none of the channels {', '.join(_INTENSITIES)}.")
            if any((channels[n].xSampling, channels[n].ySampling) != (1, 1) for n in self._names):
                raise InputError(f"{path} has channels of different sizes; convert it first.")
            shape = (len(self._names), height, width)
            # Whether they are of 16 or 32 bits is known when they are decoded.
            super().__init__(path, shape, np.dtype(np.float32), same_axes(axes, "CYX"))
        left_out = [printable(name) for name in channels if name not in self._names]
        if left_out:
            log.warning("%s: channels that are not denoised: %s", path, ", ".join(left_out))

    def decode(self) -> Pixels:
        """Decode all channels of intensities."""
        channels = self._all_channels()[1]
        return np.stack([channels[name].astype(np.float32) for name in self._names])

    def _all_channels(self) -> tuple[dict[str, Any], dict[str, Pixels]]:
        file = OpenEXR.File(str(self.path), separate_channels=True)
        channels = {name: channel.pixels for name, channel in file.channels().items()}
        if any(channels[name].dtype.kind != "f" for name in self._names):
            raise InputError(f"{self.path} stores integers; convert it to floating point.")
        return file.header(), channels

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a file with the same attributes, whose channels have the precision they had."""
        pixels = np.empty(self.shape, self.dtype)
        for band in bands:
            rows = slice(band.start, band.start + len(band.pixels))
            pixels[band.frame, rows] = band.pixels[..., 0]
        with reading(self.path, self.format):
            header, channels = self._all_channels()
        for name, plane in zip(self._names, pixels, strict=True):
            channels[name] = plane.astype(channels[name].dtype)
        if self.provenance is not None:
            header["normeq"] = self.provenance.as_json()
        file = OpenEXR.File(header, channels)
        file.write(str(target))
