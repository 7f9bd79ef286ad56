"""Writing a TIFF like another one, page by page: the same tags, other pixels."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import tifffile

from normeq.images.source import Band
from normeq.images.tiff.exif import copy_directories, pointers
from normeq.images.tiff.page_layout import encoded, layout_of
from normeq.images.tiff.reader import TiffSource
from normeq.images.tiff.tags import PORTABLE_KINDS, copied, resolution

log = logging.getLogger(__name__)

_BIGTIFF_FROM = 2**32 - 2**25


def write_copy(source: TiffSource, target: Path, bands: Iterable[Band]) -> None:
    """Write a TIFF like `source`, with other pixels."""
    if source.series.kind not in PORTABLE_KINDS:
        log.warning("%s: the %s metadata is not written", source.path, source.series.kind)
    layout = layout_of(source)
    segments = encoded(source, bands, layout)
    bigtiff = source.tif.is_bigtiff or source.pixels * source.dtype.itemsize > _BIGTIFF_FROM
    with tifffile.TiffWriter(
        target,
        bigtiff=bigtiff,
        byteorder=source.tif.byteorder,
        ome=False,  # the description is copied, not made from the file's name
        imagej=False,
        shaped=False,
    ) as writer:
        for number in range(source.pages):
            writer.write(
                islice(segments, layout.segments),
                metadata=None,
                software=False,
                contiguous=False,
                **layout.arguments,
                **_about_page(source, number, bigtiff),
            )
    copy_directories(source.page(0), target, bigtiff)


def _about_page(source: TiffSource, number: int, bigtiff: bool) -> dict[str, Any]:
    """Return what is said of a page beside its layout, as arguments for tifffile."""
    if number and number >= len(source.series.pages):
        return {}  # one directory stands for all pages, as in large ImageJ files
    page = source.page(number)
    about = resolution(page) | {"extratags": copied(source, number)}
    if number == 0:
        about["extratags"] += pointers(page, bigtiff)
        if source.series.kind not in PORTABLE_KINDS:
            # The axes, and the text that was there.
            about["description"] = tifffile.tifffile.shaped_description(
                source.shape, axes=source.axes, description=source.key.description
            )
    return about
