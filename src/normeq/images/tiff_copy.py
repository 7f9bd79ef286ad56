"""Writing a TIFF like another one, page by page.

The tags of every page are copied as they are, byte for byte; only those that describe the layout
of the pixels are written anew.
"""

from __future__ import annotations

import logging
import math
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from normeq.images.source import Band, Pixels
from normeq.images.tiff import CMYK, COLORMAP, LOSSLESS, PALETTE, RGB, TiffSource
from normeq.images.tiff_exif import copy_directories, pointers

log = logging.getLogger(__name__)

# How tifffile found the axes: from these, a copy of the tags tells them again.
_PORTABLE_KINDS = {"ome", "imagej", "shaped", "uniform", "generic"}
# A copy keeps lossless compressions; every other becomes ADOBE_DEFLATE, known as zlib.
_UNCOMPRESSED, _ZLIB = 1, 8
_DESCRIPTION = 270
_X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT = 282, 283, 296
# Besides those that tifffile writes itself: kinds of pages, tables of lossy codecs and YCbCr.
_REWRITTEN_TAGS = tifffile.TIFF.TAG_FILTERED | {254, 255, 347, 529, 530, 531, 532, COLORMAP}
_REWRITTEN_TAGS |= {_X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT}
# What would be untrue of the copy: Photoshop's layers, the places of MetaMorph's planes.
_REWRITTEN_TAGS |= {37724, 33628, 33629, 33630, 33631}
_RATIONALS = {5: "I", 10: "i"}
# Tags whose value is a place in the file, which the copy does not keep.
_OFFSET_TYPES = {13, 18}
_BIGTIFF_FROM = 2**32 - 2**25
_STRIP_PIXELS = 2**20


@dataclass(frozen=True)
class Layout:
    """How the pixels of a page are stored: segments of this shape, so many, and how encoded."""

    rows: int
    columns: int
    segments: int
    tiled: bool
    compression: int
    predictor: int
    arguments: dict[str, Any]


def write_copy(source: TiffSource, target: Path, bands: Iterable[Band]) -> None:
    """Write a TIFF like `source`, with other pixels."""
    layout = _layout(source)
    pieces = _pieces(source, bands, layout)
    portable = source.series.kind in _PORTABLE_KINDS
    if not portable:
        log.warning("%s: the %s metadata is not written", source.path, source.series.kind)
    bigtiff = source.tif.is_bigtiff or source.pixels * source.dtype.itemsize > _BIGTIFF_FROM
    page: Any = source.series.pages[0]
    first = page.aspage()
    with tifffile.TiffWriter(
        target,
        bigtiff=bigtiff,
        byteorder=source.tif.byteorder,
        ome=False,  # the description is copied, not made from the file's name
        imagej=False,
        shaped=False,
    ) as writer:
        for number in range(source.frames // source.separate):
            description = None
            if not portable and number == 0:
                # The axes, and the text that was there.
                description = tifffile.tifffile.shaped_description(
                    source.shape, axes=source.axes, description=source.key.description
                )
            arguments = _page_arguments(source, number)
            if number == 0:
                arguments["extratags"] += pointers(first, bigtiff)
            writer.write(
                (next(pieces) for _ in range(layout.segments)),
                shape=_page_shape(source),
                dtype=source.dtype,
                compression=layout.compression,
                predictor=layout.predictor,
                metadata=None,
                software=False,
                contiguous=False,
                description=description,
                **layout.arguments,
                **arguments,
            )
    copy_directories(first, target, bigtiff)


def _page_shape(source: TiffSource) -> tuple[int, ...]:
    plane = (source.height, source.width)
    if source.separate > 1:
        return (source.separate, *plane)
    return (*plane, source.samples) if source.axes.endswith("YXS") else plane


def _layout(source: TiffSource) -> Layout:
    """Choose segments and compression: as in the input where that can be written."""
    key = source.key
    compression, predictor = _compression(source)
    arguments: dict[str, Any] = {"photometric": _photometric(key)}
    if key.samplesperpixel > 1:
        arguments["planarconfig"] = key.planarconfig
        colours = tifffile.TIFF.PHOTOMETRIC_SAMPLES[_photometric(key)]
        unnamed = (0,) * (int(key.samplesperpixel) - colours)
        arguments["extrasamples"] = key.extrasamples or unnamed or None
    if key.photometric == PALETTE:
        arguments["colormap"] = key.tags[COLORMAP].value
    if key.is_tiled:
        rows, columns = key.tilelength, key.tilewidth
        if rows % 16 or columns % 16:  # which tifffile does not write
            rows = columns = 256
        arguments["tile"] = (rows, columns)
    else:
        stored = min(int(key.rowsperstrip), source.height)
        columns = source.width
        rows = min(stored, max(1, _STRIP_PIXELS // (columns * source.samples)))
        # A strip is encoded whole, so it must not be the whole image. Only one uncompressed
        # strip for all may stay: it can be written in pieces.
        whole = compression == _UNCOMPRESSED and stored == source.height
        arguments["rowsperstrip"] = stored if whole else rows
    grid = math.ceil(source.height / rows) * math.ceil(source.width / columns)
    segments = grid * source.separate
    return Layout(rows, columns, segments, key.is_tiled, compression, predictor, arguments)


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
    try:
        if compression == _UNCOMPRESSED:
            return _UNCOMPRESSED, 1
        if compression not in LOSSLESS:
            return _ZLIB, 1
        tifffile.TIFF.COMPRESSORS[compression]
        if predictor != 1:
            tifffile.TIFF.PREDICTORS[predictor]
    except (KeyError, ImportError):
        return _ZLIB, 1
    return compression, predictor if native else 1


def _pieces(source: TiffSource, bands: Iterable[Band], layout: Layout) -> Iterator[bytes]:
    """Encode what comes out of the bands, segment by segment, in the order of the file."""
    stored = source.dtype.newbyteorder(source.tif.byteorder)
    for strip in regrouped(bands, source.height, layout.rows):
        for x in range(0, source.width, layout.columns):
            piece = strip[:, x : x + layout.columns].astype(stored)
            if layout.tiled:
                below, right = layout.rows - piece.shape[0], layout.columns - piece.shape[1]
                piece = np.pad(piece, ((0, below), (0, right), (0, 0)))
            if layout.predictor != 1:
                piece = tifffile.TIFF.PREDICTORS[layout.predictor](piece, axis=-2)
            piece = np.ascontiguousarray(piece)
            if layout.compression == _UNCOMPRESSED:
                yield piece.tobytes()
            else:
                yield tifffile.TIFF.COMPRESSORS[layout.compression](piece)


def _page_arguments(source: TiffSource, number: int) -> dict[str, Any]:
    """Return resolution and remaining tags of a page, to be written as they are."""
    if number and number >= len(source.series.pages):
        return {}  # one directory stands for all pages, as in large ImageJ files
    page: Any = source.series.pages[number]
    page = page.aspage()
    arguments: dict[str, Any] = {}
    if _X_RESOLUTION in page.tags and _Y_RESOLUTION in page.tags:
        unit = page.tags.get(_RESOLUTION_UNIT)
        arguments["resolution"] = (page.tags[_X_RESOLUTION].value, page.tags[_Y_RESOLUTION].value)
        arguments["resolutionunit"] = None if unit is None else unit.value
    # One description is for the whole of an OME file, whichever of its parts a page is from; of
    # kinds that are not portable, the first page has one of ours.
    kind = source.series.kind
    described = kind != "ome" if number else kind in _PORTABLE_KINDS
    arguments["extratags"] = [
        (tag.code, int(tag.dtype), tag.count, _tag_value(source, page, tag), False)
        for tag in page.tags
        if tag.code not in _REWRITTEN_TAGS
        and tag.dtype not in _OFFSET_TYPES
        and (described or tag.code != _DESCRIPTION)
    ]
    return arguments


def _tag_value(source: TiffSource, page: Any, tag: Any) -> bytes | tuple[int, ...]:
    """Return the value of a tag as it is stored."""
    file = source.file_of(page)
    file.seek(tag.valueoffset)
    value = bytes(file.read(tag.valuebytecount))
    if tag.code == _DESCRIPTION and source.series.kind == "ome":
        return relocated(value, source.frames // source.separate)
    if tag.code == _DESCRIPTION and source.series.kind == "shaped":
        return value.replace(b', "truncated": true', b"")  # the copy has a directory for each page
    if int(tag.dtype) in _RATIONALS:  # which tifffile takes as numerators and denominators only
        layout = f"{page.parent.byteorder}{2 * tag.count}{_RATIONALS[int(tag.dtype)]}"
        return struct.unpack(layout, value)
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
