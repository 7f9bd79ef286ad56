"""CZI, the format of Zeiss microscopes."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import czifile
import imagecodecs
import numpy as np

from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.framed import FramedFile
from normeq.images.physical_units import calibrated
from normeq.images.source import Calibration, Pixels, checked_dtype

# Compressions that czifile does not undo.
_LZW, _ZSTD, _ZSTD_WITH_HEADER = 2, 5, 6
_DISTANCES = "Metadata/Scaling/Items/Distance"
_CHANNELS = "Metadata/Information/Image/Dimensions/Channels/Channel"


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
                    raise InputError(f"{path} stores its axes as {found}; export it as TIFF.")
                if shape[-1] == 1:
                    shape = shape[:-1]
                else:
                    # S, which here counts scenes, is the letter of samples.
                    found = f"{found.replace('S', 'Q')}S"
                dtype = checked_dtype(np.dtype(self._czi.dtype).base, str(path))
                super().__init__(path, shape, dtype, same_axes(axes, found))
                self._about = _calibration(self._czi)
                self._tiles: dict[int, list[tuple[int, int, Any]]] = {}
            except BaseException:
                self._czi.close()
                raise

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels."""
        return self._about

    def decode(self, frame: int) -> Pixels:
        """Return a frame, put together from its tiles."""
        if self._czi._fh.closed:
            self._czi, self._tiles = czifile.CziFile(str(self.path), multifile=False), {}
        self._tiles = self._tiles or self._tiles_of_frames()
        out = np.zeros((self.height, self.width, self.samples), self.dtype)
        for y, x, entry in self._tiles.get(frame, ()):
            pixels = _tile(entry)
            out[y : y + pixels.shape[0], x : x + pixels.shape[1]] = pixels
        return out

    def _tiles_of_frames(self) -> dict[int, list[tuple[int, int, Any]]]:
        """Return row, column and entry of the tiles of each frame."""
        tiles: dict[int, list[tuple[int, int, Any]]] = {}
        for entry in self._czi.filtered_subblock_directory:
            start = [int(a) - int(b) for a, b in zip(entry.start, self._czi.start, strict=True)]
            *place, y, x = start[: len(self.leading) + 2]
            frame = int(np.ravel_multi_index(place, self.leading)) if place else 0
            tiles.setdefault(frame, []).append((y, x, entry))
        return tiles

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._czi.close()


def _tile(entry: Any) -> Pixels:
    """Decode a tile, of shape ``(height, width, samples)``."""
    segment = entry.data_segment()
    if entry.compression not in (_LZW, _ZSTD, _ZSTD_WITH_HEADER):
        tile: Pixels = segment.data(resize=True)
        return tile.reshape(tile.shape[-3:])
    dtype, shape = np.dtype(entry.dtype).base, tuple(int(n) for n in entry.stored_shape[-3:])
    data = _decompressed(segment.data(raw=True), entry.compression, dtype, math.prod(shape))
    pixels = np.frombuffer(data, dtype).reshape(shape)
    return pixels[..., [2, 1, 0, 3][: shape[-1]]] if shape[-1] > 1 else pixels  # stored as BGR


def _decompressed(data: bytes, compression: int, dtype: np.dtype[Any], count: int) -> bytes:
    size = count * dtype.itemsize
    if compression == _LZW:
        return bytes(imagecodecs.lzw_decode(data, out=size))
    # The header is 1 byte long, or 3 if it says whether low and high bytes are stored apart.
    header = data[: data[0]] if compression == _ZSTD_WITH_HEADER else b""
    plain = bytes(imagecodecs.zstd_decode(data[len(header) :], out=size))
    if len(plain) != size:
        raise ValueError(f"a tile has {len(plain)} bytes instead of {size}")
    if header[1:2] == b"\1" and header[2] & 1 and dtype.itemsize > 1:
        return np.frombuffer(plain, np.uint8).reshape(dtype.itemsize, -1).T.tobytes()
    return plain


def _calibration(czi: Any) -> Calibration:
    """Return pixel sizes and names of channels, as far as the metadata has them."""
    sizes: dict[str, float] = {}
    channels: list[str] = []
    # Wrong metadata does not cost the pixels.
    with suppress(ElementTree.ParseError, LookupError, TypeError, ValueError, OSError):
        root = ElementTree.fromstring(czi.metadata() or "<none/>")
        for distance in root.iterfind(_DISTANCES):
            axis = distance.get("Id", "")
            if axis in ("X", "Y", "Z"):
                sizes |= calibrated(axis, distance.findtext("Value"), "m")
        channels = [name for each in root.iterfind(_CHANNELS) if (name := each.get("Name"))]
    return Calibration(sizes, channels)
