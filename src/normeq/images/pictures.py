"""Pictures that Pillow decodes whole (JPEG, WebP, BMP); copies are PNG, which loses nothing."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL.BmpImagePlugin import BmpImageFile
from PIL.ImageFile import ImageFile as PillowFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.WebPImagePlugin import WebPImageFile

from normeq.errors import InputError, reading
from normeq.images.png import PngWriter, chunk
from normeq.images.source import Pixels

_SAMPLES = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}
# What PNG can say of the pixels of a meter.
_MOST_PER_METER = 2**31 - 1


class PictureFile(PngWriter):
    """A picture, gray or RGB, with or without opacity."""

    #: Not Image.open, whose limit on pixels is global: `open_image` has one of its own.
    plugin: ClassVar[type[PillowFile]]

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), self.plugin(path) as image:
            mode, (width, height) = image.mode, image.size
            if getattr(image, "is_animated", False) and self.format != "JPEG":
                raise InputError(f"{path} is an animation; save its frames one by one.")
            chunks = _chunks(image.info)
        if mode not in _SAMPLES:
            raise InputError(f"{path} is a {mode} image; convert it to gray or RGB first.")
        size = (height, width, _SAMPLES[mode])
        super().__init__(path, size, np.dtype(np.uint8), axes, chunks)

    def decode(self) -> Pixels:
        """Decode the image."""
        with self.plugin(self.path) as image:
            return np.asarray(image, self.dtype)


class JpegSource(PictureFile):
    """A JPEG file."""

    format, plugin = "JPEG", JpegImageFile


class WebPSource(PictureFile):
    """A WebP file."""

    format, plugin = "WebP", WebPImageFile


class BmpSource(PictureFile):
    """A BMP file."""

    format, plugin = "BMP", BmpImageFile


def _chunks(info: dict[Any, Any]) -> bytes:
    """Say in PNG's chunks what a picture says of its pixel size, colour profile and camera."""
    kept = b""
    if info.get("icc_profile"):
        kept += chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(info["icc_profile"]))
    per_meter = [_per_meter(dots) for dots in info.get("dpi") or ()]
    if len(per_meter) == 2 and all(per_meter):
        kept += chunk(b"pHYs", struct.pack(">IIB", *per_meter, 1))
    if info.get("exif"):
        kept += chunk(b"eXIf", info["exif"].removeprefix(b"Exif\0\0"))
    return kept


def _per_meter(dots: Any) -> int:
    """Return dots per inch as dots per meter, or 0 if they make no sense."""
    value = float(dots) / 0.0254
    return round(value) if 0 < value <= _MOST_PER_METER else 0
