"""PNG: decoded whole by Pillow, written row by row with the same depth."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL.PngImagePlugin import PngImageFile

from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.physical_units import calibrated
from normeq.images.source import Band, Calibration, DecodedFile, ImageFile, Pixels

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Colour type of the PNG header for a number of samples, and back.
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
_SAMPLES = {color: samples for samples, color in _COLOR_TYPES.items()}
_PALETTE = 3
# Chunks that stay true of a denoised image: colour spaces, sizes and units, texts, dates.
_KEPT_CHUNKS = (
    b"cHRM gAMA iCCP sRGB cICP mDCV cLLI pHYs oFFs sCAL pCAL tEXt zTXt iTXt eXIf tIME".split()
)


class PngWriter(DecodedFile):
    """A picture, gray or colour, with or without opacity, whose copies are PNG.

    Parameters
    ----------
    path
        The file.
    size
        Height, width and samples of a pixel.
    dtype
        Unsigned integers of 8 or 16 bits.
    axes
        As the caller names them, if at all.
    chunks
        What a PNG says of the picture beside its pixels.
    """

    def __init__(
        self,
        path: Path,
        size: tuple[int, int, int],
        dtype: np.dtype[Any],
        axes: str | None,
        chunks: bytes = b"",
    ) -> None:
        samples = size[2]
        gray = samples == 1
        named = same_axes(axes, "YX" if gray else "YXS")
        super().__init__(path, size[:2] if gray else size, dtype, named, alpha=samples in (2, 4))
        self._chunks = chunks

    @property
    def calibration(self) -> Calibration:
        """Pixel size."""
        return calibration_of(self._chunks)

    @property
    def unportable(self) -> Sequence[str]:
        """Colour profile, texts and camera."""
        return unportable_chunks(self._chunks)

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a PNG with the same depth, samples, pixel size, profile and texts."""
        write_png(self, target, bands, self._chunks)


class PngSource(PngWriter):
    """A PNG file of 8 or 16 bits, gray or colour, with or without opacity."""

    format = "PNG"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), path.open("rb") as file:
            if file.read(8) != _SIGNATURE:
                raise ValueError("the file does not start like a PNG")
            _, kind, header = _next_chunk(file)
            if kind != b"IHDR":
                raise ValueError("the header is missing")
            width, height, depth, color = struct.unpack(">IIBB", header[:10])
            if color == _PALETTE:
                raise InputError(f"{path} is a palette image; convert it to gray or RGB first.")
            chunks = _kept_chunks(file, path)
        if depth < 8:
            raise InputError(
                f"{path} has {depth} bits per pixel; convert it to 8 or 16 bits first."
            )
        dtype = np.dtype(np.uint16 if depth == 16 else np.uint8)
        super().__init__(path, (height, width, _SAMPLES[color]), dtype, axes, chunks)

    def decode(self) -> Pixels:
        """Decode the image."""
        if self.dtype == np.uint16 and self.samples > 1:
            # Pillow would silently keep 8 of the 16 bits.
            try:
                import imagecodecs
            except ImportError as error:
                raise InputError(
                    f"{self.path}: colour PNG of 16 bits needs the imagecodecs package: "
                    "pip install 'normeq[codecs]'."
                ) from error
            return np.asarray(imagecodecs.png_decode(self.path.read_bytes()), self.dtype)
        # Not Image.open, whose limit on pixels is global: `open_image` has one of its own.
        with PngImageFile(self.path) as image:
            return np.asarray(image, self.dtype)


def write_png(source: ImageFile, target: Path, bands: Iterable[Band], chunks: bytes = b"") -> None:
    """Write the bands of an image of uint8 or uint16 as PNG, with `chunks` before the pixels."""
    size = (source.height, source.width, source.samples)
    chunks += provenance_chunks(source)
    encode_png(target, size, source.dtype, (band.pixels for band in bands), chunks)


def provenance_chunks(source: ImageFile) -> bytes:
    """Say how the result of an image was made."""
    if source.provenance is None:
        return b""
    texts = (f"Software\0{source.provenance.as_line()}", f"normeq\0{source.provenance.as_json()}")
    return b"".join(chunk(b"tEXt", text.encode("ascii")) for text in texts)


def create(path: Path, image: Pixels) -> None:
    """Write an array of shape ``(height, width)``, or with 1 to 4 samples last, as a new PNG."""
    if image.dtype not in (np.uint8, np.uint16):
        raise InputError(f"{path}: PNG takes uint8 or uint16, not {image.dtype}.")
    pixels = image[..., np.newaxis] if image.ndim == 2 else image
    height, width, samples = pixels.shape
    encode_png(path, (height, width, samples), image.dtype, [pixels])


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
        file.write(_SIGNATURE + chunk(b"IHDR", header) + chunks)
        for pixels in rows:
            stored = np.ascontiguousarray(pixels.astype(dtype.newbyteorder(">")))
            data = stored.view(np.uint8).reshape(len(pixels), -1)
            # Filter 2 stores the difference to the row above, modulo 256.
            filtered = np.full((len(data), data.shape[1] + 1), 2, np.uint8)
            filtered[:, 1:] = data - np.concatenate((above, data[:-1]))
            above = data[-1:]
            file.write(chunk(b"IDAT", packer.compress(filtered.tobytes())))
        file.write(chunk(b"IDAT", packer.flush()) + chunk(b"IEND", b""))


def calibration_of(chunks: bytes) -> Calibration:
    """Return the pixel size that chunks of a PNG state, where they have a unit."""
    sizes: dict[str, float] = {}
    for kind, data in split_chunks(chunks):
        if kind == b"pHYs" and len(data) == 9:
            across, down, unit = struct.unpack(">IIB", data)
            for axis, count in (("X", across), ("Y", down)):
                sizes |= calibrated(axis, 1 / count if count else 0, "m" if unit == 1 else None)
    return Calibration(sizes)


def unportable_chunks(chunks: bytes) -> list[str]:
    """Return the names of the chunks that say more than the pixel size."""
    # When the file was last changed, tIME, is not true of a result.
    kinds = {kind.decode("ascii") for kind, _ in split_chunks(chunks)} - {"pHYs", "tIME"}
    return [f"its chunks {', '.join(sorted(kinds))}"] if kinds else []


def split_chunks(chunks: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and data of whole chunks."""
    place = 0
    while place < len(chunks):
        length, kind = struct.unpack_from(">I4s", chunks, place)
        yield kind, chunks[place + 8 : place + 8 + length]
        place += length + 12


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG as it is stored."""
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
            raise InputError(f"{path} is an animation; save its frames one by one, or as TIFF.")
        if kind == b"tRNS":
            raise InputError(
                f"{path} marks one colour as transparent, which denoised pixels could take by "
                "chance; save it with a channel for opacity, or without any."
            )
        if kind in _KEPT_CHUNKS:
            kept += chunk(kind, data)
    return kept
