"""TIFF in its dialects (BigTIFF, OME-TIFF, ImageJ): read by segments, rewritten page by page.

The copy carries the tags of every page as they are, byte for byte; only those that describe the
layout of the pixels are written anew.
"""

from __future__ import annotations

import logging
import math
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from normeq.errors import InputError
from normeq.images.source import Band, ImageFile, Pixels, checked_dtype, reading

log = logging.getLogger(__name__)

# How tifffile found the axes: from these, a copy of the tags tells them again.
_PORTABLE_KINDS = {"ome", "imagej", "shaped", "uniform", "generic"}
# Lossless compressions that a copy keeps; every other becomes ADOBE_DEFLATE, known as zlib.
_KEPT_COMPRESSIONS = {1, 5, 8, 32773, 32946, 34925, 50000}
_ZLIB = 8
_DESCRIPTION, _COLORMAP = 270, 320
# Written through arguments of tifffile, or true of the input's layout alone.
_REWRITTEN_TAGS = tifffile.TIFF.TAG_FILTERED | {
    254,
    255,
    282,
    283,
    296,
    320,
    347,
    529,
    530,
    531,
    532,
}
# Tags whose value is a place in the file, which the copy does not keep.
_OFFSET_TYPES = {13, 18}
_BIGTIFF_FROM = 2**32 - 2**25
_STRIP_PIXELS = 2**20


class TiffSource(ImageFile):
    """A TIFF file that holds one image of any number of axes."""

    format = "TIFF"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            self._tif = tifffile.TiffFile(path)
            try:
                self._open(path, axes)
            except BaseException:
                self._tif.close()
                raise

    def _open(self, path: Path, axes: str | None) -> None:
        if len(self._tif.series) != 1:
            raise InputError(
                f"{path}: holds {len(self._tif.series)} images of different kinds; "
                "save the one to denoise as a file of its own."
            )
        self._series = self._tif.series[0]
        self._key: Any = self._series.keyframe
        found = self._series.axes
        if not found.endswith(("YX", "YXS")) or self._key.imagedepth > 1:
            raise InputError(
                f"{path}: stores its axes as {found}, not as planes that end in YX or YXS; "
                "save it as an .npy file and name its axes there."
            )
        if len(self._series.levels) > 1:
            log.warning("%s: only full resolution is denoised and written, not the pyramid", path)
        axes = self._renamed(found, axes)
        dtype = checked_dtype(np.dtype(self._series.dtype), str(path))
        alpha = found.endswith("S") and self._key.extrasamples[-1:] in ((1,), (2,))
        super().__init__(path, tuple(self._series.shape), dtype, axes, alpha=alpha)
        self._check_whole()

    @staticmethod
    def _renamed(found: str, wanted: str | None) -> str:
        """Let the caller name leading axes; where the planes are is a fact of the file."""
        if wanted is None:
            return found
        tail = "YXS" if found.endswith("YXS") else "YX"
        if not wanted.upper().endswith(tail):
            raise InputError(f"axes {wanted!r} do not fit the file, whose axes are {found}.")
        return wanted

    def _check_whole(self) -> None:
        """Refuse a truncated file before any work is done."""
        with reading(self.path, self.format):
            ends = [
                (offset + count, page.parent.filehandle.size)
                for page in self._series.pages
                if page is not None
                for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True)
            ]
            if self._series.dataoffset is not None:
                size = self.pixels * self.dtype.itemsize
                ends.append((self._series.dataoffset + size, self._tif.filehandle.size))
            missing = max((end - size for end, size in ends), default=0)
            if missing > 0:
                raise ValueError(f"the file is truncated: {missing} bytes are missing")
            self._check_codec()

    def _check_codec(self) -> None:
        try:
            if self._key.compression != 1:
                tifffile.TIFF.DECOMPRESSORS[self._key.compression]
            if self._key.predictor != 1:
                tifffile.TIFF.UNPREDICTORS[self._key.predictor]
        except KeyError as error:
            raise InputError(
                f"{self.path}: is compressed with {self._key.compression.name}, which needs the "
                "imagecodecs package: pip install 'normeq[codecs]'."
            ) from error

    def close(self) -> None:
        """Let go of the file."""
        self._tif.close()

    # Reading ---------------------------------------------------------------------------------

    @property
    def _separate(self) -> int:
        """How many planes a page holds: samples that are stored one after the other."""
        return int(self._key.samplesperpixel) if self._key.planarconfig == 2 else 1

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        with reading(self.path, self.format):
            row = self.width * self.samples
            if self._series.dataoffset is not None:
                offset = self._series.dataoffset + frame * self.height * row * self.dtype.itemsize
                return self._read_rows(self._tif, offset, start, stop)
            page: Any = self._series.pages[frame // self._separate]
            if page is None:  # an OME file may leave planes out
                return np.zeros((stop - start, self.width, self.samples), self.dtype)
            if page.keyframe.is_final and len(page.dataoffsets) == 1:
                return self._read_rows(page.parent, page.dataoffsets[0], start, stop)
            return self._read_segments(page, frame % self._separate, start, stop)

    def _read_rows(self, file: Any, offset: int, start: int, stop: int) -> Pixels:
        row = self.width * self.samples
        stored = file.filehandle.read_array(
            file.byteorder + self.dtype.char,
            count=(stop - start) * row,
            offset=offset + start * row * self.dtype.itemsize,
        )
        return self._native(stored).reshape(stop - start, self.width, self.samples)

    def _read_segments(self, page: Any, sample: int, start: int, stop: int) -> Pixels:
        key = page.keyframe
        height = key.tilelength if key.is_tiled else min(key.rowsperstrip, self.height)
        across = math.ceil(self.width / key.tilewidth) if key.is_tiled else 1
        down = math.ceil(self.height / height)
        out = np.zeros((stop - start, self.width, self.samples), self.dtype)
        for line in range(start // height, (stop - 1) // height + 1):
            for column in range(across):
                index = (sample * down + line) * across + column
                if page.databytecounts[index] == 0:
                    continue  # a sparse file: nothing stored means zeros
                segment, (_, _, y, x, _), _ = key.decode(
                    self._segment(page, index), index, jpegtables=page.jpegtables
                )
                rows = slice(max(start, y), min(stop, y + segment.shape[1]))
                target = out[rows.start - start : rows.stop - start, x : x + segment.shape[2]]
                target[:] = self._native(
                    segment[0, rows.start - y : rows.stop - y, : target.shape[1]]
                )
        return out

    @staticmethod
    def _segment(page: Any, index: int) -> bytes:
        file = page.parent.filehandle
        file.seek(page.dataoffsets[index])
        return bytes(file.read(page.databytecounts[index]))

    def _native(self, stored: Pixels) -> Pixels:
        return np.asarray(stored, dtype=self.dtype)

    # Writing ---------------------------------------------------------------------------------

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a TIFF with the same pages, tags, byte order and, if lossless, compression."""
        large = self.pixels * self.dtype.itemsize > _BIGTIFF_FROM
        pages = self.frames // self._separate
        layout = self._layout()
        pieces = self._pieces(bands, layout)
        portable = self._series.kind in _PORTABLE_KINDS
        if not portable:
            log.warning("%s: the %s metadata is not written", self.path, self._series.kind)
        with tifffile.TiffWriter(
            target,
            bigtiff=self._tif.is_bigtiff or large,
            byteorder=self._tif.byteorder,
            ome=False,  # the description is copied, not made from the file's name
            imagej=False,
            shaped=False,
        ) as writer:
            for number in range(pages):
                writer.write(
                    (next(pieces) for _ in range(layout["segments"])),
                    shape=self._page_shape(),
                    dtype=self.dtype,
                    metadata=None,
                    software=False,
                    contiguous=False,
                    description=None if portable else self._described(),
                    **layout["arguments"],
                    **self._page_arguments(number),
                )

    def _page_shape(self) -> tuple[int, ...]:
        plane = (self.height, self.width)
        if self._separate > 1:
            return (self._separate, *plane)
        return (*plane, self.samples) if self.axes.endswith("YXS") else plane

    def _layout(self) -> dict[str, Any]:
        """Choose segments and compression: as in the input where that can be written."""
        key = self._key
        compression, predictor = self._compression()
        arguments: dict[str, Any] = {
            "photometric": self._photometric(),
            "compression": compression,
            "predictor": predictor,
        }
        if key.samplesperpixel > 1:
            arguments["planarconfig"] = key.planarconfig
            arguments["extrasamples"] = key.extrasamples
        if key.photometric == 3:
            arguments["colormap"] = key.tags[_COLORMAP].value
        if key.is_tiled:
            tile = (key.tilelength, key.tilewidth)
            tile = (256, 256) if tile[0] % 16 or tile[1] % 16 else tile
            arguments["tile"] = tile
            grid = math.ceil(self.height / tile[0]) * math.ceil(self.width / tile[1])
            return {"arguments": arguments, "segments": grid * self._separate, "tile": tile}
        rows = min(int(key.rowsperstrip), self.height)
        bounded = min(rows, max(1, _STRIP_PIXELS // (self.width * self.samples)))
        # A strip is encoded whole, so it must not be the whole image. Only one uncompressed
        # strip for all may stay: it can be written in pieces.
        whole = compression == 1 and rows == self.height
        arguments["rowsperstrip"] = rows if whole else bounded
        pieces = math.ceil(self.height / bounded) * self._separate
        return {"arguments": arguments, "segments": pieces, "tile": (bounded, self.width)}

    def _photometric(self) -> Any:
        """Keep gray, palette and RGB; what a codec decodes to RGB (YCbCr) is RGB from now on."""
        photometric = self._key.photometric
        if photometric in (0, 1, 2, 3, 5):
            return photometric
        return "rgb" if self._key.samplesperpixel == 3 else "minisblack"

    def _compression(self) -> tuple[int, int]:
        compression, predictor = int(self._key.compression), int(self._key.predictor)
        native = (self._tif.byteorder == "<") == (sys.byteorder == "little")
        try:
            if compression not in _KEPT_COMPRESSIONS:
                return _ZLIB, 1
            if compression != 1:
                tifffile.TIFF.COMPRESSORS[compression]
            if predictor != 1:
                tifffile.TIFF.PREDICTORS[predictor]
        except KeyError:
            return _ZLIB, 1
        return compression, predictor if native else 1

    def _pieces(self, bands: Iterable[Band], layout: dict[str, Any]) -> Iterator[bytes]:
        """Encode what comes out of the bands, segment by segment, in the order of the file."""
        rows, columns = layout["tile"]
        compression = layout["arguments"]["compression"]
        predictor = layout["arguments"]["predictor"]
        stored = self.dtype.newbyteorder(self._tif.byteorder)
        tiled = "tile" in layout["arguments"]
        for strip in regrouped(bands, self.height, rows):
            for x in range(0, self.width, columns):
                piece = strip[:, x : x + columns].astype(stored)
                if tiled:
                    edge = (rows - piece.shape[0], columns - piece.shape[1])
                    piece = np.pad(piece, ((0, edge[0]), (0, edge[1]), (0, 0)))
                if predictor != 1:
                    piece = tifffile.TIFF.PREDICTORS[predictor](piece, axis=-2)
                piece = np.ascontiguousarray(piece)
                yield (
                    piece.tobytes()
                    if compression == 1
                    else tifffile.TIFF.COMPRESSORS[compression](piece)
                )

    def _described(self) -> str:
        return str(tifffile.tifffile.shaped_description(self.shape, axes=self.axes))

    def _page_arguments(self, number: int) -> dict[str, Any]:
        """Return resolution and remaining tags of a page, to be written as they are."""
        if number and number >= len(self._series.pages):
            return {}  # one directory stands for all pages, as in large ImageJ files
        page = self._series.pages[number]
        if page is None:
            return {}
        page = page.aspage()
        arguments: dict[str, Any] = {}
        if 282 in page.tags and 283 in page.tags:
            unit = page.tags[296].value if 296 in page.tags else None
            arguments["resolution"] = (page.tags[282].value, page.tags[283].value)
            arguments["resolutionunit"] = unit
        portable = self._series.kind in _PORTABLE_KINDS
        arguments["extratags"] = [
            (tag.code, int(tag.dtype), tag.count, self._tag_bytes(page, tag, number), False)
            for tag in page.tags
            if tag.code not in _REWRITTEN_TAGS
            and tag.dtype not in _OFFSET_TYPES
            and (portable or tag.code != _DESCRIPTION)
        ]
        return arguments

    def _tag_bytes(self, page: Any, tag: Any, number: int) -> bytes:
        file = page.parent.filehandle
        file.seek(tag.valueoffset)
        value = bytes(file.read(tag.valuebytecount))
        if tag.code == _DESCRIPTION and number == 0 and self._series.kind == "ome":
            return relocated(value, self.frames // self._separate)
        return value


def regrouped(bands: Iterable[Band], height: int, rows: int) -> Iterator[Pixels]:
    """Cut consecutive bands of frames of this height into strips of `rows` rows each.

    >>> bands = [Band(0, 0, np.zeros((3, 2, 1))), Band(0, 3, np.zeros((2, 2, 1)))]
    >>> [len(strip) for strip in regrouped(bands, 5, 4)]
    [4, 1]
    """
    held: list[Pixels] = []
    for band in bands:
        pixels, place = band.pixels, band.start
        while len(pixels):
            take = min(rows - place % rows, height - place, len(pixels))
            held.append(pixels[:take])
            pixels, place = pixels[take:], place + take
            if place % rows == 0 or place == height:
                yield held[0] if len(held) == 1 else np.concatenate(held)
                held = []


def relocated(ome_xml: bytes, pages: int) -> bytes:
    """Let OME-XML find its planes in consecutive pages of its own file.

    >>> relocated(b'<Pixels><TiffData IFD="7"><UUID FileName="a"/></TiffData></Pixels>', 3)
    b'<Pixels><TiffData IFD="0" PlaneCount="3"/></Pixels>'
    """
    element = re.compile(rb"<((?:\w+:)?)TiffData\b(?:[^>]*/>|.*?</\1TiffData\s*>)", re.DOTALL)
    first = element.search(ome_xml)
    if first is None:
        return ome_xml
    one = b'<%sTiffData IFD="0" PlaneCount="%d"/>' % (first.group(1), pages)
    return ome_xml[: first.start()] + one + element.sub(b"", ome_xml[first.end() :])
