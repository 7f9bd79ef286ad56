"""How the pixels of a TIFF are stored: in strips or tiles, and how these are encoded."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tifffile

from normeq.images.source import Band, Pixels
from normeq.images.tiff.pixel_meaning import CMYK, COLORMAP, LOSSLESS, PALETTE, RGB
from normeq.images.tiff.reader import TiffSource

# A copy keeps lossless compressions; every other becomes ADOBE_DEFLATE, known as zlib.
_UNCOMPRESSED, _ZLIB = 1, 8
_STRIP_PIXELS = 2**20


@dataclass(frozen=True)
class PageLayout:
    """Segments (strips or tiles) of one shape, how many a page has, and how they are encoded.

    Attributes
    ----------
    arguments
        The same for tifffile.
    """

    rows: int
    columns: int
    segments: int
    tiled: bool
    compression: int
    predictor: int
    arguments: dict[str, Any]


def layout_of(source: TiffSource) -> PageLayout:
    """Choose segments and compression: as in the input where that can be written."""
    key = source.key
    compression, predictor = _compression(source)
    if key.is_tiled:
        rows, columns = _tile(key)
        segmentation: dict[str, Any] = {"tile": (rows, columns)}
    else:
        columns = source.width
        stored = min(int(key.rowsperstrip), source.height)
        rows = min(stored, max(1, _STRIP_PIXELS // (columns * source.samples)))
        # A strip is encoded whole, so it must not be the whole image. Only one uncompressed
        # strip for all may stay: it can be written in pieces.
        whole = compression == _UNCOMPRESSED and stored == source.height
        segmentation = {"rowsperstrip": stored if whole else rows}
    across, down = math.ceil(source.width / columns), math.ceil(source.height / rows)
    return PageLayout(
        rows,
        columns,
        segments=across * down * source.separate,
        tiled=key.is_tiled,
        compression=compression,
        predictor=predictor,
        arguments={
            "shape": _page_shape(source),
            "dtype": source.dtype,
            "compression": compression,
            "predictor": predictor,
            **segmentation,
            **_colours(key),
        },
    )


def _tile(key: Any) -> tuple[int, int]:
    rows, columns = key.tilelength, key.tilewidth
    return (256, 256) if rows % 16 or columns % 16 else (rows, columns)  # tifffile's demand


def _page_shape(source: TiffSource) -> tuple[int, ...]:
    plane = (source.height, source.width)
    if source.separate > 1:
        return (source.separate, *plane)
    return (*plane, source.samples) if source.axes.endswith("YXS") else plane


def _colours(key: Any) -> dict[str, Any]:
    """Return what the samples of a pixel mean."""
    photometric = _photometric(key)
    colours: dict[str, Any] = {"photometric": photometric}
    if key.samplesperpixel > 1:
        unnamed = int(key.samplesperpixel) - tifffile.TIFF.PHOTOMETRIC_SAMPLES[photometric]
        colours["planarconfig"] = key.planarconfig
        colours["extrasamples"] = key.extrasamples or (0,) * unnamed or None
    if key.photometric == PALETTE:
        colours["colormap"] = key.tags[COLORMAP].value
    return colours


def _photometric(key: Any) -> int:
    """Keep gray, palette and RGB; what a codec decodes to RGB (YCbCr) is RGB from now on."""
    colored = key.samplesperpixel >= 3
    if key.photometric in (0, 1, PALETTE) or (colored and key.photometric in (RGB, CMYK)):
        return int(key.photometric)
    return RGB if colored else 1


def _compression(source: TiffSource) -> tuple[int, int]:
    """Return compression and predictor: those of the input if they can be written again."""
    compression, predictor = int(source.key.compression), int(source.key.predictor)
    native = (source.tif.byteorder == "<") == (sys.byteorder == "little")
    if compression == _UNCOMPRESSED:
        return _UNCOMPRESSED, 1
    if compression not in LOSSLESS:
        return _ZLIB, 1
    try:
        tifffile.TIFF.COMPRESSORS[compression]
        if predictor != 1:
            tifffile.TIFF.PREDICTORS[predictor]
    except (KeyError, ImportError):
        return _ZLIB, 1
    return compression, predictor if native else 1


def encoded(source: TiffSource, bands: Iterable[Band], layout: PageLayout) -> Iterator[bytes]:
    """Encode what comes out of the bands, segment by segment, in the order of the file."""
    stored = source.dtype.newbyteorder(source.tif.byteorder)
    for strip in regrouped(bands, source.height, layout.rows):
        for x in range(0, source.width, layout.columns):
            segment = strip[:, x : x + layout.columns].astype(stored)
            if layout.tiled:
                below, right = layout.rows - segment.shape[0], layout.columns - segment.shape[1]
                segment = np.pad(segment, ((0, below), (0, right), (0, 0)))
            if layout.predictor != 1:
                segment = tifffile.TIFF.PREDICTORS[layout.predictor](segment, axis=-2)
            segment = np.ascontiguousarray(segment)
            if layout.compression == _UNCOMPRESSED:
                yield segment.tobytes()
            else:
                yield tifffile.TIFF.COMPRESSORS[layout.compression](segment)


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
