"""Floating-point images that go with another image: of the same axes, shape and pixel size."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from normeq.errors import InputError
from normeq.images.converting import write_new_ome_zarr
from normeq.images.formats import extension_of, format_of
from normeq.images.source import Band, ImageFile, IndexedSource
from normeq.images.tiff.ome_writer import write_ome

# What is written for formats that this package cannot create.
_OTHERWISE = ".ome.tif"


def float_extension(path: Path) -> str:
    """Return the extension of a floating-point image that goes with an image at a path.

    >>> float_extension(Path("cells.tiff")), float_extension(Path("photo.png"))
    ('.tiff', '.ome.tif')
    """
    format = format_of(path)
    known = format is not None and format.name in _WRITERS
    return extension_of(path) if known else _OTHERWISE


def float_copy(source: ImageFile, dtype: np.dtype[Any]) -> ImageFile:
    """Return the header of an image that goes with another, in physical units.

    Parameters
    ----------
    source
        The other image. Of a file that holds several, only one is possible.
    dtype
        Of the new image: a floating-point one.
    """
    if len(source.parts) > 1:
        raise InputError(
            f"{source.path}: has {len(source.parts)} images, and error bars are written for one: "
            "name it with --hdu."
        )
    header = copy.copy(source)
    header.dtype = dtype
    header.gain, header.offset, header.blank, header.alpha = 1.0, 0.0, None, False
    return header


def write_float_copy(header: ImageFile, target: Path, final: Path, bands: Iterable[Band]) -> None:
    """Write a floating-point image.

    Parameters
    ----------
    header
        See `float_copy`.
    target
        Where to write.
    final
        The name that the file gets in the end; its extension is that of `float_extension`.
    bands
        The pixels, in order.
    """
    format = format_of(final)
    name = "TIFF" if format is None else format.name
    _WRITERS[name](header, target, bands)


def _write_npy(header: ImageFile, target: Path, bands: Iterable[Band]) -> None:
    stored = np.lib.format.open_memmap(target, "w+", header.dtype, header.shape)
    for band in bands:
        rows = slice(band.start, band.start + len(band.pixels))
        if isinstance(header, IndexedSource):
            stored[header.index(band.frame, rows)] = header.from_plane(band.pixels)
        else:
            frames = stored.reshape(header.frames, header.height, header.width, header.samples)
            frames[band.frame, rows] = band.pixels
    stored.flush()


_WRITERS = {"NPY": _write_npy, "TIFF": write_ome, "Zarr": write_new_ome_zarr}
