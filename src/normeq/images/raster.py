"""PNG and JPEG: decoded whole by imageio, written as PNG of the same depth."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from normeq.errors import InputError, reading
from normeq.images.source import Band, ImageFile, Pixels, same_axes

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Colour type of the PNG header for a number of samples, and back.
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
_SAMPLES = {color: samples for samples, color in _COLOR_TYPES.items()}
_PALETTE = 3
# Chunks that stay true of a denoised image: colour spaces, sizes and units, texts, dates.
_KEPT_CHUNKS = (
    b"cHRM gAMA iCCP sRGB cICP mDCV cLLI pHYs oFFs sCAL pCAL tEXt zTXt iTXt eXIf tIME".split()
)


class PngSource(ImageFile):
    """A PNG file of 8 or 16 bits, gray or colour, with or without opacity."""

    format = "PNG"
    streams = False

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), path.open("rb") as file:
            if file.read(8) != _SIGNATURE:
                raise ValueError("the file does not begin like a PNG")
            _, kind, header = _next_chunk(file)
            if kind != b"IHDR":
                raise ValueError("the header is missing")
            width, height, depth, color = struct.unpack(">IIBB", header[:10])
            if color == _PALETTE:
                raise InputError(f"{path}: is a palette image; convert it to gray or RGB first.")
            self._chunks = _kept_chunks(file, path)
        if depth < 8:
            raise InputError(f"{path}: has {depth} bits a pixel; convert it to 8 or 16 bits first.")
        samples = _SAMPLES[color]
        shape = (height, width) if samples == 1 else (height, width, samples)
        dtype = np.dtype(np.uint16 if depth == 16 else np.uint8)
        found = "YX" if samples == 1 else "YXS"
        super().__init__(path, shape, dtype, same_axes(axes, found), alpha=samples in (2, 4))
        self._decoded: Pixels | None = None

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of the image, which is decoded whole on the first call."""
        if self._decoded is None:
            with reading(self.path, self.format):
                decoded = _decode(self.path, self.dtype, self.samples)
                self._decoded = decoded.reshape(self.height, self.width, self.samples)
        return self._decoded[start:stop]

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a PNG with the same depth, samples, pixel size, profile and texts."""
        size = (self.height, self.width, self.samples)
        encode_png(target, size, self.dtype, (band.pixels for band in bands), self._chunks)

    def close(self) -> None:
        """Let go of the pixels."""
        self._decoded = None


class JpegSource(PngSource):
    """A JPEG file, gray or RGB; its denoised copy is a PNG, which loses nothing."""

    format = "JPEG"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        from PIL import Image

        with reading(path, self.format), _any_size(), Image.open(path) as image:
            if image.format not in ("JPEG", "MPO"):
                raise ValueError(f"it is a {image.format} file")
            mode, (width, height) = image.mode, image.size
            self._chunks = _chunks_of_jpeg(image.info)
        if mode not in ("L", "RGB"):
            raise InputError(f"{path}: is a {mode} image; convert it to gray or RGB first.")
        shape = (height, width) if mode == "L" else (height, width, 3)
        found = "YX" if mode == "L" else "YXS"
        ImageFile.__init__(self, path, shape, np.dtype(np.uint8), same_axes(axes, found))
        self._decoded = None


def encode_png(
    target: Path,
    size: tuple[int, int, int],
    dtype: np.dtype[Any],
    rows: Iterable[Pixels],
    chunks: bytes = b"",
) -> None:
    """Write a PNG from arrays of consecutive rows, each of shape ``(rows, width, samples)``."""
    height, width, samples = size
    header = struct.pack(
        ">IIBBBBB", width, height, 8 * dtype.itemsize, _COLOR_TYPES[samples], 0, 0, 0
    )
    packer = zlib.compressobj(6)
    above = np.zeros((1, width * samples * dtype.itemsize), np.uint8)
    with target.open("wb") as file:
        file.write(_SIGNATURE + _chunk(b"IHDR", header) + chunks)
        for pixels in rows:
            stored = np.ascontiguousarray(pixels.astype(dtype.newbyteorder(">")))
            data = stored.view(np.uint8).reshape(len(pixels), -1)
            # Filter 2 stores the difference to the row above, modulo 256.
            filtered = np.full((len(data), data.shape[1] + 1), 2, np.uint8)
            filtered[:, 1:] = data - np.concatenate((above, data[:-1]))
            above = data[-1:]
            file.write(_chunk(b"IDAT", packer.compress(filtered.tobytes())))
        file.write(_chunk(b"IDAT", packer.flush()) + _chunk(b"IEND", b""))


def _decode(path: Path, dtype: np.dtype[Any], samples: int) -> Pixels:
    if dtype == np.uint16 and samples > 1:
        # Pillow, behind imageio, would silently keep 8 of the 16 bits.
        try:
            import imagecodecs
        except ImportError as error:
            raise InputError(
                f"{path}: colour PNG of 16 bits needs the imagecodecs package: "
                "pip install 'normeq[codecs]'."
            ) from error
        return np.asarray(imagecodecs.png_decode(path.read_bytes()), dtype)
    import imageio.v3 as iio

    with _any_size():
        return np.asarray(iio.imread(path, plugin="pillow", index=0), dtype)


@contextmanager
def _any_size() -> Iterator[None]:
    """Lift the limit of Pillow on large images: `open_image` has one of its own."""
    from PIL import Image

    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _next_chunk(file: BinaryIO) -> tuple[int, bytes, bytes]:
    start = file.read(8)
    if len(start) < 8:
        raise ValueError("the file is truncated")
    length, kind = struct.unpack(">I4s", start)
    if kind == b"IDAT":  # pixels: skipped, not read
        file.seek(length + 4, 1)
        return length, kind, b""
    data = file.read(length)
    if file.read(4) != struct.pack(">I", zlib.crc32(kind + data)):
        raise ValueError(f"its {kind.decode('latin-1')} chunk is damaged")
    return length, kind, data


def _kept_chunks(file: BinaryIO, path: Path) -> bytes:
    """Return the chunks of a PNG to be copied, ready to be written before the pixels."""
    kept = b""
    kind = b""
    while kind != b"IEND":
        _, kind, data = _next_chunk(file)
        if kind == b"acTL":
            raise InputError(f"{path}: is an animation; save its frames one by one, or as TIFF.")
        if kind == b"tRNS":
            raise InputError(
                f"{path}: calls one colour transparent, which no pixel may have after denoising; "
                "save it with a channel for opacity, or without any."
            )
        if kind in _KEPT_CHUNKS:
            kept += _chunk(kind, data)
    return kept


def _chunks_of_jpeg(info: dict[Any, Any]) -> bytes:
    """Say in PNG's chunks what a JPEG says of its pixel size, colour profile and camera."""
    kept = b""
    if info.get("icc_profile"):
        kept += _chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(info["icc_profile"]))
    if "dpi" in info:
        per_meter = [round(float(dots) / 0.0254) for dots in info["dpi"]]
        kept += _chunk(b"pHYs", struct.pack(">IIB", *per_meter, 1))
    if info.get("exif"):
        kept += _chunk(b"eXIf", info["exif"].removeprefix(b"Exif\0\0"))
    return kept
