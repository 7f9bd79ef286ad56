"""JPEG: decoded whole by Pillow; denoised copies are PNG, which loses nothing."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL.JpegImagePlugin import JpegImageFile

from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.png import chunk, write_png
from normeq.images.source import Band, DecodedFile, Pixels


class JpegSource(DecodedFile):
    """A JPEG file, gray or RGB; its denoised copy is a PNG, which loses nothing."""

    format = "JPEG"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), JpegImageFile(path) as image:
            mode, (width, height) = image.mode, image.size
            self._chunks = _chunks_of_jpeg(image.info)
        if mode not in ("L", "RGB"):
            raise InputError(f"{path}: is a {mode} image; convert it to gray or RGB first.")
        shape = (height, width) if mode == "L" else (height, width, 3)
        found = "YX" if mode == "L" else "YXS"
        super().__init__(path, shape, np.dtype(np.uint8), same_axes(axes, found))

    def decode(self) -> Pixels:
        """Decode the image."""
        with JpegImageFile(self.path) as image:
            return np.asarray(image, self.dtype)

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a PNG with the same samples, pixel size, profile and camera."""
        write_png(self, target, bands, self._chunks)


def _chunks_of_jpeg(info: dict[Any, Any]) -> bytes:
    """Say in PNG's chunks what a JPEG says of its pixel size, colour profile and camera."""
    kept = b""
    if info.get("icc_profile"):
        kept += chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(info["icc_profile"]))
    if "dpi" in info:
        per_meter = [round(float(dots) / 0.0254) for dots in info["dpi"]]
        kept += chunk(b"pHYs", struct.pack(">IIB", *per_meter, 1))
    if info.get("exif"):
        kept += chunk(b"eXIf", info["exif"].removeprefix(b"Exif\0\0"))
    return kept
