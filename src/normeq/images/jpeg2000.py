"""JPEG 2000, decoded whole by imagecodecs; denoised copies are PNG, which loses nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import imagecodecs
import numpy as np

from normeq.errors import InputError, reading
from normeq.images.png import PngWriter
from normeq.images.source import Pixels

# Start of the code stream, and of the segment that tells its size.
_START = b"\xff\x4f\xff\x51"
_HEADER_BYTES = 2**16


class Jpeg2000Source(PngWriter):
    """A JPEG 2000 file of up to 16 bits, gray or RGB."""

    format = "JPEG 2000"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
            place = header.find(_START) + len(_START)
            if place < len(_START):
                raise ValueError("the file does not start like a JPEG 2000 file")
            right, bottom, left, top = struct.unpack_from(">IIII", header, place + 4)
            [samples] = struct.unpack_from(">H", header, place + 36)
            depths = {header[place + 38 + 3 * sample] for sample in range(min(samples, 4))}
        signed_or_deep = any(depth & 0x80 or depth > 15 for depth in depths)
        if samples not in (1, 3) or len(depths) > 1 or signed_or_deep:
            raise InputError(f"{path} is not gray or RGB of up to 16 bits; convert it first.")
        dtype = np.dtype(np.uint8 if max(depths) < 8 else np.uint16)
        super().__init__(path, (bottom - top, right - left, samples), dtype, axes)

    def decode(self) -> Pixels:
        """Decode the image."""
        return np.asarray(imagecodecs.jpeg2k_decode(self.path.read_bytes()), self.dtype)
