"""Image files: one interface over every format.

`open_image` reads the header alone; pixels come and go in bands of rows. `read` returns the whole
array.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq._support import memory
from normeq._support.atomic import replacing
from normeq.errors import FileError, InputError, UsageError, reading
from normeq.images.addresses import Address, located
from normeq.images.formats import (
    FORMATS,
    Format,
    extension_of,
    format_of,
    is_store,
    result_extension,
    split_part,
)
from normeq.images.source import Band, ImageFile

__all__ = [
    "FORMATS",
    "MAX_PIXELS",
    "Band",
    "Format",
    "ImageFile",
    "extension_of",
    "format_of",
    "is_store",
    "open_image",
    "read",
    "result_extension",
    "split_part",
    "write",
]

MAX_PIXELS = 10**11


def open_image(
    path: str | os.PathLike[str],
    axes: str | None = None,
    max_pixels: int = MAX_PIXELS,
    part: str | None = None,
) -> ImageFile:
    """Open an image; only its header is read.

    Parameters
    ----------
    path
        A file, or the folder or address of a Zarr; ``data.h5:/raw`` is one image of a file.
    axes
        One letter per axis, in place of what the file says.
    max_pixels
        An image of more is refused.
    part
        Which images of a file that holds several: names or numbers of FITS units, separated by
        commas, or the path of an HDF5 dataset.
    """
    path, named = split_part(located(path))
    part = named if part is None else part
    if isinstance(path, Address):
        return _open_address(path, axes, max_pixels)
    if not os.path.exists(path):
        raise FileError(f"{path} does not exist, or cannot be read.")
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise FileError(f"{path} is neither a file nor a folder, but a device or a pipe.")
    format = format_of(path)
    if format is None:
        raise FileError(
            f"{path} has an unknown extension; the known ones are {_known_extensions()}."
        )
    with reading(path, format.name):
        source = format.open(path, axes, part)
    return _checked(source, max_pixels)


def _open_address(path: Path, axes: str | None, max_pixels: int) -> ImageFile:
    """Open a Zarr store at an address: what is read in parts."""
    if extension_of(path) and not is_store(path):
        raise UsageError(f"{path}: only Zarr stores are read from an address: download it first.")
    from normeq.images.zarr_remote import RemoteZarrSource

    return _checked(RemoteZarrSource(path, axes), max_pixels)


def _checked(source: ImageFile, max_pixels: int) -> ImageFile:
    try:
        for image in source.parts:
            _check_size(image, max_pixels)
    except InputError:
        source.close()
        raise
    return source


def _known_extensions() -> str:
    """Return all extensions, and the extra that each needs."""
    return ", ".join(
        " ".join(format.extensions) + (f" (normeq[{format.extra}])" if format.extra else "")
        for format in FORMATS
    )


def _check_size(source: ImageFile, max_pixels: int) -> None:
    if source.pixels == 0:
        raise InputError(f"{source.path} is empty, of shape {source.shape}.")
    if source.pixels > max_pixels:
        raise InputError(
            f"{source.path} has {source.pixels} pixels, more than the {max_pixels} allowed: "
            "raise --max-pixels if that is right."
        )
    needed = 3 * source.pixels * source.dtype.itemsize  # encoded, decoded, and a copy
    if not source.streams and needed > memory.available():
        raise InputError(
            f"{source.path} needs {needed / 2**30:.1f} GB of memory to be decoded, more than "
            "is available; save it as TIFF or Zarr, which are read in parts."
        )


def read(path: str | os.PathLike[str], axes: str | None = None) -> NDArray[Any]:
    """Read a whole image, in the shape and dtype that it is stored in."""
    with open_image(path, axes) as source:
        frames = [source.read(frame, 0, source.height) for frame in range(source.frames)]
    stacked = np.stack(frames).reshape([source.shape[place] for place in source.places])
    return np.transpose(stacked, np.argsort(source.places))


def write(path: str | os.PathLike[str], image: NDArray[Any]) -> None:
    """Write a new PNG, TIFF or NPY, whole or not at all.

    Parameters
    ----------
    path
        Its extension chooses the format.
    image
        For PNG: uint8 or uint16, of shape ``(height, width)`` or with 1 to 4 samples last.
    """
    path = Path(path)
    format = format_of(path)
    if format is None or not format.creates:
        known = ", ".join(format.extensions[0] for format in FORMATS if format.creates)
        raise UsageError(f"{path}: a new image needs one of the extensions {known}.")
    with replacing(path) as temporary:
        format.create(temporary, image)
